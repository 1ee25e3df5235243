"""Spiders for the tests' crawls."""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import threading
import time
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partialmethod
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from protego import Protego
from scrapy import Request, Spider, signals
from scrapy.core.downloader import Downloader
from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import (
    CloseSpider,
    DontCloseSpider,
    IgnoreRequest,
    ScrapyDeprecationWarning,
    StopDownload,
)
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
    """A failed request: its URL, the type and text of the exception, the line of the rule, and
    `RobotsUnreachable.retry_after`.
    """

    url: str
    type: str
    text: str
    line: int | None = None
    retry_after: float | None = None


class Pages(Spider):
    """Sends the requests of a job, follows links if the job says so, and records the results."""

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
        """Return the plugin's middleware of this crawl."""
        engine = self.crawler.engine
        assert engine is not None
        for middleware in engine.downloader.middleware.middlewares:
            if isinstance(middleware, NoRobotsMiddleware):
                return middleware
        raise LookupError("the middleware is not enabled")


class WithoutErrback(Pages):
    """Has no errback for the links that it follows; notes the requests that leave the downloader."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> WithoutErrback:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.left, signal=signals.request_left_downloader)
        return spider

    def left(self, request: Request) -> None:
        self.notes.setdefault("sent", []).append(urlsplit(request.url).path)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        for request in super().parse(response, **kwargs):
            yield request.replace(errback=None)


class UnfilteredFirst(WithoutErrback):
    """Does not filter the links of its first page."""

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        is_first = urlsplit(response.url).path == "/"
        for request in super().parse(response, **kwargs):
            yield request.replace(dont_filter=is_first)


class OrdersTheClass(Pages):
    """Lists Scrapy's robots.txt middleware with another order, by its class."""

    custom_settings = {"DOWNLOADER_MIDDLEWARES": {RobotsTxtMiddleware: 543}}  # noqa: RUF012  # as users write it


class SwitchesTheClassOff(Pages):
    """Switches Scrapy's robots.txt middleware off, by its class."""

    custom_settings = {"DOWNLOADER_MIDDLEWARES": {RobotsTxtMiddleware: None}}  # noqa: RUF012  # as users write it


class ScrapysOwn(RobotsTxtMiddleware):
    """A subclass of Scrapy's robots.txt middleware in a project."""


class ListsASubclassOfScrapys(Pages):
    """Lists a subclass of Scrapy's robots.txt middleware, by its class."""

    custom_settings = {"DOWNLOADER_MIDDLEWARES": {ScrapysOwn: 110}}  # noqa: RUF012  # as users write it


