"""Spiders with settings of their own, and one that uses something deprecated."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

from scrapy import Request, signals
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import ScrapyDeprecationWarning
from scrapy.http import Response

from tests.helpers.components.derived import ScrapysOwn
from tests.helpers.spiders.pages import Pages


class OrdersTheClass(Pages):
    """Lists Scrapy's robots.txt middleware with another order, by its class."""

    custom_settings = {"DOWNLOADER_MIDDLEWARES": {RobotsTxtMiddleware: 543}}  # noqa: RUF012  # as users write it


class SwitchesTheClassOff(Pages):
    """Switches Scrapy's robots.txt middleware off, by its class."""

    custom_settings = {"DOWNLOADER_MIDDLEWARES": {RobotsTxtMiddleware: None}}  # noqa: RUF012  # as users write it


class ListsASubclassOfScrapys(Pages):
    """Lists a subclass of Scrapy's robots.txt middleware, by its class."""

    custom_settings = {"DOWNLOADER_MIDDLEWARES": {ScrapysOwn: 110}}  # noqa: RUF012  # as users write it


class Unruly(Pages):
    """Disables ROBOTSTXT_OBEY in its own settings."""

    custom_settings = {"ROBOTSTXT_OBEY": False}  # noqa: RUF012  # as users write it


class Renaming(Pages):
    """Sets its User-Agent when it is opened."""

    listens: ClassVar = {"rename": signals.spider_opened}

    def rename(self) -> None:
        self.user_agent = "OpenedBot/5.0"


class SchedulesWhenOpened(Pages):
    """Sends its first request before Scrapy has taken note of its User-Agent.

    Without an errback, the request is checked when it is scheduled.
    """

    listens: ClassVar = {"opened": signals.spider_opened}
    user_agent = "SpiderBot/2.0"

    def opened(self) -> None:
        self.engine.crawl(next(self.first_requests()).replace(dont_filter=True, errback=None))


class RenamingTooLate(Pages):
    """Sets its User-Agent when its start requests are asked for, which Scrapy ignores."""

    def first_requests(self) -> Iterator[Request]:
        self.user_agent = "LateBot/6.0"
        yield from super().first_requests()


class Outdated(Pages):
    """Uses something deprecated."""

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        warnings.warn("the old way", ScrapyDeprecationWarning, stacklevel=2)
        yield from super().parse(response, **kwargs)
