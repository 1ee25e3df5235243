"""One download of a robots.txt through Scrapy's engine, as a `Snapshot`.

The request goes through all downloader middlewares, so the user's proxies, delays, retries and TLS
settings apply, but it is clean: no cookies, no credentials from a URL, no Referer, no meta refresh. Redirects
are followed here, hop by hop, so that where they lead is known and limited. Whatever goes wrong is a
snapshot too, one with an error.
"""

from __future__ import annotations

import time
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest, NotSupported, StopDownload
from scrapy.http.request import NO_CALLBACK
from w3lib.url import safe_url_string

from scrapy_norobots import compat
from scrapy_norobots.body import ENCODING_HEADER, decode
from scrapy_norobots.downloader import ROBOTS_DOWNLOAD
from scrapy_norobots.in_flight import BodiesInFlight, NoRoomError, free_body
from scrapy_norobots.internals import missing_internals, slot_of
from scrapy_norobots.snapshot import Snapshot
from scrapy_norobots.standard import Origin
from scrapy_norobots.standard.decision import printable
from scrapy_norobots.standard.urls import split

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from scrapy_norobots.evidence import Evidence
    from scrapy_norobots.settings import Config

# Before any page, as in Scrapy's own middleware.
DOWNLOAD_PRIORITY = 1000

# The headers that later decisions need: freshness, revalidation, and what the body is.
_KEPT_HEADERS = (
    "age", "cache-control", "content-type", "date", "etag", "expires", "last-modified", "x-robots-tag",
)  # fmt: skip

# Which header asks whether an answer with which one is still good (RFC 9110, 13.1).
_CONDITIONS = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}

_NOT_SENT = ("Cookie", "Referer")

_REDIRECTS = frozenset({301, 302, 303, 307, 308})

# What the crawl's own components raise. Then, as where a proxy is used, the site may answer others.
_OUR_OWN = (IgnoreRequest, NotSupported, StopDownload)

# Statuses that come from a proxy or a network on the way, which want credentials; no site answers them.
_ON_THE_WAY = frozenset({407, 511})

# Marks that Scrapy leaves on an answer that was cut off: by the network, or by a handler's StopDownload. (Its
# mark "partial" says only that the server gave no length.)
_CUT_OFF = frozenset({"dataloss", "download_stopped"})

# How many seconds a download has when the crawl begins to close, by Ctrl-C for instance.
_CLOSING_LIMIT = 3


