"""`CommandSpider`: a crawl without pages, for commands that download robots.txt as a crawl does.

The engine, the downloader, the downloader middlewares and the extensions are those of the project; the
settings in `base` switch off the other components.
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

# Takes the crawler, and returns the function to call for each item.
Prepare = Callable[["Crawler"], Callable[[_T], Awaitable[None]]]


class CommandError(Exception):
    """The crawl of a command failed; the text is a message for the user."""


class CommandSpider(Spider, Generic[_T]):
    """Calls a function for each of `items`, at most `CONCURRENT_REQUESTS` at once."""

    name = "robots"

    def __init__(self, prepare: Prepare[_T], items: Collection[_T]) -> None:
        super().__init__()
        self.has_started = False
        self.failure: Exception | None = None
        self._prepare = prepare
        self._pending = deque(items)
        self._total = len(self._pending)
        self._running = 0
        self._workers: list[Deferred[None]] = []

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> CommandSpider[_T]:
        """Make the spider. It starts to work when the engine first finds it idle."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.on_idle, signals.spider_idle)
        return spider

    def on_idle(self) -> None:
        """Start the workers, and keep the spider open until they have finished."""
        if not self.has_started:
            self.has_started = True
            try:
                work = self._prepare(self.crawler)
            except ValueError as exc:  # a setting is invalid
                self.failure = CommandError(str(exc))
                return
            limit = self.crawler.settings.getint("CONCURRENT_REQUESTS") or self._total
            self._running = min(limit, self._total)
            self._workers = [compat.spawn(self._work(work)) for _ in range(self._running)]
        if self._running:
            raise DontCloseSpider

    async def _work(self, work: Callable[[_T], Awaitable[None]]) -> None:
        try:
            # `crawling` is false after Ctrl-C.
            while self._pending and self.crawler.crawling:
                self._show_progress()
                await work(self._pending.popleft())
        except Exception as exc:
            self.failure = exc
            self._pending.clear()
        finally:
            self._running -= 1
            if not self._running:
                self._show_progress()
                compat.look_for_next_request(self.crawler)

    def _show_progress(self) -> None:
        """Show how many items are left, if there are several and standard error is a terminal."""
        if self._total > 1 and is_terminal(sys.stderr):
            left = f"{len(self._pending)} of {self._total} left" if self._running else ""
            sys.stderr.write(f"\r\x1b[K{left}")
            sys.stderr.flush()


def run_spider(process: Any, prepare: Prepare[_T], items: Collection[_T]) -> None:
    """Run the crawl of a command until it ends; do nothing if there are no items.

    Raises `CommandError` if the crawl does not start, or if a setting is invalid. Any other exception is a
    bug and propagates.
    """
    if not items:
        return
    crawler = process.create_crawler(CommandSpider)
    process.crawl(crawler, prepare=prepare, items=items)
    process.start()
    spider = crawler.spider
    if spider is None or not spider.has_started:
        raise CommandError("the crawl did not start; see the log")
    if spider.failure is not None:
        raise spider.failure
