"""`CommandSpider`: a crawl without pages, for commands that download robots.txt as a crawl does.

The engine, the downloader, the downloader middlewares and the extensions are those of the project; the
settings in `base` switch off the other components. `Pool` limits how much of a command's work runs at once,
and `Bell` wakes work that waits for other work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider
from twisted.internet.defer import Deferred

from scrapy_norobots.commands.base import CommandError
from scrapy_norobots.scrapy_api import compat

_T = TypeVar("_T")

# Takes the crawler, and returns the coroutine to run during the crawl.
Prepare = Callable[[Crawler], Coroutine[Any, Any, None]]


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


class Bell:
    """Wakes the coroutines that wait for a change. They must look whether it is the one that they need."""

    def __init__(self) -> None:
        self._sleepers: list[Deferred[None]] = []

    async def wait(self) -> None:
        """Wait until the bell rings."""
        sleeper: Deferred[None] = Deferred()
        self._sleepers.append(sleeper)
        await compat.waiting_for(sleeper)

    def ring(self) -> None:
        """Wake all that wait now."""
        sleepers, self._sleepers = self._sleepers, []
        for sleeper in sleepers:
            sleeper.callback(None)


class Pool(Generic[_T]):
    """Works on items in the order in which they are added, at most `CONCURRENT_REQUESTS` at once.

    When the crawl is stopped, for example by Ctrl-C, no more work is started.
    """

    def __init__(self, crawler: Crawler, work: Callable[[_T], Coroutine[Any, Any, None]]) -> None:
        self._crawler = crawler
        self._work = work
        limit = crawler.settings.getint("CONCURRENT_REQUESTS")
        self._limit = limit if limit > 0 else float("inf")
        self._pending: deque[_T] = deque()
        self._running = 0
        self._workers: set[Deferred[None]] = set()
        self._end_of_work = Bell()
        self._failure: Exception | None = None

    def add(self, item: _T) -> None:
        """Work on an item as soon as there is room."""
        self._pending.append(item)
        if self._running < self._limit:
            self._running += 1
            worker = compat.spawn(self._run())
            self._workers.add(worker)
            worker.addBoth(lambda _: self._workers.discard(worker))

    def clear(self) -> None:
        """Remove all items on which no work has started."""
        self._pending.clear()

    async def join(self) -> None:
        """Wait until no work is running. Raises the first exception of the work; it ends the pool."""
        while self._running:
            await self._end_of_work.wait()
        if self._failure is not None:
            raise self._failure

    async def _run(self) -> None:
        try:
            # `crawling` is false after Ctrl-C.
            while self._pending and self._crawler.crawling and not compat.is_closing(self._crawler):
                await self._work(self._pending.popleft())
        except Exception as exc:  # `join` raises it
            self._failure = self._failure or exc
            self.clear()
        finally:
            self._running -= 1
            self._end_of_work.ring()


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
