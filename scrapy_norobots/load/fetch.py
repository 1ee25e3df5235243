"""Download a robots.txt through Scrapy's engine and return a `Snapshot`.

The request passes all downloader middlewares, so the user's proxies, delays and TLS settings apply. It
carries no cookies, no Referer and no credentials from a URL. This module follows redirects itself, and limits
retries and redirects. A failure is a snapshot too, one with an error.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest, NotSupported, StopDownload
from scrapy.http.request import NO_CALLBACK
from w3lib.url import safe_url_string

from scrapy_norobots.events import Events
from scrapy_norobots.load.body import ENCODING_HEADER, IN_FLIGHT, BodiesInFlight, NoRoomError, decode
from scrapy_norobots.rules.snapshot import ClosingError, Snapshot, stated_wait
from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.scrapy_api.connections import ConnectionEnds, HostNames
from scrapy_norobots.scrapy_api.internals import has_slot_of_host, missing_internals, slot_of
from scrapy_norobots.settings import REDIRECT_MAX
from scrapy_norobots.standard import Origin
from scrapy_norobots.standard.decision import printable, without_userinfo
from scrapy_norobots.standard.urls import split

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from scrapy_norobots.settings import Config

# The meta key that marks a download of robots.txt; its value is the origin.
ROBOTS_DOWNLOAD = "norobots_download"

# Higher than any page's, as in Scrapy's own middleware.
DOWNLOAD_PRIORITY = 1000

# The meta key for the time at which a download last came to the middleware, as it does with each try.
_TRY = "_norobots_try"

# The headers that a snapshot keeps: for freshness, revalidation, and the type of the body.
_KEPT_HEADERS = frozenset({
    b"Age", b"Cache-Control", b"Content-Type", b"Date", b"Etag", b"Expires", b"Last-Modified", b"Retry-After",
    b"X-Robots-Tag",
})  # fmt: skip

# The parameters for Zyte API that say from where it downloads. Others say what it returns or extracts.
_ZYTE_API_KEPT = ("device", "geolocation", "ipType")

_REDIRECTS = frozenset({301, 302, 303, 307, 308})

# Exceptions of the crawl's own components. After one of these, as with a proxy, other processes may reach
# the site.
_OUR_OWN = (IgnoreRequest, NotSupported, StopDownload)

# Statuses of a proxy or network on the way that requires authentication; they do not come from the site.
_ON_THE_WAY = frozenset({407, 511})

# Flags of a response that the network (see `ConnectionEnds`), or a signal handler (`StopDownload`), cut off.
# (The flag "partial" means only that the server sent no length.)
_CUT_OFF, _STOPPED = "dataloss", "download_stopped"

# How many seconds a running download may take after the crawl starts to close, after Ctrl-C for example.
_CLOSING_LIMIT = 3


class Fetcher:
    """Downloads the robots.txt of origins for one crawler."""

    def __init__(self, crawler: Crawler, config: Config, events: Events) -> None:
        self._crawler = crawler
        self._events = events
        self._config = config
        self._names = HostNames(crawler)
        self._ends = ConnectionEnds(crawler)
        self._bodies = BodiesInFlight(
            crawler.signals,
            # A file of the size that NOROBOTS_MAXSIZE allows must fit, however small NOROBOTS_MEMORY_MAX is.
            max(config.memory_max, 2 * config.maxsize),
            (self._downloaded, signals.response_downloaded),
        )

    async def fetch(
        self, origin: Origin, page: Request, previous: Snapshot | None = None, url: str | None = None
    ) -> Snapshot:
        """Download the robots.txt of an origin, or `url`, on behalf of the request `page`.

        A download that fails is a snapshot, too. Raises what a feature raises. `previous`, a snapshot of an
        earlier response, makes the request conditional. If the crawl starts to close, the download is
        cancelled after a few seconds. From then on, a request is only sent for a page that is under way.
        """
        with self._bodies.counted() as meta:
            snapshot = await self._follow(origin, url or origin.robots_url, page, previous, meta)
        return replace(snapshot, proxy=self.proxy_of(page)) if snapshot.local_failure else snapshot

    async def _follow(
        self, origin: Origin, url: str, page: Request, previous: Snapshot | None, meta: dict[str, object]
    ) -> Snapshot:
        """Download a URL, and follow its redirects.

        Some handlers limit only the time of each read, which a server that sends a byte now and then never
        exceeds. So the timeout applies here too, but not to the time that a request waits in its slot.
        """
        limit, hops_left = self._config.timeout, REDIRECT_MAX
        interval = min(limit, 1.0)
        closing = sending = 0.0  # for how many seconds the crawl is closing, and the request is being sent
        sent: tuple[Request, object] | None = None

        def is_late() -> bool:
            nonlocal closing, sending, sent
            closing += interval * compat.is_closing(self._crawler)
            before, sent = sent, self._being_sent(request, meta[IN_FLIGHT])
            sending = 0.0 if sent is None or sent != before else sending + interval
            return closing > _CLOSING_LIMIT or sending > limit

        while True:
            if compat.is_closing(self._crawler) and not compat.is_under_way(self._crawler, page):
                return _failed(origin, url, ClosingError())
            request = self._request(origin, url, page, previous, meta)
            self._ends.watch(request)
            try:
                response = await compat.unless(is_late, interval, self._download(request))
            except Exception as exc:  # components of the crawl may raise anything
                if compat.is_closing(self._crawler):  # the engine may have stopped it
                    return _failed(origin, url, ClosingError())
                if isinstance(exc, compat.LateError):
                    self._bodies.stop_late_ones()
                    exc = TimeoutError(f"the download handler did not end the download within {limit:g} s")
                return _failed(origin, url, exc, is_proxied=bool(request.meta.get("proxy")))
            if "@" in response.url:  # a middleware has put it there
                response = response.replace(url=without_userinfo(response.url))
            target = redirect_target(response) if hops_left else None
            if target is None:
                snapshot = _of_response(origin, response, self._config.maxsize)
                self._events.answered.send(origin, response, snapshot, previous)
                return snapshot
            self._events.answered.send(origin, response, None, None)
            url, hops_left = target, hops_left - 1
            del response  # frees its body while the next hop is downloaded

    async def _download(self, request: Request) -> Response:
        await self._names.look_up(request)
        return await compat.download(self._crawler, request)

    def _downloaded(self, response: Response, request: Request) -> None:
        """Keep Scrapy from decoding the body, which `decode` does, and from a retry if the site says when."""
        if ROBOTS_DOWNLOAD not in request.meta:
            return
        self._ends.mark(response, request)
        if "Content-Encoding" in response.headers:
            response.headers.setlist(ENCODING_HEADER, response.headers.pop("Content-Encoding"))
        if "Retry-After" in response.headers and stated_wait(
            response.status, _kept_headers(response), time.time()
        ):
            request.meta["dont_retry"] = True

    def is_own(self, request: Request) -> bool:
        """Return whether a request is a download of a robots.txt, and limit its retries if it is.

        The last try is marked `dont_retry`, because Scrapy would log an ERROR when it gives up. Raises
        `ClosingError` for a retry while the crawl is closing.
        """
        if ROBOTS_DOWNLOAD not in request.meta:
            return False
        retries = request.meta.get("retry_times", 0)
        if retries and compat.is_closing(self._crawler):
            raise ClosingError
        self._ends.watch(request)
        request.meta[_TRY] = time.monotonic()
        if retries >= request.meta.get("max_retry_times", 0):
            request.meta["dont_retry"] = True
        return True

    def proxy_of(self, page: Request) -> str:
        """Return the proxy that a request shares with its download of robots.txt; empty if there is none."""
        return str(page.meta.get("proxy") or "") if "proxy" in self._config.copy_meta else ""

    @cached_property  # it resets which warnings Python has shown
    def _missing_internals(self) -> list[str]:
        return missing_internals(self._crawler)

    def _being_sent(self, request: Request, number: object) -> tuple[Request, object] | None:
        """Return the request that is being sent for `request`, with its try; the same one if that is hidden.

        A middleware may have replaced it by another, with the `number` of the download in its meta.
        """
        if self._missing_internals:
            return request, None
        sent = slot_of(compat.downloader(self._crawler), request, self._crawler.spider).transferring
        own = next((one for one in sent if one is request or one.meta.get(IN_FLIGHT) == number), None)
        return own and (own, own.meta.get(_TRY))

    def _request(
        self, origin: Origin, url: str, page: Request, previous: Snapshot | None, more: dict[str, object]
    ) -> Request:
        meta: dict[str, object] = {
            **more,
            "allow_offsite": True,
            "dont_cache": True,  # Scrapy's HTTP cache ignores freshness, and would keep a failure for ever
            "dont_merge_cookies": True,
            "dont_obey_robotstxt": True,  # for the plugin's middleware too
            "dont_redirect": True,  # disables meta refresh too
            "download_fail_on_dataloss": True,
            "download_maxsize": self._config.maxsize,
            "download_timeout": self._config.timeout,
            "max_retry_times": self._config.retry_times,
            "playwright": False,
            ROBOTS_DOWNLOAD: str(origin),
        }
        # None keeps out the values of DEFAULT_REQUEST_HEADERS.
        headers: dict[str, str | bytes | None] = {"Cookie": None, "Referer": None}
        zyte_api = _zyte_api(page, self._crawler.settings)
        meta |= zyte_api
        if not any(zyte_api.values()):  # Zyte API sends its own header, as a browser does
            # A robots.txt is small, and not every encoding shows whether the file is complete.
            headers["Accept-Encoding"] = "identity"
        if previous is not None:
            headers |= previous.conditions(url)
        # If the page has none yet, the middleware that sets the page's User-Agent sets this one too.
        if user_agent := page.headers.get("User-Agent"):
            headers["User-Agent"] = user_agent
        for key in self._config.copy_meta:
            if key in page.meta and not (key == "download_slot" and has_slot_of_host(page)):
                meta[key] = page.meta[key]
        if "_scheme_proxy" in page.meta:
            # The proxy came from the environment, which may have another for the scheme of this URL.
            meta.pop("proxy", None)
        elif meta.get("proxy") and (credentials := page.headers.get("Proxy-Authorization")):
            # The page is a retry, and Scrapy has already moved the proxy's credentials to this header.
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


def _zyte_api(page: Request, settings: BaseSettings) -> dict[str, object]:
    """Return the meta with which scrapy-zyte-api gets robots.txt as it gets a page, and its bytes."""
    is_transparent = settings.getbool("ZYTE_API_TRANSPARENT_MODE")
    for key, is_on, setting in (
        ("zyte_api", False, "ZYTE_API_DEFAULT_PARAMS"),
        ("zyte_api_automap", is_transparent, "ZYTE_API_AUTOMAP_PARAMS"),
    ):
        params = page.meta.get(key, is_on)
        if params is False or params is None:
            continue
        defaults = {name: value for name, value in settings.getdict(setting).items() if value}
        asked = {**defaults, **(params if isinstance(params, Mapping) else {})}
        kept = {name: asked[name] for name in _ZYTE_API_KEPT if asked.get(name)}
        kept |= {"httpResponseBody": True, "httpResponseHeaders": True}
        return {key: dict.fromkeys(defaults) | kept}
    return {"zyte_api_automap": False} if is_transparent else {}


def redirect_target(response: Response) -> str | None:
    """Return the URL that a response redirects to; None without a redirect to an http or https URL."""
    if response.status not in _REDIRECTS or not (location := response.headers.get("Location")):
        return None
    try:
        origin, target = split(urljoin(response.url, safe_url_string(location)))
    except ValueError:
        return None
    return f"{origin}{target}" if origin else None  # without credentials and fragment


class UnreadableBodyError(Exception):
    """A response arrived, but its body is incomplete or cannot be decoded."""


def _failed(origin: Origin, url: str, exc: Exception, *, is_proxied: bool = False) -> Snapshot:
    why = str(exc)
    if isinstance(exc, StopDownload):
        exc.response = None  # frees the body
        why = why or "a signal handler of the project stopped the download"
    # The frames of the traceback would keep their objects alive, half a body for example.
    exc.__traceback__ = exc.__cause__ = exc.__context__ = None
    kind = "" if isinstance(exc, (UnreadableBodyError, NoRoomError, ClosingError)) else type(exc).__name__
    return Snapshot(
        origin,
        url,
        time.time(),
        error=printable(without_userinfo(": ".join(filter(None, (kind, why))))),
        local_failure=is_proxied or isinstance(exc, _OUR_OWN),
        exception=exc,
    )


def _of_response(origin: Origin, response: Response, maxsize: int) -> Snapshot:
    is_read = 200 <= response.status < 300
    if is_read and _STOPPED in response.flags:
        return _failed(origin, response.url, StopDownload())
    try:
        body = _plain_body(response, maxsize) if is_read else b""
    except ValueError as exc:
        return _failed(origin, response.url, UnreadableBodyError(exc))
    now = time.time()
    return Snapshot(
        origin,
        response.url,
        now,
        status=response.status,
        headers=_kept_headers(response),
        body=body,
        local_failure=response.status in _ON_THE_WAY,
        received=now,
    )


def _kept_headers(response: Response) -> dict[str, str]:
    return {
        name.decode().lower(): b", ".join(response.headers.getlist(name)).decode("latin-1")
        for name in response.headers
        if name in _KEPT_HEADERS
    }


def _plain_body(response: Response, maxsize: int) -> bytes:
    """Return the whole body of a response, decoded, or raise `ValueError`."""
    if response.status == 206 or _CUT_OFF in response.flags:
        raise ValueError("the response is incomplete")
    values = response.headers.getlist("Content-Encoding") + response.headers.getlist(ENCODING_HEADER)
    return decode(response.body, b",".join(values).decode("latin-1"), maxsize)
