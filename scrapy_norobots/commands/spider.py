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
from scrapy_norobots.scrapy_api.log import SettingError

# Takes the crawler, and runs during the crawl. Raises `SettingError` if a setting is invalid.
Work = Callable[[Crawler], Coroutine[Any, Any, None]]

_T = TypeVar("_T")


class CommandSpider(Spider):
    """Runs one coroutine in place of start requests, so it stays open until that has finished."""

    name = "robots"

    def __init__(self, work: Work) -> None:
        super().__init__()
        self.running: asyncio.Task[None] | None = None
        self._work = work

    async def start(self) -> AsyncIterator[Any]:
        """Run the coroutine, and yield no request."""
        self.running = asyncio.ensure_future(self._run())
        await asyncio.wait([self.running])  # which raises nothing: `run_spider` does
        for request in list[Request]():
            yield request

    async def _run(self) -> None:
        try:
            await self._work(self.crawler)
        except SettingError as exc:
            raise CommandError(str(exc)) from None


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


def run_spider(process: Any, work: Work) -> None:
    """Run the crawl of a command until it ends.

    Raises `CommandError` if the crawl does not start, if a setting is invalid, or after a second Ctrl-C.
    Exceptions of the work propagate.
    """
    crawler = process.create_crawler(CommandSpider)
    process.crawl(crawler, work=work)
    process.start()
    running = crawler.spider and crawler.spider.running
    if running is None:
        raise CommandError("the crawl did not start; see the log")
    if not running.done() or running.cancelled():
        raise CommandError("the crawl was stopped before its end")
    running.result()
