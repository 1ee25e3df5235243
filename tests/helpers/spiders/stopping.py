"""Spiders that end the crawl, pause it, or end downloads."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, ClassVar

from scrapy import Request, signals
from scrapy.exceptions import CloseSpider, StopDownload
from scrapy.http import Response
from twisted.internet.defer import Deferred

from scrapy_norobots.scrapy_api import compat
from tests.helpers.spiders.pages import Pages


class StopsEarly(Pages):
    """Follows the links of the first page, and stops the crawl after a pause, in seconds."""

    def __init__(self, pause: float = 0, **kwargs: Any) -> None:
        super().__init__(follow=True, **kwargs)
        self._pause = pause

    async def parse(self, response: Response, **kwargs: Any) -> AsyncIterator[Request]:  # type: ignore[override]
        for request in super().parse(response):
            yield request
        await pause(self._pause)
        raise CloseSpider("enough")


class StopsAmidRobots(Pages):
    """Closes or pauses the crawl when some downloads of robots.txt have begun.

    A pause ends when all of them have ended. Notes how many robots.txt files arrived during the pause, and
    how many pages were sent.
    """

    listens: ClassVar = {"opened": signals.spider_opened, "reached": signals.request_reached_downloader}

    def __init__(self, robots: int, how: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._robots = robots
        self._how = how
        self._watch: Deferred[None] | None = None

    def opened(self) -> None:
        self._watch = compat.spawn(self._stop())

    def reached(self, request: Request) -> None:
        if self.engine.paused and not request.url.endswith("/robots.txt"):
            self.notes["sent while paused"] += 1

    async def _stop(self) -> None:
        await self._robots_reach("request", self._robots)
        if self._how == "close":
            self._watch = compat.close_spider(self.crawler, "amid")
            return
        self.engine.pause()
        before = self._count("response")
        self.notes["sent while paused"] = 0
        await self._robots_reach("response", self._count("request"))
        await pause(0.5)
        self.notes["loaded while paused"] = self._count("response") - before
        self.engine.unpause()

    def _count(self, what: str) -> int:
        assert self.crawler.stats is not None
        return int(self.crawler.stats.get_value(f"robotstxt/{what}_count", 0))

    async def _robots_reach(self, what: str, count: int) -> None:
        while self._count(what) < count:
            await pause(0.02)


class Stopping(Pages):
    """Stops each download after its headers. Without `fail`, uses the incomplete response."""

    listens: ClassVar = {"stop": signals.headers_received}

    def __init__(self, *, fail: bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._fail = fail

    def stop(self) -> None:
        raise StopDownload(fail=self._fail)


class SendsAtTheEnd(Pages):
    """Sends a request when the crawl has ended and all evidence is written. Scrapy sends it, then fails."""

    listens: ClassVar = {"closed_at_last": signals.spider_closed}

    def __init__(self, last: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._last = last

    async def closed_at_last(self) -> None:
        while any(thread.name == "norobots-evidence" for thread in threading.enumerate()):
            await pause(0.02)
        with suppress(Exception):
            await compat.download(self.crawler, Request(self._last))


async def pause(seconds: float) -> None:
    """Wait in a callback or another coroutine of a spider."""
    await compat.waiting_for(compat.spawn(compat.sleep(seconds)))
