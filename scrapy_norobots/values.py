"""Read the values of settings: from Python, or as text from the command line.

Each function takes the value of a setting, returns it as the code uses it, and raises `ValueError`, which
says what is accepted. The last one, `expand`, replaces the placeholders in a path, as in Scrapy's `FEEDS`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from scrapy_norobots.rules.access import StatusPolicy
from scrapy_norobots.rules.parser import Rfc9309RobotParser
from scrapy_norobots.scrapy_api.log import SettingError
from scrapy_norobots.standard.names import to_name
from scrapy_norobots.stores import MEMORY, with_home
from scrapy_norobots.stores.opening import FORMS

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.robotstxt import RobotParser

_META_WORDS = ("nofollow", "noindex")

# The parsers that NOROBOTS_ALSO_OBEY accepts by the name of their standard.
_PARSERS: Mapping[str, type[RobotParser]] = MappingProxyType({"rfc9309": Rfc9309RobotParser})

_MOST_ROBOTS = 32  # a file keeps the rules of twice as many (see `standard.robotstxt`)


def flag(value: object, accepted: str = "True or False") -> bool:
    """Return a boolean as Scrapy reads its own."""
    try:
        return BaseSettings({"value": value}).getbool("value")
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"must be {accepted}") from None


def flag_or_word(value: object) -> bool | str:
    """Return a boolean, or a word of META tags."""
    if str(value).lower() in _META_WORDS:
        return str(value).lower()
    return flag(value, 'True, False, "nofollow" or "noindex"')


def _is_off(value: object) -> bool:
    """Return whether a value, other than that of a boolean or a number, switches its setting off."""
    return str(value).lower() in ("false", "0")


def number(unit: str, least: float, most: int, value: Any, kind: type = float) -> Any:
    try:
        read, exact = kind(value), float(value)
    except (TypeError, ValueError, OverflowError):
        read = exact = float("nan")
    if isinstance(value, bool) or read != exact or not least <= read <= most:  # as nan is not itself
        what = "whole number" if kind is int else "number"
        raise ValueError(f"must be a {what} of {unit}, at least {least} and at most {most}")
    return read


whole = partial(number, kind=int)


def _decoded(value: Any, bracket: str) -> Any:
    """Return a value, decoded if it is a JSON string, as on the command line."""
    if not isinstance(value, str) or not value.lstrip().startswith(bracket):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as exc:
        raise ValueError(f"is not valid JSON ({exc})") from None


def listed(
    what: str, kind: type | tuple[type, ...], value: Any, is_wrong: Callable[[Any], object] = lambda _: False
) -> tuple[Any, ...]:
    """Return the items of a list, or of a string in JSON or with commas, all of which are of a kind."""
    value = () if _is_off(value) else _decoded(value, "[")
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if not isinstance(value, (list, tuple, set, frozenset)) or not all(
        isinstance(one, kind) for one in value
    ):
        raise ValueError(f"must be {what}")
    for wrong in filter(is_wrong, value):
        raise ValueError(f"{wrong!r} cannot be in {what}; separate them by commas")
    return tuple(value)


# Blanks and semicolons are in a key or a name only by mistake.
_UNCLEAR = re.compile(r"[\s;]|^$").search
meta_keys = partial(listed, "a list of meta keys", str, is_wrong=_UNCLEAR)


def robots(value: Any) -> tuple[str, ...]:
    what = "a list of names of robots"
    # A name with blanks must be in a list: as a text, it may be several.
    is_text = isinstance(value, str) and "[" not in value
    names = listed(what, str, value, lambda one: not to_name(one) or (is_text and _UNCLEAR(to_name(one))))
    if len(names) > _MOST_ROBOTS:
        raise ValueError(f"must be a list of at most {_MOST_ROBOTS} names")
    return names


def robot(value: Any) -> str | None:
    """Return the name of a robot; None if it is empty or not set."""
    if value is not None and not isinstance(value, str):
        raise ValueError("must be a string")
    return value or None


def parsers(value: Any) -> tuple[type[RobotParser], ...]:
    names = listed('a list of parser classes, their import paths or "rfc9309"', object, value)
    return tuple(_PARSERS.get(str(name).lower()) or parser(name) for name in names)


def parser(value: Any) -> type[RobotParser]:
    """Return a parser, or that of an import path."""
    try:
        loaded: type[RobotParser] = load_object(value)
    except Exception as exc:  # the user's module may raise anything
        raise ValueError(
            f'{value!r} cannot be imported: {exc}; use "rfc9309" or the import path of a parser'
        ) from exc
    if not hasattr(loaded, "allowed"):
        raise ValueError(f"{value!r} must be a RobotParser class: it has no method allowed")
    return loaded


def policy(value: Any) -> StatusPolicy:
    return StatusPolicy.of(_decoded(value, "{"))


def paths(value: Any) -> tuple[str, ...]:
    """Return the paths in a list; one path may stand alone."""
    several = [value] if isinstance(value, os.PathLike) else value
    return tuple(map(os.fspath, listed("a path or a list of paths", (str, os.PathLike), several)))


def folder(value: Any) -> str:
    if _is_off(value):
        return ""
    path = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if not isinstance(path, str) or "://" in path:
        raise ValueError("must be the path of a folder, not a URL")
    return path


def store(value: Any) -> str | None:
    """Return the URL of a store; None if none is set."""
    if _is_off(value):
        return MEMORY
    if value is not None and not isinstance(value, str):
        raise ValueError(f"must be a string; expected {FORMS}")
    return with_home(value) if value else None


def expand(setting: str, template: str, spider: Spider | None, start: datetime) -> str:
    """Return the path that a template names, with the home directory in place of ``~``.

    ``%(time)s`` is the start of the crawl, and any other placeholder is an attribute of the spider. Raises
    `ValueError`, with the setting and its value, if a placeholder is unknown.
    """
    time = start.isoformat(timespec="seconds").replace(":", "-")
    values: dict[str, object] = {}
    try:
        for name in filter(None, re.findall(r"%%|%\((.*?)\)", template)):
            value = time if name == "time" else getattr(spider, name)
            # A number is for %(number)03d; other values must not add a directory.
            is_number = isinstance(value, (int, float))
            values[name] = value if is_number else str(value).replace("/", "-").replace(os.sep, "-")
        path = template % values
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise SettingError(
            f"{setting} = {template!r}: unknown placeholder ({exc}); use %(time)s, an attribute of "
            "the spider such as %(name)s, or '%%' for a '%'"
        ) from exc
    return os.path.expanduser(path)  # noqa: PTH111  # pathlib's function raises for "~name" without such a user
