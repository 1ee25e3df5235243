"""What is checked before a crawl begins: whether the plugin is wanted, and the project is set up for it.

A check raises `NotConfigured` or a `ValueError`, or logs what to change or what is not in effect.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import NotConfigured
from scrapy.settings import default_settings
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name

from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.scrapy_api.log import SettingError, spider_name
from scrapy_norobots.settings import Config, read

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from scrapy_norobots.scrapy_api.identity import Identity

logger = logging.getLogger(__name__)

# Settings whose keys are components: classes or import paths.
_COMPONENT_SETTINGS = ("ADDONS", "DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "EXTENSIONS")
# Without ROBOTSTXT_OBEY, these have no effect, which their users should know.
_FOR_FEATURES = (
    "NOROBOTS_CRAWL_DELAY_MAX",
    "NOROBOTS_EVIDENCE",
    "NOROBOTS_PURPOSES",
    "NOROBOTS_REPORT",
    "NOROBOTS_USAGE",
)
_SAFE_TO_IMPORT = ("scrapy_norobots.", "scrapy.")

# A URL or an e-mail address.
_CONTACT = re.compile(rb"https?://\S|\bwww\.|\S@\S")


def check_components(crawler: Crawler, cls: type, base: type, place: str) -> None:
    """Check that an instance of `cls` is wanted, which is `base`, a middleware, or a subclass of it.

    Raises `NotConfigured` if a subclass replaces `base`, `ValueError` if `base` is in a setting other than
    `place`.
    """
    check_place(crawler.settings, base, place)
    for key in enabled_keys(crawler.settings, place, base) if cls is base else ():
        if not keys_of(base, {key: 0}):
            logger.info("%s replaces scrapy_norobots.%s", key, base.__name__)
            raise NotConfigured


def read_config(crawler: Crawler, cls: type, base: type) -> Config:
    """Return the settings of a crawl, and warn about what keeps them from having an effect.

    Raises `NotConfigured` if ``ROBOTSTXT_OBEY`` is false, `ValueError` if a setting is invalid.
    """
    config = Config.from_settings(crawler.settings)
    if not config.obey:
        logger.info("Spider %s does not obey robots.txt: ROBOTSTXT_OBEY is False", spider_name(crawler))
        for name in _FOR_FEATURES:
            if read(crawler.settings, name):
                logger.warning("%s has no effect: ROBOTSTXT_OBEY is False", name)
        raise NotConfigured
    for key in enabled_keys(crawler.settings, "DOWNLOADER_MIDDLEWARES", RobotsTxtMiddleware):
        logger.warning(  # a project that lists the middleware by hand, without the add-on
            "%s is enabled too: a request passes only if both middlewares allow it, and each robots.txt is "
            "downloaded twice. Set it to None in DOWNLOADER_MIDDLEWARES, or derive a class of your own from "
            "scrapy_norobots.NoRobotsMiddleware",
            key if isinstance(key, str) else global_object_name(key),
        )
    _warn_about_unused_hooks(cls, base)
    if config.dry_run:
        logger.warning("NOROBOTS_DRY_RUN is on: forbidden requests are logged and counted, but not dropped")
    return config


def check_user_agent(crawler: Crawler, identity: Identity) -> None:
    """Warn if the owner of a site cannot see from the User-Agent whose crawl this is."""
    agent = identity.default_user_agent
    is_default = agent == default_settings.USER_AGENT.encode()
    if (is_default or not _CONTACT.search(agent)) and compat.is_own_crawl(crawler):
        logger.warning(
            "The User-Agent %r has no URL and no e-mail address of yours, so the owners of sites cannot see "
            "whose crawl this is, and cannot write to you. Set USER_AGENT to a name and an address, "
            "such as 'FooBot/1.0 (+https://foo.example/bot)'",
            agent.decode("utf-8", "replace"),
        )


def _warn_about_unused_hooks(cls: type, base: type) -> None:
    """Warn about a subclass that was derived from Scrapy's own middleware before."""
    hooks = {name for name in vars(RobotsTxtMiddleware) if name[:2] != "__" and not hasattr(base, name)}
    own = [one for one in cls.__mro__[: cls.__mro__.index(base)] if one is not RobotsTxtMiddleware]
    if overrides := sorted(hooks & {name for one in own for name in vars(one)}):
        logger.warning(
            "%s overrides what only Scrapy's own robots.txt middleware calls, so this has no effect: %s. "
            '"Moving from RobotsTxtMiddleware" in the documentation says what to use instead',
            global_object_name(cls),
            ", ".join(overrides),
        )


def keys_of(cls: type, components: Mapping[Any, Any]) -> list[Any]:
    """Return the keys of a component setting that refer to the class `cls`.

    The user's modules are not imported: add-ons run before the reactor is installed, and a module may do so.
    """
    return [
        key
        for key in components
        if (not isinstance(key, str) or key.startswith(_SAFE_TO_IMPORT)) and _load(key) is cls
    ]


def enabled_keys(settings: BaseSettings, name: str, cls: type) -> list[Any]:
    """Return the keys by which the setting `name`, or its ``_BASE``, enables `cls` or a subclass of it.

    The components that the user has listed are imported.
    """
    return [
        key
        for key, order in compat.components(settings, name).items()
        if order is not None and isinstance(found := _load(key), type) and issubclass(found, cls)
    ]


def check_place(settings: BaseSettings, cls: type, place: str) -> None:
    """Raise `ValueError` if `cls` is enabled in a component setting other than `place`."""
    for name in _COMPONENT_SETTINGS:
        components = settings.getdict(name)
        for key in keys_of(cls, components):
            if name != place and components[key] is not None:
                raise SettingError(f"{name} = {dict(components)!r}: {key!r} belongs in {place}")


def _load(key: Any) -> Any:
    try:
        return load_object(key)
    except Exception:  # of any kind; Scrapy reports it
        return None
