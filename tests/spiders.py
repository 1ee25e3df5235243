"""Spiders for the tests' crawls."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import warnings
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, partialmethod
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from scrapy import Request, Spider, signals
from scrapy.core.downloader import Downloader
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import CloseSpider, IgnoreRequest, ScrapyDeprecationWarning, StopDownload
from scrapy.http import Response, TextResponse
from scrapy.resolver import CachingThreadedResolver
from scrapy.robotstxt import PythonRobotParser, RobotParser
from scrapy.spiders import SitemapSpider
from twisted.internet.defer import CancelledError, Deferred, fail
from twisted.internet.error import DNSLookupError
from twisted.python.failure import Failure

from scrapy_norobots import NoRobotsMiddleware, RobotsDownloader, RobotsTxt, compat
from scrapy_norobots.origins import OriginCache

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class Drop:
    """A request that did not come back: its URL, the exception's type and text, the rule's line, and
    `RobotsUnreachable.retry_after`.
    """

    url: str
    type: str
    text: str
    line: int | None = None
    retry_after: float | None = None


class Pages(Spider):
    """Fetches the requests of a job, follows links if told to, and remembers what came of each."""

    name = "pages"
    custom_settings: dict[str, Any] | None = None

    def __init__(self, requests: list[str | dict[str, Any]], follow: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._requests = requests
        self._follow = follow
        self.pages: list[str] = []
        self.drops: list[Drop] = []
        self.notes: dict[str, Any] = {}

    async def start(self) -> AsyncIterator[Request]:
        for request in self.start_requests():
            yield request

    def start_requests(self) -> Iterator[Request]:
        for given in self._requests:
            yield self.request(**({"url": given} if isinstance(given, str) else given))

    def request(self, url: str, **kwargs: Any) -> Request:
        return Request(url, callback=self.parse, errback=self.dropped, **kwargs)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        self.pages.append(response.url)
        if self._follow and isinstance(response, TextResponse):
            for link in response.css("a::attr(href)").getall():
                yield self.request(response.urljoin(link))

    def dropped(self, failure: Failure) -> None:
        error = failure.value
        rule = getattr(getattr(error, "decision", None), "rule", None)
        self.drops.append(
            Drop(
                url=failure.request.url,  # type: ignore[attr-defined]
                type=type(error).__name__,
                text=str(error),
                line=rule.line if rule else None,
                retry_after=getattr(error, "retry_after", None),
            )
        )

    def middleware(self) -> NoRobotsMiddleware:
        """The plugin's middleware that this crawl runs with."""
        engine = self.crawler.engine
        assert engine is not None
        for middleware in engine.downloader.middleware.middlewares:
            if isinstance(middleware, NoRobotsMiddleware):
                return middleware
        raise LookupError("the middleware is not enabled")


class OrdersTheClass(Pages):
    """Has an order of its own for Scrapy's robots.txt middleware, by its class."""

    custom_settings = {"DOWNLOADER_MIDDLEWARES": {RobotsTxtMiddleware: 543}}  # noqa: RUF012  # as users write it


class SwitchesTheClassOff(Pages):
    """Switches Scrapy's robots.txt middleware off, by its class."""

    custom_settings = {"DOWNLOADER_MIDDLEWARES": {RobotsTxtMiddleware: None}}  # noqa: RUF012  # as users write it


class ScrapysOwn(RobotsTxtMiddleware):
    """Scrapy's, as a project may have changed it."""


class ListsASubclassOfScrapys(Pages):
    """Has a subclass of Scrapy's robots.txt middleware, by its class."""

    custom_settings = {"DOWNLOADER_MIDDLEWARES": {ScrapysOwn: 110}}  # noqa: RUF012  # as users write it


class InMemory(Pages):
    """Asks about an origin that is in memory, and notes whether anything was awaited."""

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        for name, path in (("allowed", "/open"), ("forbidden", "/back/")):
            coroutine = self.middleware().process_request(Request(response.urljoin(path)))
            try:
                coroutine.send(None)
            except StopIteration:
                self.notes[name] = "passed at once"
            except IgnoreRequest as exc:
                self.notes[name] = f"{type(exc).__name__} at once"
            else:
                self.notes[name] = "waited"
                coroutine.close()
        yield from ()