class InMemory(Pages):
    """Checks a request to an origin in memory, and records whether anything was awaited."""

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
    """Cancels the first and the last request that wait for the robots.txt of another site."""

    def __init__(self, other: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._other = other

    async def parse(self, response: Response, **kwargs: Any) -> None:  # type: ignore[override]
        paths = {"first": "/open", "second": "/back/", "third": "/open", "last": "/back/"}
        waiting = {name: compat.spawn(self._ask(name, path)) for name, path in paths.items()}
        # Let the download start.
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
    """Records each `robots_parsed` signal: the parser, the request, and its answer for /back/."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Listening:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.parsed, signal=signals.robots_parsed)
        return spider

    def parsed(self, robotparser: RobotParser, request: Request) -> None:
        allowed = robotparser.allowed(f"{request.url}back/", "FooBot")
        self.notes.setdefault("parsed", []).append([type(robotparser).__name__, request.url, allowed])
        self.notes.setdefault("delays", []).append(robotparser.crawl_delay("FooBot"))


class CollectsSlots(Pages):
    """Follows links, and makes Scrapy collect all idle download slots at each page."""

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        downloader = compat.downloader(self.crawler)
        before = len(downloader.slots)
        downloader._slot_gc(age=0)
        self.notes["collected"] = self.notes.get("collected", 0) + before - len(downloader.slots)
        self._follow = True
        yield from super().parse(response, **kwargs)


class NotesThreadOfProtego(Pages):
    """Notes the threads in which Protego reads a file."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> NotesThreadOfProtego:
        spider = super().from_crawler(crawler, *args, **kwargs)
        threads = spider.notes.setdefault("threads", [])
        parse = Protego.parse

        def parse_and_note(text: str) -> Protego:
            threads.append(threading.current_thread().name)
            return parse(text)

        Protego.parse = parse_and_note  # type: ignore[assignment, method-assign]
        return spider


class BrokenParser(PythonRobotParser):
    """A parser that fails on every file except an empty one."""

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
    """A parser that reads every file, but fails on questions about other hosts than the first."""

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        if "town.example" in str(url):
            return True
        raise RuntimeError("not this one")


class TellsItsThread(PythonRobotParser):
    """A parser that logs the thread in which it reads a file."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> TellsItsThread:
        thread = threading.current_thread()
        kind = "main" if thread is threading.main_thread() else thread.name
        logging.getLogger(__name__).info("%d bytes read in thread %s", len(robotstxt_body), kind)
        return super().from_crawler(crawler, robotstxt_body)


class TellsTheRobotsType(PythonRobotParser):
    """A parser that logs the type of the robot, and accepts no other."""

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        logging.getLogger(__name__).info("asked by %s", type(user_agent).__name__)
        return True


class NoRobotsTxt:
    """A downloader middleware that drops each request for a robots.txt."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        if request.url.endswith("/robots.txt"):
            raise IgnoreRequest("not for you")


class DeadProxy:
    """A downloader middleware that sends all requests to a missing proxy."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        request.meta["proxy"] = "http://127.0.0.1:1"


class Asking(Pages):
    """Lets the middleware check URLs, one after another, and records the results.

    `plan` has pairs of a pause in seconds and a URL. A pause only moves the plugin's clocks forward. A result
    is ``passed`` or the name of an exception, followed by that of its cause, if it has one.
    """

    def __init__(self, plan: list[tuple[float, str]], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._plan = plan
        self._ahead = 0.0
        monotonic, wall = time.monotonic, time.time
        time.time = lambda: wall() + self._ahead
        # The spider is created before the middleware, so this is early enough.
        with_clock = partialmethod(OriginCache.__init__, clock=lambda: monotonic() + self._ahead)
        OriginCache.__init__ = with_clock  # type: ignore[assignment, method-assign]

    async def parse(self, response: Response, **kwargs: Any) -> None:  # type: ignore[override]
        results = self.notes["results"] = []
        for pause, url in self._plan:
            self._ahead += pause
            try:
                await self.middleware().process_request(Request(url))
            except IgnoreRequest as exc:
                names = [type(error).__name__ for error in (exc, exc.__cause__) if error is not None]
                results.append(" from ".join(names))
            else:
                results.append("passed")


class ListeningAndAsking(Listening, Asking):
    """Does what both do."""


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
    """Requests one more URL when a request has failed."""

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
    """A resolver that resolves no name."""

    def getHostByName(self, name: str, timeout: Sequence[int] = ()) -> Deferred[str]:  # noqa: N802  # Twisted's
        return fail(DNSLookupError(name))


class StopsWhenIdle(Pages):
    """Stops the crawl when requests only wait, and notes how many are in the downloader."""

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


class IgnoresTheResult(NoRobotsMiddleware):
    """A user's subclass that only expects exceptions."""

    async def process_request(self, request: Request, spider: Spider | None = None) -> None:
        await super().process_request(request)


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
    """Lets a media pipeline download the links of its first page, and notes the files."""

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


class Patient(Pages):
    """Retries requests to closed sites, by custom_settings."""

    custom_settings = {"NOROBOTS_RETRY_CLOSED": 1, "NOROBOTS_ERROR_TTL": 0.1}  # noqa: RUF012  # as users write it


class Unruly(Pages):
    """Disables ROBOTSTXT_OBEY in its own settings."""

    custom_settings = {"ROBOTSTXT_OBEY": False}  # noqa: RUF012  # as users write it


class Outdated(Pages):
    """Uses something deprecated."""

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        warnings.warn("the old way", ScrapyDeprecationWarning, stacklevel=2)
        yield from super().parse(response, **kwargs)


class Watching(Pages):
    """Puts many requests on the scheduler at once, from its first page.

    Records the largest numbers of requests in the downloader and of parked requests, as seen when pages
    arrive.
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
        parking = getattr(engine.downloader, "parking", None)
        self.notes["most parked"] = max(len(parking or ()), self.notes.get("most parked", 0))
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
        """Record the requests that reach the downloader, in order."""
        if request.url in self._then:
            self.notes.setdefault("reached", []).append(urlsplit(request.url).path)

    def scheduled(self, request: Request) -> None:
        """Let the engine continue when all requests are scheduled; before, its choice would be random."""
        if request.url in self._then:
            self._scheduled += 1
        if self._scheduled == len(self._then):
            engine = self.crawler.engine
            assert engine is not None
            engine.unpause()  # the engine gets this last request next, and then asks the scheduler


class OtherDownloader:
    """A downloader with only what the engine needs of Scrapy's own."""

    def __init__(self, crawler: Crawler) -> None:
        self._inner = Downloader(crawler)
        self.active = self._inner.active
        self.middleware = self._inner.middleware
        self.needs_backout = self._inner.needs_backout
        self.fetch = self._inner.fetch
        self.close = self._inner.close


class DerivedDownloader(RobotsDownloader):
    """A user's downloader, a subclass of the plugin's."""


class DownloaderWithoutSlots(RobotsDownloader):
    """The plugin's downloader on a Scrapy without download slots."""

    async def _enqueue_request(self, request: Request) -> Response:
        return await self.handlers.download_request_async(request)

    def __getattribute__(self, name: str) -> Any:
        if name in ("slots", "_get_slot"):
            raise AttributeError(name)
        return super().__getattribute__(name)

    def _slot_gc(self, age: float = 60) -> None:
        """Do nothing: there are no slots. Scrapy 2.14 calls this when the crawl starts."""

    def close(self) -> None:
        pass


class WatchesReading(Pages):
    """Records the threads in which the strict parser reads files."""

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
    """A parser that needs the crawler, which Scrapy passes to parsers."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> ParserWithSettings:
        assert crawler.settings["BOT_NAME"]
        return super().from_crawler(crawler, robotstxt_body)


class NotAParser:
    """A class that cannot be a parser."""


class FromSitemaps(SitemapSpider):
    """Scrapy's own sitemap spider, starting from the robots.txt of sites."""

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
    """Records status, headers, body and flags of each response."""

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
    """Records whether pages allow to follow their links."""

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        self.notes.setdefault("follow", []).append(response.meta["robots_meta"].follow)
        yield from super().parse(response)


class Stopping(Pages):
    """Stops each download after its headers, and uses the incomplete response."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.stop, signal=signals.headers_received)
        return spider

    def stop(self) -> None:
        raise StopDownload(fail=False)


class Collecting(Pages):
    """Yields an item per page, and requests for its links; ``marked`` ones have `dont_obey_robotstxt`.

    Records the items that were not dropped, and `robots_meta` of each page.
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
    """The same with an asynchronous callback."""

    async def parse(self, response: Response, **kwargs: Any) -> AsyncIterator[Any]:  # type: ignore[override]
        for each in super().parse(response):
            await compat.waiting_for(compat.spawn(_nothing()))
            yield each


async def _nothing() -> None:
    """Return something that a coroutine can await."""


class Considerate(Collecting):
    """Enables NOROBOTS_META in its own settings."""

    custom_settings = {"NOROBOTS_META": True}  # noqa: RUF012  # as users write it


class OnASmallDisk(Pages):
    """Can write files of 64 KiB, and is closed as soon as the log has a text."""

    def __init__(self, until: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, resource.RLIM_INFINITY))
        self._until = until
        self._is_there = False
        logging.getLogger("scrapy_norobots").addHandler(_Watcher(self._look))

    def _look(self, record: logging.LogRecord) -> None:
        self._is_there = self._is_there or self._until in record.getMessage()

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        if self._is_there:
            raise CloseSpider("the log has it")
        self.pages.clear()
        yield from super().parse(response, **kwargs)


