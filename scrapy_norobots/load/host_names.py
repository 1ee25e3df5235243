"""`HostNames`: look up the name of a host before its robots.txt is downloaded.

Twisted resolves names in `REACTOR_THREADPOOL_MAXSIZE` threads. Hundreds of downloads that begin at once would
wait for these threads, and would time out where DNS is slow. So no more names than there are threads are
looked up at a time, before the time of a download begins. Scrapy's own cache then has the address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies

from twisted.internet.abstract import isIPAddress, isIPv6Address
from twisted.internet.defer import DeferredSemaphore

from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.scrapy_api.internals import download_handler

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler


class HostNames:
    """The host names of one crawl."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._has_proxies = crawler.settings.getbool("HTTPPROXY_ENABLED") and bool(getproxies())
        threads = crawler.settings.getint("REACTOR_THREADPOOL_MAXSIZE")
        self._threads = DeferredSemaphore(max(1, threads))

    async def look_up(self, request: Request) -> None:
        """Look up the host of a request, if this process connects to it; a failure is not reported here."""
        parts = urlsplit(request.url)
        host = parts.hostname
        if not host or isIPAddress(host) or isIPv6Address(host):
            return
        if self._has_proxies or request.meta.get("proxy"):
            return
        handler = download_handler(self._crawler, parts.scheme)
        if not type(handler).__module__.startswith("scrapy."):  # it may resolve names elsewhere
            return
        await compat.waiting_for(self._threads.acquire())
        try:
            await compat.resolve(host)
        finally:
            self._threads.release()