class Fetcher:
    """Downloads the robots.txt of origins for one crawler."""

    def __init__(self, crawler: Crawler, config: Config, evidence: Evidence | None = None) -> None:
        self._crawler = crawler
        self._evidence = evidence
        self._config = config
        self._unrendered = _unrendered(crawler.settings)
        # A file of the size that is allowed may come even if MEMORY_MAX is too small for it.
        self._bodies = BodiesInFlight(crawler, max(config.memory_max, 2 * config.maxsize))
        crawler.signals.connect(_leave_encoded, signals.response_downloaded)

    async def fetch(
        self, origin: Origin, page: Request, previous: Snapshot | None = None, url: str | None = None
    ) -> Snapshot:
        """Download the robots.txt of an origin, on behalf of a request for one of its pages.

        `previous`, a snapshot of an earlier response, makes the request conditional: the response may be a
        304. `url` names another file of the origin to download instead. While the crawl is closing, it ends
        within a few seconds.
        """
        url = url or origin.robots_url
        seconds_closing = 0

        def is_over() -> bool:
            nonlocal seconds_closing
            seconds_closing += compat.is_closing(self._crawler)
            return seconds_closing > _CLOSING_LIMIT

        try:
            with self._bodies.counted() as meta:
                return await compat.unless(is_over, 1, self._follow(origin, url, page, previous, meta))
        except compat.LateError:
            return self._failed(origin, url, IgnoreRequest("the crawl is closing"), local_failure=True)

    async def _follow(
        self, origin: Origin, url: str, page: Request, previous: Snapshot | None, meta: dict[str, object]
    ) -> Snapshot:
        """Download a URL, and what it redirects to."""
        hops_left = self._config.redirect_max
        while True:
            request = self._request(origin, url, page, previous)
            request.meta.update(meta)
            try:
                response = await self._download(request)
            except Exception as exc:
                local_failure = isinstance(exc, _OUR_OWN) or bool(request.meta.get("proxy"))
                return self._failed(origin, url, exc, local_failure=local_failure)
            target = _redirect_target(response)
            is_last = target is None or not hops_left
            snapshot = _of_response(origin, response, self._config.maxsize) if is_last else None
            if self._evidence is not None:
                self._evidence.answered(origin, response, snapshot, previous)
            if snapshot is not None:
                return snapshot
            assert target is not None
            url, hops_left = target, hops_left - 1
            del response  # nobody needs its body while the next hop is downloaded

    def _failed(self, origin: Origin, url: str, exc: Exception, *, local_failure: bool) -> Snapshot:
        snapshot = _failed(origin, url, exc, local_failure=local_failure)
        if self._evidence is not None:
            self._evidence.failed(snapshot)
        return snapshot

    @cached_property
    def _shows_slots(self) -> bool:
        return not missing_internals(self._crawler)

    def _being_sent(self, request: Request) -> Request | None:
        """Return what is being sent for a request; a downloader that does not show that is always sending.

        A middleware may have put another request for the same URL in its place.
        """
        if not self._shows_slots:
            return request
        crawler = self._crawler
        sent = slot_of(compat.downloader(crawler), request, crawler.spider).transferring
        return next((one for one in sent if ROBOTS_DOWNLOAD in one.meta and one.url == request.url), None)

    async def _download(self, request: Request) -> Response:
        """Download a request; raise `TimeoutError` if the download handler keeps no limit of time itself.

        Some have one for each read only, which a server that sends a byte now and then never meets. The time
        that it waits in its download slot for others is not counted.
        """
        limit = self._config.timeout
        transferring: object = None

        def is_late() -> bool:
            nonlocal transferring
            before, transferring = transferring, self._being_sent(request)
            return transferring is not None and transferring is before  # for all of the time since

        try:
            return await compat.unless(is_late, limit, compat.download(self._crawler, request))
        except compat.LateError:
            raise TimeoutError(f"the download handler did not end it within {limit:g} s") from None

    def _request(self, origin: Origin, url: str, page: Request, previous: Snapshot | None) -> Request:
        meta: dict[str, object] = {
            "allow_offsite": True,
            "dont_cache": True,  # Scrapy's HTTP cache knows no freshness, and would keep a failure for ever
            "dont_merge_cookies": True,
            "dont_obey_robotstxt": True,  # this middleware lets it pass too
            "dont_redirect": True,  # nor is a meta refresh followed
            "download_fail_on_dataloss": True,
            "download_maxsize": self._config.maxsize,
            "download_timeout": self._config.timeout,
            "max_retry_times": self._config.retry_times,
            ROBOTS_DOWNLOAD: str(origin),
            **self._unrendered,
        }
        # A robots.txt is small; and whether all of it has come is not told by every encoding.
        headers: dict[str, str | bytes | None] = {"Accept-Encoding": "identity"}
        # What DEFAULT_REQUEST_HEADERS would add; None keeps it out.
        headers |= dict.fromkeys(_NOT_SENT)
        if previous is not None and previous.url == url:
            headers |= {
                name: previous.headers[validator]
                for validator, name in _CONDITIONS.items()
                if validator in previous.headers
            }
        # Where the page has none yet, what will give it one does the same here.
        if user_agent := page.headers.get("User-Agent"):
            headers["User-Agent"] = user_agent
        for key in self._config.copy_meta:
            if key in page.meta and not (key == "download_slot" and _is_slot_of_host(page)):
                meta[key] = page.meta[key]
        if "_scheme_proxy" in page.meta:
            # The proxy came from the environment, which has its own for each scheme.
            meta.pop("proxy", None)
        elif meta.get("proxy") and (credentials := page.headers.get("Proxy-Authorization")):
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


