"""`CommandSpider`: a crawl without pages, for commands that download robots.txt as a crawl does.

The engine, the downloader, the downloader middlewares and the extensions are those of the project; the
settings in `base` switch off the other components. `Pool` limits how much of a command's work runs at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from scrapy import Spider, signals
from scrapy.exceptions import DontCloseSpider
from twisted.internet.defer import Deferred

from scrapy_norobots import compat
from scrapy_norobots.commands.base import CommandError

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

_T = TypeVar("_T")

# Takes the crawler, and returns the coroutine to run during the crawl.
Prepare = Callable[["Crawler"], Coroutine[Any, Any, None]]


class CommandSpider(Spider):
    """Runs one coroutine, and stays open until it has finished."""

    name = "robots"

    def __init__(self, prepare: Prepare) -> None:
        super().__init__()
        self.has_started = False
        self.failure: Exception | None = None
        self._prepare = prepare
        self._running: Deferred[None] | None = None
        self._has_finished = False

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> CommandSpider:
        """Make the spider. It starts to work when the engine first finds it idle."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.on_idle, signals.spider_idle)
        return spider

    def on_idle(self) -> None:
        """Start the work, and keep the spider open until it has finished."""
        if not self.has_started:
            self.has_started = True
            try:
                work = self._prepare(self.crawler)
            except ValueError as exc:  # a setting is invalid
                self.failure = CommandError(str(exc))
                return
            self._running = compat.spawn(self._run(work))
        if not self._has_finished:
            raise DontCloseSpider

    async def _run(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as exc:  # `run_spider` raises it
            self.failure = exc
        finally:
            self._has_finished = True
            compat.look_for_next_request(self.crawler)


class Pool(Generic[_T]):
    """Works on items in the order in which they are added, at most `CONCURRENT_REQUESTS` at once.

    When the crawl is stopped, for example by Ctrl-C, no more work is started.
    """

    def __init__(self, crawler: Crawler, work: Callable[[_T], Coroutine[Any, Any, None]]) -> None:
        self._crawler = crawler
        self._work = work
        self._limit = crawler.settings.getint("CONCURRENT_REQUESTS") or float("inf")
        self._pending: deque[_T] = deque()
        self._running = 0
        self._unfinished = 0
        self._workers: set[Deferred[None]] = set()
        self._waiters: list[Deferred[None]] = []
        self._failure: Exception | None = None

    def __len__(self) -> int:
        """Return the number of items that are not finished."""
        return self._unfinished

    def add(self, item: _T) -> None:
        """Work on an item as soon as there is room."""
        self._pending.append(item)
        self._unfinished += 1
        if self._running < self._limit:
            self._running += 1
            worker = compat.spawn(self._run())
            self._workers.add(worker)
            worker.addBoth(lambda _: self._workers.discard(worker))

    def clear(self) -> None:
        """Remove all items on which no work has started."""
        self._unfinished -= len(self._pending)
        self._pending.clear()

    async def join(self) -> None:
        """Wait until no work is running. Raises the first exception of the work; it ends the pool."""
        if self._running:
            waiter: Deferred[None] = Deferred()
            self._waiters.append(waiter)
            await compat.waiting_for(waiter)
        if self._failure is not None:
            raise self._failure

    async def _run(self) -> None:
        try:
            # `crawling` is false after Ctrl-C.
            while self._pending and self._crawler.crawling and not compat.is_closing(self._crawler):
                item = self._pending.popleft()
                try:
                    await self._work(item)
                finally:
                    self._unfinished -= 1
        except Exception as exc:  # `join` raises it
            self._failure = self._failure or exc
            self.clear()
        finally:
            self._running -= 1
            if not self._running:
                waiters, self._waiters = self._waiters, []
                for waiter in waiters:
                    waiter.callback(None)


def run_spider(process: Any, prepare: Prepare) -> None:
    """Run the crawl of a command until it ends.

    Raises `CommandError` if the crawl does not start, or if a setting is invalid. Exceptions of the work
    propagate.
    """
    crawler = process.create_crawler(CommandSpider)
    process.crawl(crawler, prepare=prepare)
    process.start()
    spider = crawler.spider
    if spider is None or not spider.has_started:
        raise CommandError("the crawl did not start; see the log")
    if spider.failure is not None:
        raise spider.failure
