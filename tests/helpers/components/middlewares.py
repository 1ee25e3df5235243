"""Downloader middlewares of users, and a spider middleware."""

from __future__ import annotations

import json
from asyncio import CancelledError
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlencode, urljoin, urlsplit

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response, TextResponse
from twisted.internet.defer import Deferred

from scrapy_norobots.scrapy_api import compat
from tests.helpers.spiders.pages import Pages

if TYPE_CHECKING:
    from typing_extensions import Self


class NoRobotsTxt:
    """A downloader middleware that drops each request for a robots.txt."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        if request.url.endswith("/robots.txt"):
            raise IgnoreRequest("not for you")


class CancelsRobotsTxt:
    """A downloader middleware whose own task was cancelled while it handled a robots.txt."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        if request.url.endswith("/robots.txt"):
            raise CancelledError


class SignsUrls:
    """A downloader middleware that replaces each request by one with a key in its URL."""

    def process_request(self, request: Request, spider: Spider | None = None) -> Request | None:
        return None if "key=" in request.url else request.replace(url=f"{request.url}?key=7")


class ExemptsLater:
    """A downloader middleware that makes requests for ``/1`` exempt when a request for ``/4`` comes."""

    def __init__(self) -> None:
        self._held: list[Request] = []

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        if request.url.endswith("/1"):
            self._held.append(request)
        if request.url.endswith("/4"):
            for held in self._held:
                held.meta["dont_obey_robotstxt"] = True


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


class CopiesMeta:
    """A downloader middleware that writes the meta of each request as JSON, and reads it again."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        request.meta.update(json.loads(json.dumps(request.meta)))


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


class LeavesForAnotherSlot:
    """A downloader middleware that changes the download slot when a page arrives, for the next try."""

    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Response:
        request.meta["download_slot"] = "next"
        return response


class ExemptsTooLate:
    """Exempts all requests from robots.txt when they have already waited."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        request.meta["dont_obey_robotstxt"] = True


class TriesTheSameAgain:
    """A downloader middleware that sends the same request again once, for example through another proxy."""

    def process_exception(
        self, request: Request, exception: Exception, spider: Spider | None = None
    ) -> Request | None:
        is_last = request.meta.get("is_last", False)
        request.meta["is_last"] = True
        return None if is_last else request


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


class OfCrawler:
    """What is the same in middlewares that need the crawler."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)


class ThroughService(OfCrawler):
    """A downloader middleware that sends pages through a service, in a new request."""

    def process_request(self, request: Request, spider: Spider | None = None) -> Request | None:
        if "through" in request.meta or "norobots_download" in request.meta:
            return None
        meta = {**request.meta, "through": True}
        if self._crawler.settings.getbool("NAMES_PAGE"):
            meta["norobots_url"] = request.url
        service = self._crawler.settings["SERVICE"]
        return request.replace(url=f"{service}/get?{urlencode({'url': request.url})}", meta=meta)


class NamesThePage(OfCrawler):
    """A downloader middleware that says which page a rendering service will fetch."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        if "norobots_download" not in request.meta:
            request.meta["norobots_url"] = self._crawler.settings["PAGE"]


class AsksAnotherFirst(OfCrawler):
    """A downloader middleware that downloads a URL before each page, for example to log in.

    The URL ends with ``/token``, because nothing is downloaded before such a URL.
    """

    async def process_request(self, request: Request, spider: Spider | None = None) -> None:
        if not request.url.endswith(("/token", "/robots.txt")):
            await compat.download(self._crawler, Request(self.first(request), dont_filter=True))

    def first(self, request: Request) -> str:
        """Return the URL."""
        return str(self._crawler.settings["OTHER"])


class AsksItsHostFirst(AsksAnotherFirst):
    """The same, but it downloads from the host of the page."""

    def first(self, request: Request) -> str:
        return urljoin(request.url, "/token")