def limit_retries(crawler: Crawler, request: Request) -> None:
    """Have Scrapy not retry a download of a robots.txt too often, or while the crawl is closing.

    Scrapy would log an ERROR when it gives up, but what that means for the crawl is logged anyway.
    """
    retries = request.meta.get("retry_times", 0)
    if retries and compat.is_closing(crawler):
        raise IgnoreRequest("the crawl is closing")
    if retries >= request.meta.get("max_retry_times", 0):
        request.meta["dont_retry"] = True


def _is_slot_of_host(page: Request) -> bool:
    """Whether a page's download slot is that of a host, which Scrapy sets itself when it sends a request.

    A redirect keeps it, so it may be that of another host, and must not hold up the robots.txt of this one.
    """
    urls = (page.url, *page.meta.get("redirect_urls", ()))
    return page.meta["download_slot"] in {urlsplit(url).hostname for url in urls}


def _unrendered(settings: BaseSettings) -> dict[str, object]:
    """Return the meta that tells handlers which may render every request to fetch the file itself."""
    marks: dict[str, object] = {"playwright": False}
    if settings.getbool("ZYTE_API_TRANSPARENT_MODE"):
        # Texts say where from (a country, say), all else what to make of a page, so that is taken back.
        automap = settings.getdict("ZYTE_API_AUTOMAP_PARAMS").items()
        reset = {name: None for name, value in automap if not isinstance(value, str)}
        if reset:
            marks["zyte_api_automap"] = {**reset, "httpResponseBody": True}
    return marks


def _redirect_target(response: Response) -> str | None:
    """Return where an answer redirects to, or None if it does not, or not to an http or https URL."""
    location = response.headers.get("Location")
    if response.status not in _REDIRECTS or not location:
        return None
    try:
        origin, target = split(urljoin(response.url, safe_url_string(location)))
    except ValueError:
        return None
    return f"{origin}{target}" if origin else None  # credentials and a fragment do not go along


class UnreadableBodyError(Exception):
    """The response came, but not the whole of its body, or not in a way that can be read."""


def _failed(origin: Origin, url: str, exc: Exception, *, local_failure: bool = False) -> Snapshot:
    if isinstance(exc, StopDownload):
        free_body(exc)
    # What was in use when it was raised, half a body for one, would be kept with it.
    exc.__traceback__ = exc.__cause__ = exc.__context__ = None
    kind = "" if isinstance(exc, (UnreadableBodyError, NoRoomError)) else type(exc).__name__
    error = ": ".join(filter(None, (kind, str(exc))))
    return Snapshot(
        origin, url, time.time(), error=printable(error), local_failure=local_failure, exception=exc
    )


def _of_response(origin: Origin, response: Response, maxsize: int) -> Snapshot:
    try:
        body = _plain_body(response, maxsize) if 200 <= response.status < 300 else b""
    except ValueError as exc:
        return _failed(origin, response.url, UnreadableBodyError(exc))
    headers = {}
    for name in _KEPT_HEADERS:
        values = response.headers.getlist(name)
        if values:
            headers[name] = b", ".join(values).decode("latin-1")
    return Snapshot(
        origin,
        response.url,
        time.time(),
        status=response.status,
        headers=headers,
        body=body,
        local_failure=response.status in _ON_THE_WAY,
        from_site=True,
    )


def _plain_body(response: Response, maxsize: int) -> bytes:
    """Return the whole body of an answer, decoded, or raise `ValueError`."""
    if response.status == 206 or _CUT_OFF.intersection(response.flags):
        raise ValueError("the answer was cut off")
    values = response.headers.getlist("Content-Encoding") + response.headers.getlist(ENCODING_HEADER)
    names = (name.strip().lower() for name in b",".join(values).decode("latin-1").split(","))
    return decode(response.body, [name for name in names if name not in ("", "identity")], maxsize)


def _leave_encoded(response: Response, request: Request) -> None:
    """Have Scrapy leave the body of a robots.txt as it came: `decode` sees whether all of it is there."""
    if ROBOTS_DOWNLOAD in request.meta:
        response.headers.setlist(ENCODING_HEADER, response.headers.getlist("Content-Encoding"))
        response.headers.pop("Content-Encoding", None)