class Cancelling(Pages):
    """Cancels the first and the last of those who wait for the robots.txt of another site."""

    def __init__(self, other: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._other = other

    async def parse(self, response: Response, **kwargs: Any) -> None:  # type: ignore[override]
        paths = {"first": "/open", "second": "/back/", "third": "/open", "last": "/back/"}
        waiting = {name: compat.spawn(self._ask(name, path)) for name, path in paths.items()}
        # Let them get as far as the download.
        await compat.waiting_for(compat.spawn(self._pause()))
        for name in ("first", "last"):
            waiting[name].cancel()
        for name, deferred in waiting.items():
            try:
                await compat.waiting_for(deferred)
            except (CancelledError, asyncio.CancelledError):
                self.notes[name] = "CancelledError"
        await compat.waiting_for(compat.spawn(self._ask("later", "/back/")))

    async def _pause(self) -> None:
        await compat.download(self.crawler, Request("data:,", meta={"dont_obey_robotstxt": True}))

    async def _ask(self, name: str, path: str) -> None:
        try:
            await self.middleware().process_request(Request(self._other + path))
        except IgnoreRequest as exc:
            self.notes[name] = type(exc).__name__
        else:
            self.notes[name] = "passed"


class Listening(Pages):
    """Notes each `robots_parsed` signal: the parser, the request, and what it says of /back/."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Listening:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.parsed, signal=signals.robots_parsed)
        return spider

    def parsed(self, robotparser: RobotParser, request: Request) -> None:
        allowed = robotparser.allowed(f"{request.url}back/", "FooBot")
        self.notes.setdefault("parsed", []).append([type(robotparser).__name__, request.url, allowed])


class BrokenParser(PythonRobotParser):
    """A parser that fails on everything but an empty file."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> BrokenParser:
        if robotstxt_body:
            raise RuntimeError("no such luck")
        return super().from_crawler(crawler, robotstxt_body)


class UninstalledParser(PythonRobotParser):
    """A parser whose library is not installed."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> UninstalledParser:
        raise ModuleNotFoundError("No module named 'robots'")


class FailingParser(PythonRobotParser):
    """A parser that reads every file, and fails when asked about a host but the first."""

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        if "town.example" in str(url):
            return True
        raise RuntimeError("not this one")


class TellsItsThread(PythonRobotParser):
    """A parser that logs in which thread it reads a file."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> TellsItsThread:
        thread = threading.current_thread()
        kind = "main" if thread is threading.main_thread() else thread.name
        logging.getLogger(__name__).info("%d bytes read in thread %s", len(robotstxt_body), kind)
        return super().from_crawler(crawler, robotstxt_body)


class TellsTheRobotsType(PythonRobotParser):
    """A parser that logs what it is asked by, and takes nothing else."""

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        logging.getLogger(__name__).info("asked by %s", type(user_agent).__name__)
        return True


class NoRobotsTxt:
    """A downloader middleware that lets nobody ask for a robots.txt."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        if request.url.endswith("/robots.txt"):
            raise IgnoreRequest("not for you")


class DeadProxy:
    """A downloader middleware that sends all requests to a proxy that is not there."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        request.meta["proxy"] = "http://127.0.0.1:1"


class Asking(Pages):
    """Asks the middleware about URLs, one after another, and notes what it was told.

    `plan` is pairs of a pause in seconds and a URL. Nobody waits for a pause: the plugin's clocks are put
    forward. An answer is ``passed`` or the name of an exception; that of the exception's cause follows, if it
    has one.
    """

    def __init__(self, plan: list[tuple[float, str]], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._plan = plan
        self._ahead = 0.0
        monotonic, wall = time.monotonic, time.time
        time.time = lambda: wall() + self._ahead
        # Made before the middleware is, and so in time.
        with_clock = partialmethod(OriginCache.__init__, clock=lambda: monotonic() + self._ahead)
        OriginCache.__init__ = with_clock  # type: ignore[assignment, method-assign]

    async def parse(self, response: Response, **kwargs: Any) -> None:  # type: ignore[override]
        told = self.notes["told"] = []
        for pause, url in self._plan:
            self._ahead += pause
            try:
                await self.middleware().process_request(Request(url))
            except IgnoreRequest as exc:
                names = [type(error).__name__ for error in (exc, exc.__cause__) if error is not None]
                told.append(" from ".join(names))
            else:
                told.append("passed")


class Then(Pages):
    """Fetches one more URL, from the first page."""

    def __init__(self, then: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._then = then

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        yield from super().parse(response)
        if len(self.pages) == 1:
            yield self.request(self._then)


class ThenAnyway(Then):
    """Fetches one more URL when a request has failed."""

    def dropped(self, failure: Failure) -> Iterator[Request]:  # type: ignore[override]
        super().dropped(failure)
        if len(self.drops) == 1:
            yield self.request(self._then)


class StopsEarly(Pages):
    """Follows the links of the first page, and stops the crawl after a pause, in seconds."""

    def __init__(self, pause: float = 0, **kwargs: Any) -> None:
        super().__init__(follow=True, **kwargs)
        self._pause = pause

    async def parse(self, response: Response, **kwargs: Any) -> AsyncIterator[Request]:  # type: ignore[override]
        for request in super().parse(response):
            yield request
        await compat.waiting_for(compat.spawn(compat.sleep(self._pause)))
        raise CloseSpider("enough")


class NoNames(CachingThreadedResolver):
    """A resolver that knows no name."""

    def getHostByName(self, name: str, timeout: Sequence[int] = ()) -> Deferred[str]:  # noqa: N802  # Twisted's
        return fail(DNSLookupError(name))


class StopsWhenIdle(Pages):
    """Stops the crawl when there is nothing to do but to wait, and notes what the downloader holds then."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.idle, signal=signals.spider_idle)
        return spider

    def idle(self) -> None:
        if "active" in self.notes:
            return
        engine = self.crawler.engine
        assert engine is not None
        slots = engine.downloader.slots.values()
        self.notes["active"] = len(engine.downloader.active)
        self.notes["in slots"] = sum(len(slot.active) for slot in slots)
        if hasattr(self.crawler, "stop_async"):
            compat.spawn(self.crawler.stop_async())
        else:
            self.crawler.stop()


class DownloadsItself(Pages):
    """Downloads URLs itself, from its first page, and notes their statuses, or the exception."""

    def __init__(self, then: list[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._then = then

    async def parse(self, response: Response, **kwargs: Any) -> None:  # type: ignore[override]
        for url in self._then:
            try:
                answer = await compat.download(self.crawler, Request(url))
            except IgnoreRequest as exc:
                self.notes.setdefault("told", []).append(type(exc).__name__)
            else:
                self.notes.setdefault("told", []).append(answer.status)


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


class WithFiles(Pages):
    """Has a media pipeline download the links of its first page, and notes what came of each."""

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        self.pages.append(response.url)
        assert isinstance(response, TextResponse)
        yield {"file_urls": [response.urljoin(link) for link in response.css("a::attr(href)").getall()]}

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.scraped, signal=signals.item_scraped)
        return spider

    def scraped(self, item: dict[str, Any]) -> None:
        self.notes["files"] = [file["url"] for file in item["files"]]


class Unserializable(Pages):
    """Has callbacks that no queue on a disk can keep."""

    def request(self, url: str, **kwargs: Any) -> Request:
        return Request(url, callback=partial(self.parse), errback=self.dropped, **kwargs)


class Patient(Pages):
    """Has requests wait for closed sites, by settings of its own."""

    custom_settings = {"NOROBOTS_RETRY_CLOSED": 1, "NOROBOTS_ERROR_TTL": 0.1}  # noqa: RUF012  # as users write it


class Unruly(Pages):
    """Obeys no robots.txt, by settings of its own."""

    custom_settings = {"ROBOTSTXT_OBEY": False}  # noqa: RUF012  # as users write it


class Outdated(Pages):
    """Does something that is deprecated."""

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        warnings.warn("the old way", ScrapyDeprecationWarning, stacklevel=2)
        yield from super().parse(response, **kwargs)


class Watching(Pages):
    """Puts many requests on the scheduler at once, from its first page.

    Notes how many requests the downloader had in hand at most, as seen when pages came.
    """

    def __init__(self, then: list[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._then = then
        self._scheduled = 0

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        engine = self.crawler.engine
        assert engine is not None
        now = len(engine.downloader.active)
        self.notes["most active"] = max(now, self.notes.get("most active", 0))
        yield from super().parse(response)
        if len(self.pages) == 1:
            engine.pause()
            for number, url in enumerate(self._then):
                yield self.request(url, priority=number % 3)

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.scheduled, signal=signals.request_scheduled)
        crawler.signals.connect(spider.reached, signal=signals.request_reached_downloader)
        return spider

    def reached(self, request: Request) -> None:
        """Note what the downloader is to send, in order."""
        if request.url in self._then:
            self.notes.setdefault("reached", []).append(urlsplit(request.url).path)

    def scheduled(self, request: Request) -> None:
        """Let the engine go on when all requests are there: before, which one it takes would be chance."""
        if request.url in self._then:
            self._scheduled += 1
        if self._scheduled == len(self._then):
            engine = self.crawler.engine
            assert engine is not None
            engine.unpause()  # the engine is told of this last request next, and looks at the scheduler then


class OtherDownloader:
    """A downloader that does what the engine needs, and has nothing else that Scrapy's own has."""

    def __init__(self, crawler: Crawler) -> None:
        self._inner = Downloader(crawler)
        self.active = self._inner.active
        self.middleware = self._inner.middleware
        self.needs_backout = self._inner.needs_backout
        self.fetch = self._inner.fetch
        self.close = self._inner.close


class DerivedDownloader(RobotsDownloader):
    """A downloader of the user's own that is derived from the plugin's."""


class DownloaderWithoutSlots(RobotsDownloader):
    """What the plugin's downloader is on a Scrapy that has no download slots."""

    async def _enqueue_request(self, request: Request) -> Response:
        return await self.handlers.download_request_async(request)

    def __getattribute__(self, name: str) -> Any:
        if name in ("slots", "_get_slot"):
            raise AttributeError(name)
        return super().__getattribute__(name)

    def close(self) -> None:
        pass


class WatchesReading(Pages):
    """Notes in which threads the strict parser reads files."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.notes["threads"] = []
        read = RobotsTxt._read

        def read_and_note(robots: RobotsTxt) -> Any:
            name = threading.current_thread().name
            if name not in self.notes["threads"]:
                self.notes["threads"].append(name)
            return read(robots)

        RobotsTxt._read = read_and_note  # type: ignore[assignment, method-assign]


class ParserWithSettings(PythonRobotParser):
    """A parser that needs the crawler, as Scrapy promises that it gets it."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> ParserWithSettings:
        assert crawler.settings["BOT_NAME"]
        return super().from_crawler(crawler, robotstxt_body)


class NotAParser:
    """A class that cannot be a parser."""


class FromSitemaps(SitemapSpider):
    """Scrapy's own spider of sitemaps, from the robots.txt of sites on."""

    name = "sitemaps"

    def __init__(self, requests: list[str], **kwargs: Any) -> None:
        self.sitemap_urls = requests
        super().__init__(**kwargs)
        self.pages: list[str] = []
        self.drops: list[Drop] = []
        self.notes: dict[str, Any] = {}

    def parse(self, response: Response, **kwargs: Any) -> None:
        self.pages.append(response.url)


class Answers(Pages):
    """Notes what each answer is: status, headers, body, flags."""

    handle_httpstatus_list: ClassVar[list[int]] = [403, 404, 503]

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        headers = response.headers.to_unicode_dict()
        self.notes.setdefault("answers", []).append(
            {
                "url": response.url,
                "status": response.status,
                "type": headers.get("Content-Type"),
                "body": response.body.decode(),
                "flags": response.flags,
                "is_text": isinstance(response, TextResponse),
            }
        )
        yield from super().parse(response)


class Items(Pages):
    """Yields an item for each page."""

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        yield {"url": response.url}
        yield from super().parse(response)


class MetaNotes(Pages):
    """Notes whether pages let their links be followed."""

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        self.notes.setdefault("follow", []).append(response.meta["robots_meta"].follow)
        yield from super().parse(response)


class Stopping(Pages):
    """Stops each download when its headers have come, and takes what there is."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.stop, signal=signals.headers_received)
        return spider

    def stop(self) -> None:
        raise StopDownload(fail=False)


class Collecting(Pages):
    """Yields an item of each page, and what it links to; links with ``marked`` in them need not be obeyed.

    Notes the items that came through, and what its callback was told that each page asks for.
    """

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.scraped, signal=signals.item_scraped)
        spider.notes.update(items=[], asked={})
        return spider

    def scraped(self, item: dict[str, str]) -> None:
        self.notes["items"].append(item["of"])

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        path = urlsplit(response.url).path
        asked = response.meta.get("robots_meta")
        self.notes["asked"][path] = asked and [asked.index, asked.follow, asked.document_state, asked.url]
        yield {"of": path}
        for request in super().parse(response):
            if "marked" in request.url:
                request.meta["dont_obey_robotstxt"] = True
            yield request
        yield None

    def dropped(self, failure: Failure) -> Iterator[Any]:  # type: ignore[override]
        super().dropped(failure)
        yield {"of": f"failure of {urlsplit(failure.request.url).path}"}  # type: ignore[attr-defined]


class CollectingSlowly(Collecting):
    """Does the same in an asynchronous callback."""

    async def parse(self, response: Response, **kwargs: Any) -> AsyncIterator[Any]:  # type: ignore[override]
        for each in super().parse(response):
            await compat.waiting_for(compat.spawn(_nothing()))
            yield each


async def _nothing() -> None:
    """Give a coroutine something to wait for."""


class Considerate(Collecting):
    """Obeys META tags, by settings of its own."""

    custom_settings = {"NOROBOTS_META": True}  # noqa: RUF012  # as users write it