class DropsRepeated(OfCrawler):
    """A downloader middleware that drops a request which it sees again, and lets others wait for a while."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._seen: set[str] = set()

    async def process_request(self, request: Request, spider: Spider | None = None) -> None:
        if request.url.endswith("/robots.txt"):
            return
        if request.url in self._seen:
            raise IgnoreRequest("seen before")
        self._seen.add(request.url)
        await compat.sleep(self._crawler.settings.getfloat("PAUSE"))


class Slow(OfCrawler):
    """Keeps pages for a while; the stat ``at once`` says how many it had at once."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._now = 0

    async def keep(self) -> None:
        """Keep a page."""
        self._now += 1
        assert self._crawler.stats is not None
        self._crawler.stats.max_value("at once", self._now)
        await compat.sleep(self._crawler.settings.getfloat("PAUSE"))
        self._now -= 1


class AnswersLate(Slow):
    """A downloader middleware that returns a response for each page after a while, like a renderer."""

    async def process_request(self, request: Request, spider: Spider | None = None) -> Response | None:
        if request.url.endswith("/robots.txt"):
            return None
        await self.keep()
        return TextResponse(request.url, body=b"")


class SendsLate(Slow):
    """A downloader middleware that keeps the request of each page for a while."""

    async def process_request(self, request: Request, spider: Spider | None = None) -> None:
        if not request.url.endswith("/robots.txt"):
            await self.keep()


class TakesItsTime(Slow):
    """A downloader middleware that takes long for each response."""

    async def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Response:
        if not request.url.endswith("/robots.txt"):
            await self.keep()
        return response


class SendsTogether:
    """A downloader middleware that keeps requests of pages until four have come."""

    def __init__(self) -> None:
        self._kept: list[Deferred[None]] = []

    async def keep(self, request: Request) -> None:
        """Keep a page."""
        if not request.url.endswith("/robots.txt"):
            kept: Deferred[None] = Deferred()
            self._kept.append(kept)
            if len(self._kept) == 4:
                for one in self._kept:
                    one.callback(None)
            await compat.waiting_for(kept)

    async def process_request(self, request: Request, spider: Spider | None = None) -> None:
        await self.keep(request)


class AnswersTogether(SendsTogether):
    """The same for responses."""

    async def process_request(self, request: Request, spider: Spider | None = None) -> None:
        """Do nothing."""

    async def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Response:
        await self.keep(request)
        return response


class WaitsForToken:
    """A downloader middleware that lets pages wait until ``/token`` has come, which is one of them."""

    def __init__(self) -> None:
        self._has_come = False
        self._waiting: list[Deferred[None]] = []

    async def process_request(self, request: Request, spider: Spider | None = None) -> None:
        if not (self._has_come or request.url.endswith(("/token", "/robots.txt"))):
            waiting: Deferred[None] = Deferred()
            self._waiting.append(waiting)
            await compat.waiting_for(waiting)

    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Response:
        if request.url.endswith("/token"):
            self._has_come = True
            for one in self._waiting:
                one.callback(None)
        return response


class WaitsForAnotherToLeave(OfCrawler):
    """A downloader middleware that lets ``/1`` wait until another page has left its slot.

    It keeps the response of that page until that of ``/1`` has come.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._has_left: Deferred[None] = Deferred()
        self._has_come: Deferred[None] = Deferred()
        crawler.signals.connect(self._left, signals.request_left_downloader)

    async def process_request(self, request: Request, spider: Spider | None = None) -> None:
        if request.url.endswith("/1"):
            await compat.waiting_for(self._has_left)

    def _left(self, request: Request) -> None:
        if not request.url.endswith(("/1", "/robots.txt")):
            self._has_left.callback(None)

    async def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Response:
        if request.url.endswith("/1"):
            self._has_come.callback(None)
        elif not request.url.endswith("/robots.txt"):
            await compat.waiting_for(self._has_come)
        return response


class SeesResponses:
    """A spider middleware that records its input."""

    def process_spider_input(self, response: Response, spider: Spider | None = None) -> None:
        spider = cast("Any", response.request).callback.__self__
        cast("Pages", spider).notes.setdefault("input", []).append(urlsplit(response.url).path)


class NotStarting:
    """Keeps the crawl from starting, after the plugin is ready."""

    def __init__(self) -> None:
        raise RuntimeError("not today")