class _Watcher(logging.Handler):
    def __init__(self, look: Callable[[logging.LogRecord], object]) -> None:
        super().__init__()
        self._look = look

    def emit(self, record: logging.LogRecord) -> None:
        self._look(record)


class AwaitsADownload(Pages):
    """Downloads a URL itself, in its first callback or at its start, and notes the status or the exception.

    After `seconds` it cancels the download.
    """

    def __init__(self, then: str, place: str = "callback", seconds: float = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._then = then
        self._place = place
        self._seconds = seconds

    async def start(self) -> AsyncIterator[Request]:
        if self._place == "start":
            await self._download()
        for request in self.start_requests():
            yield request

    async def parse(self, response: Response, **kwargs: Any) -> None:  # type: ignore[override]
        if self._place == "callback":
            await self._download()

    async def _download(self) -> None:
        told = self.notes.setdefault("told", [])
        download = compat.download(self.crawler, Request(self._then))
        try:
            answer = await (asyncio.wait_for(download, self._seconds) if self._seconds else download)
        except (IgnoreRequest, asyncio.TimeoutError) as exc:
            told.append([type(exc).__name__, getattr(exc, "retry_after", None)])
        else:
            told.append([answer.status, None])


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


class RepeatsTheRequest(Pages):
    """Yields the object of each start request three times."""

    def start_requests(self) -> Iterator[Request]:
        for request in super().start_requests():
            request.dont_filter = True
            yield from (request, request, request)


class FeedsWhenIdle(Pages):
    """Adds one request each time when the crawl is idle, and closes the spider when it has no more."""

    def __init__(self, then: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._then = list(then)

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.idle, signal=signals.spider_idle)
        return spider

    def idle(self) -> None:
        if not self._then:
            raise CloseSpider("all fed")
        engine = self.crawler.engine
        assert engine is not None
        engine.crawl(self.request(self._then.pop(0)))
        raise DontCloseSpider


class LooksAtItsScheduler(StopsWhenIdle):
    """Stops the crawl when requests only wait, and notes what can be seen of the scheduler."""

    def idle(self) -> None:
        if "scheduler" not in self.notes:
            slot: Any = compat.engine_slot(self.crawler)
            scheduler = slot.scheduler
            dupefilter = getattr(scheduler, "df", None)
            self.notes["scheduler"] = {
                "class": type(scheduler).__name__,
                "wrapped": type(getattr(scheduler, "_source", slot).scheduler).__name__,
                "filter": dupefilter and type(dupefilter).__name__,
                "missing": getattr(scheduler, "no_such_attribute", None),
                "length": len(scheduler),
                "is empty": not scheduler,
            }
        super().idle()


class HasItsOwnScheduler(LooksAtItsScheduler):
    """Sets a scheduler in its own settings."""

    custom_settings = {"SCHEDULER": "tests.helpers.components.middlewares.OtherScheduler"}  # noqa: RUF012  # as users write it


class OwnScheduler(Scheduler):
    """A scheduler of a project, derived from Scrapy's."""


class HasAClassOfScheduler(LooksAtItsScheduler):
    """Sets a scheduler in its own settings, by its class."""

    custom_settings = {"SCHEDULER": OwnScheduler}  # noqa: RUF012  # as users write it


class StopsAmidRobots(Pages):
    """Closes or pauses the crawl when some downloads of robots.txt have begun.

    A pause ends when all of them have ended. Notes how many robots.txt files arrived during the pause, and
    how many pages were sent.
    """

    def __init__(self, robots: int, how: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._robots = robots
        self._how = how
        self._watch: Deferred[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.opened, signal=signals.spider_opened)
        crawler.signals.connect(spider.reached, signal=signals.request_reached_downloader)
        return spider

    def opened(self) -> None:
        self._watch = compat.spawn(self._stop())

    def reached(self, request: Request) -> None:
        assert self.crawler.engine is not None
        if self.crawler.engine.paused and not request.url.endswith("/robots.txt"):
            self.notes["sent while paused"] += 1

    async def _stop(self) -> None:
        await self._robots_reach("request", self._robots)
        engine = self.crawler.engine
        assert engine is not None
        if self._how == "close":
            self._watch = compat.close_spider(self.crawler, "amid")
            return
        engine.pause()
        assert self.crawler.stats is not None
        before = self.crawler.stats.get_value("robotstxt/response_count", 0)
        self.notes["sent while paused"] = 0
        await self._robots_reach("response", self.crawler.stats.get_value("robotstxt/request_count"))
        await compat.waiting_for(compat.spawn(compat.sleep(0.5)))
        after = self.crawler.stats.get_value("robotstxt/response_count", 0)
        self.notes["loaded while paused"] = after - before
        engine.unpause()

    async def _robots_reach(self, what: str, count: int) -> None:
        assert self.crawler.stats is not None
        while self.crawler.stats.get_value(f"robotstxt/{what}_count", 0) < count:
            await compat.waiting_for(compat.spawn(compat.sleep(0.02)))


class WithFewFiles(Pages):
    """May open few files; the limit is set before there is a downloader."""

    def __init__(self, files: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))


class WithSlowNames(Pages):
    """Resolves each name of a host under .example to 127.0.0.1, after some seconds in a thread."""

    def __init__(self, seconds: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        real = socket.getaddrinfo

        def address(host: str | bytes) -> str:
            name = host if isinstance(host, str) else host.decode()
            if not name.endswith(".example"):
                return name
            time.sleep(seconds)
            return "127.0.0.1"

        def getaddrinfo(host: str | bytes, *args: Any, **kwargs: Any) -> Any:
            return real(address(host), *args, **kwargs)

        socket.gethostbyname = address
        socket.getaddrinfo = getaddrinfo  # type: ignore[assignment]


class StartsLazily(Pages):
    """Yields a start request only if nothing else is left to do, as Scrapy's documentation proposes."""

    async def start(self) -> AsyncIterator[Request]:
        for request in self.start_requests():
            assert self.crawler.engine is not None
            if self.crawler.engine.needs_backout():
                await self.crawler.signals.wait_for(signals.scheduler_empty)
            yield request
