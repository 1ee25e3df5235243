"""Spiders that end the crawl, pause it, or end downloads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, StopDownload
from scrapy.http import Response
from twisted.internet.defer import Deferred

from scrapy_norobots import compat
from tests.helpers.spiders.pages import Pages

if TYPE_CHECKING:
    from typing_extensions import Self


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


class Stopping(Pages):
    """Stops each download after its headers, and uses the incomplete response."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.stop, signal=signals.headers_received)
        return spider

    def stop(self) -> None:
        raise StopDownload(fail=False)
