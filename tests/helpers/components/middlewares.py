"""Downloader middlewares of users, and a spider middleware."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlencode, urljoin, urlsplit

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response, TextResponse

from scrapy_norobots import compat
from tests.helpers.spiders.pages import Pages

if TYPE_CHECKING:
    from typing_extensions import Self


class NoRobotsTxt:
    """A downloader middleware that drops each request for a robots.txt."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        if request.url.endswith("/robots.txt"):
            raise IgnoreRequest("not for you")


class DeadProxy:
    """A downloader middleware that sends all requests to a missing proxy."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        request.meta["proxy"] = "http://127.0.0.1:1"


class UsualUserAgent:
    """A downloader middleware that sets the User-Agent of requests without one."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        request.headers.setdefault("User-Agent", "UsualBot/1.0")


class OtherUserAgent:
    """A downloader middleware that sets the User-Agent of each request, for example to rotate it."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        request.headers["User-Agent"] = "TurnBot/1.0"


class OneSlot:
    """A downloader middleware that gives all pages one download slot."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        if "norobots_download" not in request.meta:
            request.meta["download_slot"] = "all"


class SpreadsOverSlots:
    """A downloader middleware that sets the download slot of each page, for example to rotate proxies."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        if "norobots_download" not in request.meta:
            request.meta["download_slot"] = request.url


class SeesExceptions:
    """A downloader middleware that sees the exceptions of others."""

    def process_exception(self, request: Request, exception: Exception, spider: Spider | None = None) -> None:
        """Do nothing."""


class RobotsTxtPlainly:
    """A user's downloader middleware that tells such a handler not to render robots.txt."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        if request.meta.get("norobots_download"):
            request.meta["render"] = False


class RenderAll:
    """A user's downloader middleware that renders every request in a browser."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        request.meta.setdefault("playwright", True)


class ThroughService:
    """A downloader middleware that sends pages through a service, in a new request."""

    def __init__(self, service: str, names_page: bool) -> None:
        self._service = service
        self._names_page = names_page

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler.settings["SERVICE"], crawler.settings.getbool("NAMES_PAGE"))

    def process_request(self, request: Request, spider: Spider | None = None) -> Request | None:
        if "through" in request.meta or "norobots_download" in request.meta:
            return None
        meta = {**request.meta, "through": True}
        if self._names_page:
            meta["norobots_url"] = request.url
        return request.replace(url=f"{self._service}/get?{urlencode({'url': request.url})}", meta=meta)


class AsksAnotherFirst:
    """A downloader middleware that downloads something before each page, for example to log in."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_request(self, request: Request, spider: Spider | None = None) -> None:
        if not request.url.endswith(("/token", "/robots.txt")):
            await compat.download(self._crawler, Request(self._crawler.settings["OTHER"], dont_filter=True))


class AsksItsHostFirst(AsksAnotherFirst):
    """The same, but it downloads from the host of the page."""

    async def process_request(self, request: Request, spider: Spider | None = None) -> None:
        if not request.url.endswith(("/token", "/robots.txt")):
            token = Request(urljoin(request.url, "/token"), dont_filter=True)
            await compat.download(self._crawler, token)


class DownloadsOnBehalf:
    """A downloader middleware that downloads the page ``/first`` of another site before each page."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_request(self, request: Request, spider: Spider | None = None) -> None:
        other = self._crawler.settings["OTHER"]
        if not request.url.startswith(other) and not request.url.endswith("/robots.txt"):
            await compat.download(self._crawler, Request(f"{other}/first"))


class DropsRepeated:
    """A downloader middleware that drops a request which it sees again, and lets others wait for a while."""

    def __init__(self, crawler: Crawler) -> None:
        self._pause = crawler.settings.getfloat("PAUSE")
        self._seen: set[str] = set()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_request(self, request: Request, spider: Spider | None = None) -> None:
        if request.url.endswith("/robots.txt"):
            return
        if request.url in self._seen:
            raise IgnoreRequest("seen before")
        self._seen.add(request.url)
        await compat.sleep(self._pause)


class AnswersItself:
    """A downloader middleware that returns a response for each page after a while, like a renderer."""

    async def process_request(self, request: Request, spider: Spider | None = None) -> Response | None:
        if request.url.endswith("/robots.txt"):
            return None
        await compat.sleep(0.02)
        return TextResponse(request.url, body=b"")


class AnswersLate:
    """A downloader middleware that returns a response for each page after a while, like a slow renderer.

    Counts how many pages it has at once.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._now = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_request(self, request: Request, spider: Spider | None = None) -> Response | None:
        if request.url.endswith("/robots.txt"):
            return None
        self._now += 1
        assert self._crawler.stats is not None
        self._crawler.stats.max_value("at once", self._now)
        await compat.sleep(1.2)
        self._now -= 1
        return TextResponse(request.url, body=b"")


class TakesItsTime:
    """A downloader middleware that takes long for each response, and counts how many it has at once."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._now = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Response:
        if not request.url.endswith("/robots.txt"):
            self._now += 1
            assert self._crawler.stats is not None
            self._crawler.stats.max_value("looked at", self._now)
            await compat.sleep(0.3)
            self._now -= 1
        return response


class SeesResponses:
    """A spider middleware that records its input."""

    def process_spider_input(self, response: Response, spider: Spider | None = None) -> None:
        spider = cast("Any", response.request).callback.__self__
        cast("Pages", spider).notes.setdefault("input", []).append(urlsplit(response.url).path)
