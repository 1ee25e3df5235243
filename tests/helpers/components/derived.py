"""Classes of projects, derived from the plugin's middleware or from Scrapy's own."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from scrapy import Request, Spider
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.http import Response

from scrapy_norobots import NoRobotsMiddleware, RobotsForbidden, RobotsMetaMiddleware


class OurOwn(NoRobotsMiddleware):
    """A subclass of this package's middleware in a project."""


class HalfPorted(NoRobotsMiddleware):
    """A subclass that was derived from Scrapy's own middleware before."""

    DOWNLOAD_PRIORITY = 5

    async def process_request(self, request: Request, spider: Spider | None = None) -> Any:
        return await super().process_request(request)

    def process_request_2(self, rp: object, request: Request) -> None:
        raise AssertionError("never called")


class IgnoresTheResult(NoRobotsMiddleware):
    """A user's subclass that only expects exceptions."""

    async def process_request(self, request: Request, spider: Spider | None = None) -> None:
        await super().process_request(request)


class OnlyLooks(NoRobotsMiddleware):
    """A user's subclass that sends forbidden requests too."""

    async def process_request(self, request: Request, spider: Spider | None = None) -> Any:
        with suppress(RobotsForbidden):
            return await super().process_request(request)


class ScrapysOwn(RobotsTxtMiddleware):
    """A subclass of Scrapy's robots.txt middleware in a project."""


class ExceptOwnPages(RobotsMetaMiddleware):
    """A user's subclass that does not read some pages."""

    def process_spider_input(self, response: Response, spider: Spider | None = None) -> None:
        if not response.url.endswith("/own"):
            super().process_spider_input(response)
