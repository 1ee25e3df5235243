"""What judged: the parsers of a crawl and their versions, as text that a crawl writes and an audit reads."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from typing import TYPE_CHECKING

from scrapy_norobots._version import __version__
from scrapy_norobots.rules.parser import StrictRobotParser

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy.robotstxt import RobotParser

    from scrapy_norobots.settings import Config

# The libraries that Scrapy's parsers call; urllib.robotparser is a part of Python.
_LIBRARIES = {
    "scrapy.robotstxt.ProtegoRobotParser": "Protego",
    "scrapy.robotstxt.RerpRobotParser": "robotexclusionrulesparser",
}


def python() -> str:
    """Return the version of Python."""
    return f"{platform.python_implementation()} {platform.python_version()}"


def parsers_of(config: Config) -> list[type[RobotParser]]:
    """Return the parsers that read each file of a crawl, in their order."""
    return [config.parser or StrictRobotParser, *config.also_obey]


def path_of(parser: type[RobotParser]) -> str:
    """Return the import path of a parser."""
    return f"{parser.__module__}.{parser.__qualname__}"


def described_path(description: str) -> str:
    """Return the import path in a description."""
    return description.partition(" ")[0]


def description(parser: type[RobotParser]) -> str:
    """Return the import path of a parser, and the distributions that its verdicts depend on."""
    path, package = path_of(parser), parser.__module__.partition(".")[0]
    if parser is StrictRobotParser:
        names: Sequence[str] = ["scrapy-norobots"]
    elif path in _LIBRARIES:
        names = [_LIBRARIES[path]]
    elif package == "scrapy":
        names = ["Scrapy"]
    else:
        names = sorted(set(packages_distributions().get(package, [])))
    versions = ", ".join(f"{name} {_version(name)}" for name in names)
    return f"{path} ({versions})" if versions else path


def _version(name: str) -> str:
    if name == "scrapy-norobots":
        return __version__
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
