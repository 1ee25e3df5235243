"""`Addon`: one line in ``settings.py`` that enables the plugin.

It puts `NoRobotsMiddleware` where Scrapy's own robots.txt middleware stands, takes that one out, and turns
`ROBOTSTXT_OBEY` on for those who have not said anything about it. `RobotsMetaMiddleware` is listed too, and
takes itself out unless `NOROBOTS_META` is on, which another add-on may still set after this one. What the
user has set wins: an order for a middleware, `None` for one of ours, `ROBOTSTXT_OBEY = False`. Applying it
twice is applying it once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import SETTINGS_PRIORITIES

from scrapy_norobots.components import check_place, keys_of
from scrapy_norobots.metatag import RobotsMetaMiddleware
from scrapy_norobots.middleware import NoRobotsMiddleware

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

_SETTING = "DOWNLOADER_MIDDLEWARES"
_PATH = "scrapy_norobots.NoRobotsMiddleware"
_META_SETTING = "SPIDER_MIDDLEWARES"
_META_PATH = "scrapy_norobots.RobotsMetaMiddleware"
_DOWNLOADER = "scrapy_norobots.RobotsDownloader"
_DEFAULT_ORDER = 100  # of both


class Addon:
    """Scrapy add-on that enables the plugin: ``ADDONS = {"scrapy_norobots.Addon": 500}``."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Addon:
        """Make the add-on of a crawler; raises `ValueError` if it stands among other components."""
        check_place(crawler.settings, cls, "ADDONS")
        return cls()

    def update_settings(self, settings: BaseSettings) -> None:
        """Enable `NoRobotsMiddleware`, `RobotsMetaMiddleware` and `RobotsDownloader` in a crawler's settings.

        Scrapy's own robots.txt middleware is disabled, and ``ROBOTSTXT_OBEY`` becomes True. Settings of the
        project and the spider take precedence.
        """
        _list_meta(settings)
        middlewares = dict(settings.getdict(_SETTING))
        ours = keys_of(NoRobotsMiddleware, middlewares)
        if ours and all(middlewares[key] is None for key in ours):
            return  # switched off: Scrapy's own has to stay then
        settings.set("ROBOTSTXT_OBEY", True, priority="addon")
        if (settings.getpriority("DOWNLOADER") or 0) <= SETTINGS_PRIORITIES["default"]:
            settings.set("DOWNLOADER", _DOWNLOADER, priority="addon")
        base = settings.getdict(f"{_SETTING}_BASE")
        builtin = keys_of(RobotsTxtMiddleware, base)
        orders = [middlewares.pop(key) for key in keys_of(RobotsTxtMiddleware, middlewares)]
        orders += [base[key] for key in builtin]
        if not ours:
            # First, as Scrapy's own is before what the user gives the same order.
            order = next((order for order in orders if order is not None), _DEFAULT_ORDER)
            middlewares = {_PATH: order, **middlewares}
        # By the key that Scrapy has for it: until 2.14, a class and its path are two components.
        middlewares.update(dict.fromkeys(builtin))
        settings.set(_SETTING, middlewares, priority=settings.getpriority(_SETTING) or 0)


def _list_meta(settings: BaseSettings) -> None:
    middlewares = dict(settings.getdict(_META_SETTING))
    if not keys_of(RobotsMetaMiddleware, middlewares):
        middlewares[_META_PATH] = _DEFAULT_ORDER
        settings.set(_META_SETTING, middlewares, priority=settings.getpriority(_META_SETTING) or 0)
