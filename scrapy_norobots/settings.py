"""Read and check all settings once, when the crawl starts.

`DEFAULTS` is the table of this package's own settings. An invalid value is a `ValueError` with the setting,
the value and what is accepted. An unknown name that starts with `NOROBOTS_` is a WARNING that suggests the
most similar name.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.utils.misc import load_object

from scrapy_norobots.rules.access import DEFAULT_PRESET, StatusPolicy
from scrapy_norobots.rules.freshness import Freshness
from scrapy_norobots.rules.parser import Rfc9309RobotParser, StrictRobotParser
from scrapy_norobots.standard.names import to_name
from scrapy_norobots.stores import FORMS, LARGEST_FILE, MEMORY, with_home

if TYPE_CHECKING:
    from scrapy.robotstxt import RobotParser
    from scrapy.settings import BaseSettings
    from typing_extensions import Self

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

PREFIX = "NOROBOTS_"
# The start of a name that is probably a misspelt setting of this package.
_SIMILAR_PREFIX = re.compile("NO_?ROBOTS?(?:TXT)?_")

# How a boolean may be written.
_FLAGS = ("true", "false", "1", "0")

# The parsers that NOROBOTS_ALSO_OBEY accepts by the name of their standard.
_PARSERS: Mapping[str, type[RobotParser]] = MappingProxyType({"rfc9309": Rfc9309RobotParser})

# What is in a list of meta keys only by mistake.
_NO_META_KEY = re.compile(r"[\s;]|^$")

# The file of the store in JOBDIR, the directory of a job that can be paused and resumed.
_JOB_FILE = "robots.sqlite"

# How many redirects of a robots.txt are followed: RFC 9309 (2.3.1.2) asks for at least five.
REDIRECT_MAX = 5

# Upper limits of numbers. Larger ones are useless, and would fail later: in a timer, store or decompressor.
_DAY, _CENTURY = 86_400, 100 * 365 * 86_400
_MILLION = 10**6
_MOST_ROBOTS = 32  # a file keeps the rules of twice as many (see `standard.robotstxt`)
_TIB = 1024**4

DEFAULTS: Mapping[str, object] = MappingProxyType(
    {
        "NOROBOTS_ALSO_OBEY": (),
        "NOROBOTS_ALSO_ROBOTS": (),
        "NOROBOTS_STATUS_POLICY": DEFAULT_PRESET,
        "NOROBOTS_STORE": None,
        "NOROBOTS_REPORT": "",
        "NOROBOTS_EVIDENCE": "",
        "NOROBOTS_EVIDENCE_ALLOWED": True,
        "NOROBOTS_EVIDENCE_REQUIRED": False,
        "NOROBOTS_DRY_RUN": False,
        "NOROBOTS_CRAWL_DELAY_MAX": 0,
        "NOROBOTS_CRAWL_DELAY_SHARED": False,
        "NOROBOTS_META": False,
        "NOROBOTS_MULTIVALUE": False,
        "NOROBOTS_USAGE": False,
        "NOROBOTS_PURPOSES": (),
        # Rarely needed
        "NOROBOTS_TTL": 86_400,
        "NOROBOTS_TTL_MIN": 600,
        "NOROBOTS_ERROR_TTL": 60,
        "NOROBOTS_STALE_TTL": 7 * 86_400,
        "NOROBOTS_RETRY_CLOSED": 2,
        "NOROBOTS_RETRY_CLOSED_MAX": 10_000,
        "NOROBOTS_TIMEOUT": 15,
        "NOROBOTS_RETRY_TIMES": 1,
        "NOROBOTS_MAXSIZE": 2 * 1024 * 1024,
        "NOROBOTS_COPY_META": ("proxy", "bindaddress", "download_slot"),
        "NOROBOTS_CONCURRENT_FETCHES": 500,
        "NOROBOTS_MEMORY_MAX": 64 * 1024 * 1024,
        "NOROBOTS_STORE_MAX": 1024 * 1024 * 1024,
    }
)


# What replaces a setting of earlier versions.
_REMOVED: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            ("NOROBOTS_HELD_PER_ORIGIN", "NOROBOTS_HELD_MAX"),
            "requests that wait for robots.txt now stay in the scheduler, which needs no such limit",
        ),
        "NOROBOTS_ORIGINS_MAX": "NOROBOTS_MEMORY_MAX alone limits the origins in memory",
        "NOROBOTS_REDIRECT_MAX": f"up to {REDIRECT_MAX} redirects of robots.txt are always followed",
        "NOROBOTS_REPORT_ORIGINS": "a report lists 10,000 origins; NOROBOTS_EVIDENCE records all of them",
        "NOROBOTS_META_FOLLOW": 'NOROBOTS_META = "noindex" obeys only noindex',
        "NOROBOTS_META_INDEX": 'NOROBOTS_META = "nofollow" obeys only nofollow',
        "NOROBOTS_SHARE_ROBOTSTXT": (
            "to send a request for robots.txt to the site, set dont_obey_robotstxt in its meta"
        ),
    }
)


def value_of(settings: BaseSettings, name: str) -> Any:
    """Return the value of a setting as the user wrote it, or its default."""
    return settings.get(name, DEFAULTS[name])


def error(name: str, value: object, problem: str) -> ValueError:
    """Return the error for an invalid value."""
    return ValueError(f"{name} = {value!r}: {problem}")


def flag(settings: BaseSettings, name: str, accepted: str = "True or False") -> bool:
    """Return a boolean. Raises `ValueError`, which says what is `accepted`."""
    value = settings.get(name)
    try:
        flag = settings.getbool(name, bool(DEFAULTS.get(name)))
    except (TypeError, ValueError, OverflowError):
        flag = None
    # Scrapy accepts any number as a boolean. Only its own settings may have one here.
    if flag is None or (name in DEFAULTS and value is not None and str(value).lower() not in _FLAGS):
        raise error(name, value, f"must be {accepted}")
    return flag


def text(settings: BaseSettings, name: str) -> str | None:
    """Return a string, None if it is empty or not set. Raises `ValueError`."""
    value = settings.get(name)
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            raise error(name, value, "must be UTF-8") from None
    if value is not None and not isinstance(value, str):
        raise error(name, value, "must be a string")
    return value or None


def _number(settings: BaseSettings, name: str, unit: str, least: float, most: int) -> float:
    value = value_of(settings, name)
    try:
        number = float(value) if not isinstance(value, bool) else float("nan")
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not least <= number <= most:  # false for nan
        raise error(name, value, f"must be a number of {unit}, at least {least} and at most {most}")
    return number


def _whole(settings: BaseSettings, name: str, unit: str, least: int, most: int) -> int:
    number = _number(settings, name, unit, least, most)
    if number != int(number):
        raise error(name, value_of(settings, name), f"must be a whole number of {unit}")
    return int(number)


def _freshness(settings: BaseSettings) -> Freshness:
    freshness = Freshness(
        ttl_min=_number(settings, "NOROBOTS_TTL_MIN", "seconds", 0, _CENTURY),
        ttl=_number(settings, "NOROBOTS_TTL", "seconds", 0, _CENTURY),
        error_ttl=_number(settings, "NOROBOTS_ERROR_TTL", "seconds", 0, _CENTURY),
        stale_ttl=_number(settings, "NOROBOTS_STALE_TTL", "seconds", 0, _CENTURY),
    )
    if freshness.ttl < freshness.ttl_min and settings.get("NOROBOTS_TTL_MIN") is not None:
        raise error(
            "NOROBOTS_TTL_MIN", freshness.ttl_min, f"must be at most NOROBOTS_TTL, which is {freshness.ttl!r}"
        )
    return freshness


def _decoded(settings: BaseSettings, name: str, bracket: str) -> Any:
    """Return a value, decoded if it is a JSON string, as on the command line."""
    value = value_of(settings, name)
    if not isinstance(value, str) or not value.lstrip().startswith(bracket):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as exc:
        raise error(name, value, f"is not valid JSON ({exc})") from None


def list_of(settings: BaseSettings, name: str) -> Sequence[Any] | None:
    """Return the items of a list, or of a string in JSON or with commas; None for any other value."""
    value = _decoded(settings, name, "[")
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return tuple(value) if isinstance(value, (list, tuple, set, frozenset)) else None


def _names(settings: BaseSettings, name: str) -> tuple[str, ...]:
    parts = list_of(settings, name)
    if parts is None or not all(isinstance(part, str) for part in parts):
        raise error(name, value_of(settings, name), "must be a list of meta keys")
    for part in parts:
        if _NO_META_KEY.search(part):
            problem = f"{part!r} is not a meta key; separate keys by commas"
            raise error(name, value_of(settings, name), problem)
    return tuple(parts)


def _parsers(settings: BaseSettings, name: str) -> tuple[type[RobotParser], ...]:
    parts = list_of(settings, name)
    if parts is None:
        accepted = 'parser classes, their import paths or "rfc9309"'
        raise error(name, value_of(settings, name), f"must be a list of {accepted}")
    return tuple(_named_parser(part) or _load_parser(name, part) for part in parts)


def _named_parser(value: object) -> type[RobotParser] | None:
    return _PARSERS.get(value.lower()) if isinstance(value, str) else None


def _load_parser(name: str, value: Any) -> type[RobotParser]:
    try:
        parser: type[RobotParser] = load_object(value)
    except Exception as exc:  # the user's module may raise anything
        raise error(name, value, f"cannot be imported: {exc}") from exc
    if not hasattr(parser, "allowed"):
        raise error(name, value, "must be a RobotParser class: it has no method allowed")
    return parser


def _robots(settings: BaseSettings, name: str) -> tuple[str, ...]:
    value, parts = value_of(settings, name), list_of(settings, name)
    if parts is None or not all(isinstance(part, str) for part in parts):
        raise error(name, value, "must be a list of names of robots")
    for part in parts:
        if not to_name(part):
            raise error(name, value, f"{part!r} is not the name of a robot")
    if len(parts) > _MOST_ROBOTS:
        raise error(name, value, f"must be a list of at most {_MOST_ROBOTS} names")
    return tuple(parts)


def _store(settings: BaseSettings) -> str:
    """Return the store to use: by default a file in `JOBDIR` if that is set, or else memory."""
    value = value_of(settings, "NOROBOTS_STORE")
    if value is None or value == "":
        job = settings.get("JOBDIR")
        if not job:
            return MEMORY
        if not isinstance(job, (str, os.PathLike)):
            raise error("JOBDIR", job, "must be a path")
        return f"sqlite:///{Path(job) / _JOB_FILE}"
    if not isinstance(value, str):
        raise error("NOROBOTS_STORE", value, f"must be a string; expected {FORMS}")
    return with_home(value)


def _policy(settings: BaseSettings, name: str) -> StatusPolicy:
    value = _decoded(settings, name, "{")
    try:
        return StatusPolicy.of(value)
    except ValueError as exc:
        raise error(name, value_of(settings, name), str(exc)) from None


def _parser(settings: BaseSettings) -> type[RobotParser] | None:
    """Return the parser that the user has set; None for Scrapy's default and for the strict parser."""
    priority = settings.getpriority("ROBOTSTXT_PARSER")
    value = settings.get("ROBOTSTXT_PARSER")
    if value is None or priority is None or priority <= SETTINGS_PRIORITIES["default"]:
        return None
    parser = _load_parser("ROBOTSTXT_PARSER", value)
    return None if parser is StrictRobotParser else parser


