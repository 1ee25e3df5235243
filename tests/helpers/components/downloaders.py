"""Downloaders of users."""

from __future__ import annotations

import warnings
from typing import Any

from scrapy import Request, signals
from scrapy.core.downloader import Downloader
from scrapy.crawler import Crawler
from scrapy.exceptions import ScrapyDeprecationWarning
from scrapy.http import Response

from scrapy_norobots import RobotsDownloader


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


class ThrottledDownloader(Downloader):
    """A downloader with a throttler in place of slots, as proposed for Scrapy: what is left warns."""

    async def _enqueue_request(self, request: Request) -> Response:
        self.signals.send_catch_log(
            signals.request_reached_downloader, request=request, spider=self.crawler.spider
        )
        return await self._download(request)

    async def _download(self, request: Request) -> Response:  # type: ignore[override]
        try:
            return await self.handlers.download_request_async(request)
        finally:
            self.signals.send_catch_log(
                signals.request_left_downloader, request=request, spider=self.crawler.spider
            )

    def __getattribute__(self, name: str) -> Any:
        if name in ("slots", "_get_slot"):
            warnings.warn(f"{name} is deprecated", ScrapyDeprecationWarning, stacklevel=2)
        return super().__getattribute__(name)

    def _slot_gc(self, age: float = 60) -> None:
        """Do nothing: no slots are left to remove. Scrapy 2.14 calls this when the crawl starts."""

    def close(self) -> None:
        pass


class DownloaderWithThrottler(RobotsDownloader, ThrottledDownloader):
    """The plugin's downloader on such a Scrapy."""


class OtherHandlers:
    """Download handlers that cannot be looked up."""

    def __init__(self, handlers: Any) -> None:
        self.download_request_async = handlers.download_request_async


class DownloaderWithOtherHandlers(RobotsDownloader):
    """The plugin's downloader on a Scrapy with such handlers."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self.handlers: Any = OtherHandlers(self.handlers)


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
