"""`CommandSpider`: a crawl without pages, for commands that download robots.txt as a crawl does.

The engine, the downloader, the downloader middlewares and the extensions are those of the project; the
settings in `base` switch off the other components, and let the crawl run with asyncio. After Ctrl-C, the work
of the command is cancelled.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler

from scrapy_norobots.commands.base import CommandError

# Takes the crawler, and runs during the crawl.
Work = Callable[[Crawler], Coroutine[Any, Any, None]]


class CommandSpider(Spider):
    """Runs one coroutine in place of start requests, so it stays open until that has finished."""

    name = "robots"

    def __init__(self, work: Work) -> None:
        super().__init__()
        self.running: asyncio.Task[None] | None = None
        self._work = work

    async def start(self) -> AsyncIterator[Any]:
        """Run the coroutine, and yield no request. Scrapy cancels this after Ctrl-C."""
        self.running = asyncio.ensure_future(self._work(self.crawler))
        try:
            await asyncio.wait([self.running])  # which raises nothing: `run_spider` does
        finally:
            self.running.cancel()
        for request in list[Request]():
            yield request


def places(crawler: Crawler) -> asyncio.Semaphore:
    """Return what lets `CONCURRENT_REQUESTS` downloads run at once."""
    limit = crawler.settings.getint("CONCURRENT_REQUESTS")
    return asyncio.Semaphore(limit if limit > 0 else sys.maxsize)


def run_spider(process: Any, work: Work) -> None:
    """Run the crawl of a command until it ends.

    Raises `CommandError` if the crawl does not start, or is stopped. Exceptions of the work propagate.
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
