"""For robots.txt, `HostNames` looks up hosts first; `ConnectionEnds` notices responses that are cut off.

A body without Content-Length and chunks ends with its connection (RFC 9112, section 8). It is incomplete if
the connection is reset, or if TLS ends without a closure alert (9.8). Scrapy's download handlers return such
a response like a complete one. So `ConnectionEnds` looks at the connections of the handlers with Twisted and
aiohttp. A response that was cut off gets the flag ``dataloss``, as Scrapy marks other incomplete responses.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies
from weakref import WeakKeyDictionary

from scrapy import signals
from twisted.internet.abstract import isIPAddress, isIPv6Address
from twisted.internet.defer import DeferredSemaphore
from twisted.internet.error import ConnectionAborted, ConnectionDone
from twisted.web.client import HTTPConnectionPool

from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.scrapy_api.internals import download_handler
from scrapy_norobots.standard import Origin

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure

# Ends of a connection that cut off nothing: by the site, or by Scrapy, which then fails the download.
_ENDED_WELL = (ConnectionDone, ConnectionAborted)


class HostNames:
    """Looks up the names of hosts for one crawl, before robots.txt is downloaded from them.

    Twisted resolves names in `REACTOR_THREADPOOL_MAXSIZE` threads. Hundreds of downloads that begin at once
    would wait for these threads, and would time out where DNS is slow. So as many names as there are threads
    are looked up at a time, before the time of a download begins; Scrapy caches the address.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._has_proxies = crawler.settings.getbool("HTTPPROXY_ENABLED") and bool(getproxies())
        self._threads = DeferredSemaphore(max(1, crawler.settings.getint("REACTOR_THREADPOOL_MAXSIZE")))

    async def look_up(self, request: Request) -> None:
        """Look up the host of a request, if this process connects to it; a failure is not reported here."""
        parts = urlsplit(request.url)
        host = parts.hostname or ""
        if isIPAddress(host) or isIPv6Address(host) or self._has_proxies or request.meta.get("proxy"):
            return
        handler = download_handler(self._crawler, parts.scheme)
        if type(handler).__module__.startswith("scrapy."):  # another may resolve names elsewhere
            await compat.waiting_for(self._threads.run(lambda: compat.spawn(compat.resolve(host))))


class ConnectionEnds:
    """Marks the responses of one crawl that were cut off: `watch` their requests, and `mark` them."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        # The requests that are being downloaded, and whether a connection to the origin of one has failed
        # meanwhile. Two at a time are rare, and one that is complete is then downloaded again.
        self._has_failed: WeakKeyDictionary[Request, bool] = WeakKeyDictionary()
        self._has_looked = False
        crawler.signals.connect(self._look_at_handlers, signals.spider_opened)

    def _look_at_handlers(self) -> None:
        self._has_looked = True
        for scheme in ("http", "https"):
            handler = download_handler(self._crawler, scheme)
            pool, session = getattr(handler, "_pool", None), getattr(handler, "_session", None)
            if isinstance(pool, HTTPConnectionPool):
                _look_at_twisted(pool, self._failed)
            elif hasattr(session, "_response_class"):
                _look_at_aiohttp(session, self._failed)

    def watch(self, request: Request) -> None:
        """Note connections that fail from now on."""
        if not self._has_looked:  # in a command, which has opened its spider before
            self._look_at_handlers()
        self._has_failed[request] = False

    def _failed(self, url: str) -> None:
        origin = Origin.of(url)
        for request in list(self._has_failed):
            self._has_failed[request] |= Origin.of(request.url) == origin

    def mark(self, response: Response, request: Request) -> None:
        """Give a response that was cut off the flag of Scrapy for it."""
        if (
            self._has_failed.get(request)
            and response.status != 204
            and "Content-Length" not in response.headers
            and not (response.headers.get("Transfer-Encoding") or b"").lower().endswith(b"chunked")
        ):
            response.flags.append("dataloss")


def _look_at_twisted(pool: Any, failed: Callable[[str], None]) -> None:
    """Call `failed` with the URL of each connection that ends with an error before its response."""

    class Factory(pool._factory):  # type: ignore[misc]  # noqa: SLF001
        def buildProtocol(self, address: object) -> Any:  # noqa: N802  # Twisted's
            client = super().buildProtocol(address)
            lose = client.connectionLost

            def lost(reason: Failure) -> None:
                request = getattr(client, "_currentRequest", None)
                if request is not None and not isinstance(reason.value, _ENDED_WELL):
                    failed(request.absoluteURI.decode())
                lose(reason)

            client.connectionLost = lost
            return client

    pool._factory = Factory  # noqa: SLF001


def _look_at_aiohttp(session: Any, failed: Callable[[str], None]) -> None:
    """Do the same for the connections of a `ClientSession`. It may also call `failed` after the response."""

    class NotingResponse(session._response_class):  # type: ignore[misc]  # noqa: SLF001
        async def start(self, connection: Any) -> Any:
            protocol, url = connection.protocol, self.url

            def lost(exc: BaseException | None) -> None:
                if exc is not None or _lacks_alert(protocol.transport):
                    failed(str(url))
                type(protocol).connection_lost(protocol, exc)

            protocol.connection_lost = lost
            return await super().start(connection)

    session._response_class = NotingResponse  # noqa: SLF001


def _lacks_alert(transport: Any) -> bool:
    """Return whether a connection with TLS has ended without a closure alert."""
    tls = transport.get_extra_info("ssl_object") if transport is not None else None
    if not isinstance(tls, ssl.SSLObject):
        return False
    try:
        return tls.read(1) != b""
    except ssl.SSLZeroReturnError:  # the alert has been read
        return False
    except ssl.SSLError:
        return True
