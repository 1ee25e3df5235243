"""`CommandSpider`: a crawl without pages, for commands that download robots.txt as a crawl does.

The engine, the downloader, the downloader middlewares and the extensions are those of the project; the
settings in `base` switch off the other components, and let the crawl run with asyncio. `Places` limits how
much of a command's work runs at once.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from scrapy import Request, Spider
from scrapy.crawler import Crawler

from scrapy_norobots.commands.base import CommandError
from scrapy_norobots.scrapy_api import compat

# Takes the crawler, and returns the coroutine to run during the crawl. Raises `ValueError` for a bad setting.
Prepare = Callable[[Crawler], Coroutine[Any, Any, None]]


_T = TypeVar("_T")


class CommandSpider(Spider):
    """Runs one coroutine in place of start requests, so it stays open until that has finished."""

    name = "robots"

    def __init__(self, prepare: Prepare) -> None:
        super().__init__()
        self.running: asyncio.Task[None] | None = None
        self._prepare = prepare

    async def start(self) -> AsyncIterator[Any]:
        """Run the coroutine, and yield no request."""
        self.running = asyncio.ensure_future(self._run())
        await asyncio.wait([self.running])  # which raises nothing: `run_spider` does
        for request in list[Request]():
            yield request

    async def _run(self) -> None:
        try:
            work = self._prepare(self.crawler)
        except ValueError as exc:
            raise CommandError(str(exc)) from None
        await work


class Places:
    """At most `CONCURRENT_REQUESTS` pieces of work run at once, in the order in which they were given."""

    def __init__(self, crawler: Crawler) -> None:
        limit = crawler.settings.getint("CONCURRENT_REQUESTS")
        self._places = asyncio.Semaphore(limit if limit > 0 else sys.maxsize)
        self._crawler = crawler

    async def run(self, work: Callable[[], Awaitable[_T]]) -> _T | None:
        """Do the work when there is a place; return None if the crawl is stopped, for example by Ctrl-C."""
        async with self._places:
            # `crawling` is false after Ctrl-C.
            if self._crawler.crawling and not compat.is_closing(self._crawler):
                return await work()
        return None


def run_spider(process: Any, prepare: Prepare) -> None:
    """Run the crawl of a command until it ends.

    Raises `CommandError` if the crawl does not start, if a setting is invalid, or after a second Ctrl-C.
    Exceptions of the work propagate.
    """
    crawler = process.create_crawler(CommandSpider)
    process.crawl(crawler, prepare=prepare)
    process.start()
    running = crawler.spider and crawler.spider.running
    if running is None:
        raise CommandError("the crawl did not start; see the log")
    if not running.done() or running.cancelled():
        raise CommandError("the crawl was stopped before its end")
    running.result()
