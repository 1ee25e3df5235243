"""robots.txt for Scrapy by a strict reading of the 1994 Standard for Robot Exclusion.

Enable it with one line in ``settings.py``: ``ADDONS = {"scrapy_norobots.Addon": 500}``. Names that need
Scrapy are imported on first use. So `RobotsTxt` works without Scrapy, and importing the package installs no
Twisted reactor.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from scrapy_norobots._version import __version__ as __version__
from scrapy_norobots.standard import Decision, RobotsTxt

if TYPE_CHECKING:
    from scrapy_norobots.addon import Addon
    from scrapy_norobots.exceptions import RobotsForbidden, RobotsUnreachable
    from scrapy_norobots.features.metatag import RobotsMetaMiddleware
    from scrapy_norobots.middleware import NoRobotsMiddleware
    from scrapy_norobots.rules.parser import Rfc9309RobotParser, StrictRobotParser
    from scrapy_norobots.waiting.downloader import RobotsDownloader
    from scrapy_norobots.waiting.scheduler import RobotsScheduler

__all__ = [
    "Addon",
    "Decision",
    "NoRobotsMiddleware",
    "Rfc9309RobotParser",
    "RobotsDownloader",
    "RobotsForbidden",
    "RobotsMetaMiddleware",
    "RobotsScheduler",
    "RobotsTxt",
    "RobotsUnreachable",
    "StrictRobotParser",
]

_LAZY = {
    "Addon": "addon",
    "NoRobotsMiddleware": "middleware",
    "Rfc9309RobotParser": "rules.parser",
    "RobotsDownloader": "waiting.downloader",
    "RobotsForbidden": "exceptions",
    "RobotsMetaMiddleware": "features.metatag",
    "RobotsScheduler": "waiting.scheduler",
    "RobotsUnreachable": "exceptions",
    "StrictRobotParser": "rules.parser",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
