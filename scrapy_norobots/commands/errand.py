"""`Errand`: a crawl that fetches no page, for commands that want a robots.txt as a crawl would have it.

The engine, the downloader and all downloader middlewares and extensions are the project's; what a crawl has
beside them, `base` leaves out.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from scrapy import Spider, signals
from scrapy.exceptions import DontCloseSpider

from scrapy_norobots import compat
from scrapy_norobots.commands.base import is_terminal

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred

_T = TypeVar("_T")

# Says what to do with one thing, given the crawler to do it with.
Prepare = Callable[["Crawler"], Callable[[_T], Awaitable[None]]]


class ErrandError(Exception):
    """The crawl could not do what it was for; says why, in words for the user."""


class Errand(Spider, Generic[_T]):
    """Does something with each of `things`, as many at a time as the crawl may have requests."""

    name = "robots"

    def __init__(self, prepare: Prepare[_T], things: Collection[_T]) -> None:
        super().__init__()
        self.failure: Exception | None = None
        self._prepare = prepare
        self._todo = deque(things)
        self._total = len(self._todo)
        self._working = 0
        self._workers: list[Deferred[None]] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Errand[_T]:
        """Make the spider, which begins to work when the engine first finds it idle."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.on_idle, signals.spider_idle)
        return spider

    @property
    def has_started(self) -> bool:
        """Whether the crawl got as far as that."""
        return self._workers is not None

    def on_idle(self) -> None:
        """Begin; and keep the spider open until all is done."""
        if self._workers is None:
            self._workers = []
            try:
                work = self._prepare(self.crawler)
            except ValueError as exc:  # a setting makes no sense
                self.failure = exc
                return
            limit = self.crawler.settings.getint("CONCURRENT_REQUESTS") or self._total
            self._working = min(limit, self._total)
            self._workers += [compat.spawn(self._work(work)) for _ in range(self._working)]
        if self._working:
            raise DontCloseSpider

    async def _work(self, work: Callable[[_T], Awaitable[None]]) -> None:
        try:
            # After Ctrl-C `crawling` is false.
            while self._todo and self.crawler.crawling:
                self._tell_progress()
                await work(self._todo.popleft())
        except Exception as exc:
            self.failure = exc
            self._todo.clear()
        finally:
            self._working -= 1
            if not self._working:
                self._tell_progress()
                compat.look_for_next_request(self.crawler)

    def _tell_progress(self) -> None:
        """Say how far it is, if somebody is looking and there is anything to wait for."""
        if self._total > 1 and is_terminal(sys.stderr):
            left = f"{len(self._todo)} of {self._total} to go" if self._working else ""
            sys.stderr.write(f"\r\x1b[K{left}")
            sys.stderr.flush()


def run_errand(process: Any, prepare: Prepare[_T], things: Collection[_T]) -> None:
    """Run the crawl of a command's crawler process to its end; with nothing to do, run none.

    Raises `ErrandError` if it did not start, or for a setting that makes no sense; what the work raises
    otherwise is a bug.
    """
    if not things:
        return
    crawler = process.create_crawler(Errand)
    process.crawl(crawler, prepare=prepare, things=things)
    process.start()
    spider = crawler.spider
    if spider is None or not spider.has_started:
        raise ErrandError("the crawl did not start; its log says why")
    if isinstance(spider.failure, ValueError):
        raise ErrandError(str(spider.failure)) from spider.failure
    if spider.failure is not None:
        raise spider.failure
