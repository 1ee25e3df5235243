"""One download of a robots.txt through Scrapy's engine, as a `Snapshot`.

The request goes through all downloader middlewares, so the user's proxies, delays, retries and TLS
settings apply, but it is clean: no cookies, no credentials from a URL, no Referer, no meta refresh. Redirects
are followed here, hop by hop, so that where they lead is known and limited. Whatever goes wrong is a
snapshot too, one with an error: nothing but a cancellation is raised.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from scrapy import Request
from scrapy.http.request import NO_CALLBACK
from w3lib.url import safe_url_string

from scrapy_norobots import compat
from scrapy_norobots.snapshot import Snapshot
from scrapy_norobots.standard import Origin
from scrapy_norobots.standard.decision import printable
from scrapy_norobots.standard.urls import split

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_norobots.identity import Identity
    from scrapy_norobots.settings import Config

# Before any page, as in Scrapy's own middleware.
DOWNLOAD_PRIORITY = 1000

# The headers that later decisions need: freshness, revalidation, and what the body is.
_KEPT_HEADERS = ("cache-control", "content-type", "date", "etag", "expires", "last-modified")

_REDIRECTS = frozenset({301, 302, 303, 307, 308})

# Marks that Scrapy leaves on an answer that was cut off (DOWNLOAD_FAIL_ON_DATALOSS = False).
_CUT_OFF = frozenset({"dataloss", "partial"})


class Fetcher:
    """Downloads the robots.txt of origins for one crawler."""

    def __init__(
        self,
        crawler: Crawler,
        config: Config,
        identity: Identity,
        on_error: Callable[[Exception], None],
    ) -> None:
        """`on_error` is told each exception that a download ended with."""
        self._crawler = crawler
        self._config = config
        self._identity = identity
        self._on_error = on_error

    async def fetch(self, origin: Origin, page: Request) -> Snapshot:
        """Download the robots.txt of an origin, on behalf of a request for one of its pages."""
        url = origin.robots_url
        for hops_left in range(self._config.redirect_max, -1, -1):
            try:
                response = await compat.download(self._crawler, self._request(url, page))
            except Exception as exc:
                self._on_error(exc)
                error = f"{type(exc).__name__}: {exc}" if str(exc) else type(exc).__name__
                return Snapshot(origin, url, time.time(), error=printable(error))
            target = _redirect_target(response)
            if target is None or not hops_left:
                break
            url = target
        if _CUT_OFF.intersection(response.flags):
            return Snapshot(origin, response.url, time.time(), error="the answer was cut off")
        return _of_response(origin, response)

    def _request(self, url: str, page: Request) -> Request:
        meta = {
            "allow_offsite": True,
            "dont_merge_cookies": True,
            "dont_obey_robotstxt": True,  # this middleware lets it pass too
            "dont_redirect": True,  # nor is a meta refresh followed
            "download_maxsize": self._config.maxsize,
            "download_timeout": self._config.timeout,
        }
        headers = {}
        user_agent = self._identity.user_agent(page)
        if user_agent:
            headers["User-Agent"] = user_agent
        for key in self._config.copy_meta:
            if key in page.meta:
                meta[key] = page.meta[key]
        if "_scheme_proxy" in page.meta:
            # The proxy came from the environment, which has its own for each scheme.
            meta.pop("proxy", None)
        elif "proxy" in meta and (credentials := page.headers.get("Proxy-Authorization")):
            # Scrapy has moved the proxy's credentials there, as it does for a page tried again.
            headers["Proxy-Authorization"] = credentials
            meta["_auth_proxy"] = page.meta.get("_auth_proxy", meta["proxy"])
        return Request(
            url,
            headers=headers,
            meta=meta,
            priority=DOWNLOAD_PRIORITY,
            callback=NO_CALLBACK,
            dont_filter=True,
        )


def _redirect_target(response: Response) -> str | None:
    """Return where an answer redirects to, or None if it does not, or not to an http or https URL."""
    location = response.headers.get("Location")
    if response.status not in _REDIRECTS or not location:
        return None
    try:
        origin, target = split(urljoin(response.url, safe_url_string(location.decode("latin-1"))))
    except ValueError:
        return None
    return f"{origin}{target}" if origin else None  # credentials and a fragment do not go along


def _of_response(origin: Origin, response: Response) -> Snapshot:
    headers = {}
    for name in _KEPT_HEADERS:
        value = response.headers.get(name)
        if value is not None:
            headers[name] = value.decode("latin-1")
    return Snapshot(
        origin,
        response.url,
        time.time(),
        status=response.status,
        headers=headers,
        body=response.body,
    )
