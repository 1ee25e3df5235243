"""What is checked before a crawl begins: whether the plugin is wanted, and the project is set up for it.

The answers are `NotConfigured`, a `ValueError`, or WARNINGs that say what to change.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import NotConfigured
from scrapy.settings import default_settings
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name

from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.scrapy_api.components import check_place, enabled_keys, keys_of, unused_overrides
from scrapy_norobots.scrapy_api.log import spider_name
from scrapy_norobots.settings import Config, read

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from scrapy_norobots.scrapy_api.identity import Identity

logger = logging.getLogger(__name__)

# A URL or an e-mail address.
_CONTACT = re.compile(rb"https?://\S|\bwww\.|\S@\S")


def check_components(crawler: Crawler, cls: type, base: type, place: str) -> None:
    """Check that an instance of `cls` is wanted, which is `base`, a middleware, or a subclass of it.

    Raises `NotConfigured` if a subclass replaces `base`, `ValueError` if `base` is in a setting other than
    `place`.
    """
    check_place(crawler.settings, base, place)
    if cls is base and _is_replaced_by_subclass(crawler.settings, base, place):
        raise NotConfigured


def read_config(crawler: Crawler, cls: type, base: type) -> Config:
    """Return the settings of a crawl, and warn about what keeps them from having an effect.

    Raises `NotConfigured` if ``ROBOTSTXT_OBEY`` is false, `ValueError` if a setting is invalid.
    """
    config = Config.from_settings(crawler.settings)
    if not config.obey:
        logger.info("Spider %s does not obey robots.txt: ROBOTSTXT_OBEY is False", spider_name(crawler))
        for name in ("NOROBOTS_EVIDENCE", "NOROBOTS_PURPOSES", "NOROBOTS_REPORT", "NOROBOTS_USAGE"):
            if read(crawler.settings, name):
                logger.warning("%s has no effect: ROBOTSTXT_OBEY is False", name)
        raise NotConfigured
    _warn_about_incomplete_setup(crawler.settings)
    _warn_about_unused_hooks(cls, base)
    if config.dry_run:
        logger.warning("NOROBOTS_DRY_RUN is on: forbidden requests are logged and counted, but not dropped")
    return config


def check_user_agent(crawler: Crawler, identity: Identity) -> None:
    """Warn if the owner of a site cannot see from the User-Agent whose crawl this is.

    The user of a command that fetches one page, such as ``scrapy fetch``, is not warned.
    """
    agent = identity.default_user_agent
    if agent == default_settings.USER_AGENT.encode():
        problem = "is Scrapy's default"
    elif not _CONTACT.search(agent):
        problem = "has no URL and no e-mail address"
    else:
        return
    if compat.is_own_crawl(crawler):
        logger.warning(
            "The User-Agent %r %s, so the owners of sites cannot see whose crawl this is, "
            "and cannot write to you. Set USER_AGENT to a name and an address, "
            "such as 'FooBot/1.0 (+https://foo.example/bot)'",
            agent.decode("utf-8", "replace"),
            problem,
        )


def _is_replaced_by_subclass(settings: BaseSettings, base: type, place: str) -> bool:
    """Return whether the project enables a subclass of the middleware, which replaces it."""
    keys = enabled_keys(settings, place, base)
    subclasses = [key for key in keys if key not in keys_of(base, dict.fromkeys(keys))]
    for key in subclasses:
        logger.info("%s replaces scrapy_norobots.%s", key, base.__name__)
    return bool(subclasses)


def _warn_about_unused_hooks(cls: type, base: type) -> None:
    """Warn about a subclass that was derived from Scrapy's own middleware before."""
    if hooks := unused_overrides(cls, base, RobotsTxtMiddleware):
        logger.warning(
            "%s overrides what only Scrapy's own robots.txt middleware calls, so this has no effect: %s. "
            '"Moving from RobotsTxtMiddleware" in the documentation says what to use instead',
            global_object_name(cls),
            ", ".join(hooks),
        )


def _warn_about_incomplete_setup(settings: BaseSettings) -> None:
    """Warn about settings that are missing if a project lists the middleware by hand, without the add-on."""
    for key in enabled_keys(settings, "DOWNLOADER_MIDDLEWARES", RobotsTxtMiddleware):
        cls = load_object(key)
        if cls is RobotsTxtMiddleware:
            logger.warning(
                "Scrapy's own robots.txt middleware is enabled too, and downloads each robots.txt once more: "
                "set %r to None in DOWNLOADER_MIDDLEWARES",
                key,
            )
        else:
            logger.warning(
                "%s, a subclass of Scrapy's robots.txt middleware, is enabled too: a request passes only if "
                "both allow it, and each robots.txt is downloaded twice. Derive the class from "
                "scrapy_norobots.NoRobotsMiddleware, or set it to None in DOWNLOADER_MIDDLEWARES",
                global_object_name(cls),
            )