def _warn_about_unknown(settings: BaseSettings) -> None:
    for name in settings:
        if isinstance(name, str) and _SIMILAR_PREFIX.match(name) and name not in DEFAULTS:
            names = [setting.removeprefix(PREFIX) for setting in DEFAULTS]
            nearest = get_close_matches(_SIMILAR_PREFIX.sub("", name), names, n=1)
            hint = f"; did you mean {PREFIX}{nearest[0]}?" if nearest else ""
            hint = f": {_REMOVED[name]}" if name in _REMOVED else hint
            logger.warning("Unknown setting %s is ignored%s", name, hint)


def setting(read: Callable[..., object], *arguments: object) -> Any:
    """Return a dataclass field whose value is what `read` returns for the settings and some arguments."""
    return field(metadata={"read": lambda settings: read(settings, *arguments)})


def _read(cls: type[_T], settings: BaseSettings) -> _T:
    """Return an instance of a dataclass whose fields are made by `setting`."""
    return cls(**{one.name: one.metadata["read"](settings) for one in fields(cls)})  # type: ignore[arg-type]


class Section:
    """Settings that belong together: a dataclass whose fields are made by `setting`.

    `Config` has those of the core. A feature has its own beside its code.
    """

    __slots__ = ()

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Read and check them. Raises `ValueError` as `Config.from_settings` does."""
        return _read(cls, settings)


@dataclass(frozen=True, slots=True)
class WaitingConfig(Section):
    """How many robots.txt files may be downloaded at a time, in addition to `CONCURRENT_REQUESTS`."""

    concurrent_fetches: int = setting(_whole, "NOROBOTS_CONCURRENT_FETCHES", "downloads", 0, _MILLION)


@dataclass(frozen=True, slots=True)
class Config(Section):
    """The settings of one crawl. Times are in seconds, sizes in bytes."""

    obey: bool = setting(flag, "ROBOTSTXT_OBEY")
    robot: str | None = setting(text, "ROBOTSTXT_USER_AGENT")
    parser: type[RobotParser] | None = setting(_parser)  # None is the strict parser
    also_obey: tuple[type[RobotParser], ...] = setting(_parsers, "NOROBOTS_ALSO_OBEY")
    also_robots: tuple[str, ...] = setting(_robots, "NOROBOTS_ALSO_ROBOTS")
    status_policy: StatusPolicy = setting(_policy, "NOROBOTS_STATUS_POLICY")
    store: str = setting(_store)
    dry_run: bool = setting(flag, "NOROBOTS_DRY_RUN")
    crawl_delay_max: float = setting(_number, "NOROBOTS_CRAWL_DELAY_MAX", "seconds", 0, _DAY)
    multivalue: bool = setting(flag, "NOROBOTS_MULTIVALUE")
    freshness: Freshness = setting(_freshness)
    retry_closed: int = setting(_whole, "NOROBOTS_RETRY_CLOSED", "retries", 0, 100)
    retry_closed_max: int = setting(_whole, "NOROBOTS_RETRY_CLOSED_MAX", "requests", 0, _MILLION)
    timeout: float = setting(_number, "NOROBOTS_TIMEOUT", "seconds", 0.001, _DAY)
    retry_times: int = setting(_whole, "NOROBOTS_RETRY_TIMES", "retries", 0, 100)
    maxsize: int = setting(_whole, "NOROBOTS_MAXSIZE", "bytes", 1, LARGEST_FILE)
    copy_meta: tuple[str, ...] = setting(_names, "NOROBOTS_COPY_META")
    waiting: WaitingConfig = setting(WaitingConfig.from_settings)
    memory_max: int = setting(_whole, "NOROBOTS_MEMORY_MAX", "bytes", 1, _TIB)
    store_max: int = setting(_whole, "NOROBOTS_STORE_MAX", "bytes", 1, _TIB)

    @property
    def longest_download(self) -> float:
        """The longest time that a download of a robots.txt can take, in seconds: each try of each hop."""
        return self.timeout * (1 + self.retry_times) * (1 + REDIRECT_MAX)

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Config:
        """Read and check the settings of a crawler.

        Raises `ValueError`, with the setting, its value and what is accepted, for an invalid value.
        """
        _warn_about_unknown(settings)
        return _read(cls, settings)
