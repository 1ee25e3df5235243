"""`Addon`: enables the plugin with one line in ``settings.py``.

The add-on replaces Scrapy's own robots.txt middleware by `NoRobotsMiddleware`, at the same order; sets
`ROBOTSTXT_OBEY` to True and `DOWNLOADER` to `RobotsDownloader`, unless the user has set them; puts
`RobotsScheduler` around the user's `SCHEDULER`; lists `RobotsMetaMiddleware`, which disables itself unless
`NOROBOTS_META` is on: another add-on may still set it; and registers the defaults of the plugin's settings.
The user's settings win: the order of a middleware, `None` for one of the plugin's middlewares,
`ROBOTSTXT_OBEY = False`. To apply the add-on twice has the same effect as to apply it once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import SETTINGS_PRIORITIES

from scrapy_norobots.checks import check_place, keys_of
from scrapy_norobots.features.metatag import RobotsMetaMiddleware
from scrapy_norobots.middleware import NoRobotsMiddleware
from scrapy_norobots.settings import DEFAULTS, read
from scrapy_norobots.waiting.scheduler import RobotsScheduler

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

_SETTING = "DOWNLOADER_MIDDLEWARES"
_META_SETTING = "SPIDER_MIDDLEWARES"
_SCHEDULER = "scrapy_norobots.RobotsScheduler"
_DEFAULT_ORDER = 100  # of both middlewares


class Addon:
    """Scrapy add-on that enables the plugin: ``ADDONS = {"scrapy_norobots.Addon": 500}``."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Addon:
        """Make the add-on of a crawler. Raises `ValueError` if a setting other than ADDONS lists it."""
        check_place(crawler.settings, cls, "ADDONS")
        return cls()

    @classmethod
    def update_pre_crawler_settings(cls, settings: BaseSettings) -> None:
        """Register the defaults of the plugin's settings."""
        for name, default in DEFAULTS.items():
            settings.setdefault(name, default, priority="default")

    def update_settings(self, settings: BaseSettings) -> None:
        """Enable the plugin's middlewares, its downloader and its scheduler in a crawler's settings.

        Scrapy's own robots.txt middleware is disabled, and ``ROBOTSTXT_OBEY`` becomes True. Settings of the
        project and the spider take precedence. Raises `SettingError` if one of the plugin's is invalid.
        """
        self.update_pre_crawler_settings(settings)
        settings.set("ROBOTSTXT_OBEY", True, priority="addon")
        _list_meta(settings)
        middlewares = dict(settings.getdict(_SETTING))
        ours = keys_of(NoRobotsMiddleware, middlewares)
        if ours and all(middlewares[key] is None for key in ours):
            return  # the user switched the plugin off, so Scrapy's own middleware stays, and obeys
        for name in DEFAULTS:
            if name != "NOROBOTS_ALSO_OBEY":  # the user's parsers must not be imported before the reactor
                read(settings, name)  # an error now, before the engine has opened anything
        # Only Scrapy's default has a lower priority: that of the project, or of another add-on, stays.
        settings.set("DOWNLOADER", "scrapy_norobots.RobotsDownloader", priority=1)
        _wrap_scheduler(settings)
        base = settings.getdict(f"{_SETTING}_BASE")
        builtin = keys_of(RobotsTxtMiddleware, base)
        listed = [middlewares.pop(key) for key in keys_of(RobotsTxtMiddleware, middlewares)]
        if not ours:
            # Put it first: among equal orders Scrapy's own comes before the user's, and so must this one.
            order = next(
                (one for one in (*listed, *map(base.get, builtin)) if one is not None), _DEFAULT_ORDER
            )
            middlewares = {"scrapy_norobots.NoRobotsMiddleware": order, **middlewares}
        # Use the same key as Scrapy: in 2.13, a class and its import path are two components.
        middlewares.update(dict.fromkeys(builtin))
        settings.set(_SETTING, middlewares, priority=settings.getpriority(_SETTING) or 0)


def _wrap_scheduler(settings: BaseSettings) -> None:
    """Put `RobotsScheduler` around the scheduler of the project or the spider, with the same priority."""
    priority = max(settings.getpriority("SCHEDULER") or 0, SETTINGS_PRIORITIES["addon"])
    scheduler = settings["SCHEDULER"]
    is_ours = isinstance(scheduler, type) and RobotsScheduler in scheduler.__mro__  # see `from_crawler` there
    if scheduler == RobotsScheduler.wrapped:
        settings.set("SCHEDULER", _SCHEDULER, priority)
    elif scheduler != _SCHEDULER and not is_ours:
        settings.set("SCHEDULER", RobotsScheduler.around(scheduler), priority)


def _list_meta(settings: BaseSettings) -> None:
    middlewares = dict(settings.getdict(_META_SETTING))
    if not keys_of(RobotsMetaMiddleware, middlewares):
        middlewares["scrapy_norobots.RobotsMetaMiddleware"] = _DEFAULT_ORDER
        settings.set(_META_SETTING, middlewares, priority=settings.getpriority(_META_SETTING) or 0)
