"""The settings: their table, and what is read from it once, when the crawl starts.

`SETTINGS` is the table of this package's own settings. `Config`, the sections of the features, the defaults
that the add-on registers, and the tables of docs/settings.md come from it. An unknown name that starts with
`NOROBOTS_` is a WARNING that suggests the most similar name.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy.settings import SETTINGS_PRIORITIES

from scrapy_norobots import values
from scrapy_norobots.rules.access import DEFAULT_PRESET, StatusPolicy
from scrapy_norobots.rules.parser import StrictRobotParser
from scrapy_norobots.rules.snapshot import Freshness
from scrapy_norobots.scrapy_api.log import SettingError
from scrapy_norobots.stores import LARGEST_FILE, MEMORY, without_password

if TYPE_CHECKING:
    from scrapy.robotstxt import RobotParser
    from scrapy.settings import BaseSettings
    from typing_extensions import Self

logger = logging.getLogger(__name__)

PREFIX = "NOROBOTS_"
# The start of a name that is probably a misspelt setting of this package.
_SIMILAR_PREFIX = re.compile("NO_?ROBOTS?(?:TXT)?_")

# How many redirects of a robots.txt are followed: RFC 9309 (2.3.1.2) asks for at least five.
REDIRECT_MAX = 5

# Upper limits of numbers. Larger ones are useless, and would fail later: in a timer, store or decompressor.
_DAY, _CENTURY = 86_400, 100 * 365 * 86_400
_MILLION, _TIB = 10**6, 1024**4
_seconds = partial(values.number, "seconds", 0, _CENTURY)


class Setting(NamedTuple):
    """A setting: its default, what reads its value (see `values`), and what it does, in Markdown."""

    default: object
    read: Callable[[Any], Any]
    about: str


SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {
        "NOROBOTS_ALSO_OBEY": Setting(
            (),
            values.parsers,
            "also obeys other standards, such as RFC 9309: a request is sent only if all of them allow it",
        ),
        "NOROBOTS_ALSO_ROBOTS": Setting(
            (), values.robots, 'also obeys the rules for other robots, such as `"GPTBot"`'
        ),
        "NOROBOTS_STATUS_POLICY": Setting(
            DEFAULT_PRESET,
            values.policy,
            "allows or denies requests to a site whose robots.txt cannot be downloaded",
        ),
        "NOROBOTS_STORE": Setting(None, values.store, "saves downloaded robots.txt files in SQLite or Redis"),
        "NOROBOTS_REPORT": Setting(
            "", values.paths, "writes a [report](report.md) of the crawl to this path"
        ),
        "NOROBOTS_EVIDENCE": Setting("", values.folder, "stores [evidence](evidence.md) in this folder"),
        "NOROBOTS_EVIDENCE_ALLOWED": Setting(
            True, values.flag, "also stores the decisions that allow a request"
        ),
        "NOROBOTS_EVIDENCE_REQUIRED": Setting(
            False, values.flag, "closes the spider if evidence cannot be written during the crawl"
        ),
        "NOROBOTS_DRY_RUN": Setting(False, values.flag, "logs forbidden requests, but sends them"),
        "NOROBOTS_CRAWL_DELAY_MAX": Setting(
            0,
            partial(values.number, "seconds", 0, _DAY),
            "obeys [`Crawl-delay`](crawl-delay.md), up to this number of seconds",
        ),
        "NOROBOTS_CRAWL_DELAY_SHARED": Setting(
            False,
            values.flag,
            "keeps one common delay for each site, for all processes with the same Redis store",
        ),
        "NOROBOTS_META": Setting(
            False,
            values.flag_or_word,
            "obeys robots [META tags](usage.md#meta-tags-and-x-robots-tag) and `X-Robots-Tag` headers",
        ),
        "NOROBOTS_MULTIVALUE": Setting(
            False, values.flag, "accepts several values in one line of robots.txt"
        ),
        "NOROBOTS_USAGE": Setting(
            False, values.flag, "records what sites say about the [use of their pages](usage.md)"
        ),
        "NOROBOTS_PURPOSES": Setting(
            (),
            partial(values.listed, "a list of purposes", str),
            'drops requests if robots.txt says no to a purpose of the crawl, such as `"search"`',
        ),
        # Rarely needed
        "NOROBOTS_TTL": Setting(86_400, _seconds, "longest time until robots.txt is downloaded again"),
        "NOROBOTS_TTL_MIN": Setting(600, _seconds, "shortest time until robots.txt is downloaded again"),
        "NOROBOTS_ERROR_TTL": Setting(
            60, _seconds, "first delay until robots.txt is downloaded again after a temporary failure"
        ),
        "NOROBOTS_STALE_TTL": Setting(
            7 * 86_400, _seconds, "how long expired rules stay in use if robots.txt cannot be downloaded"
        ),
        "NOROBOTS_RETRY_CLOSED": Setting(
            2,
            partial(values.whole, "retries", 0, 100),
            "how many times robots.txt is tried again, before the waiting requests are dropped",
        ),
        "NOROBOTS_RETRY_CLOSED_MAX": Setting(
            10_000,
            partial(values.whole, "requests", 0, _MILLION),
            "how many requests may wait for temporarily closed sites",
        ),
        "NOROBOTS_TIMEOUT": Setting(
            15, partial(values.number, "seconds", 0.001, _DAY), "timeout of a request for robots.txt"
        ),
        "NOROBOTS_RETRY_TIMES": Setting(
            1,
            partial(values.whole, "retries", 0, 100),
            "how often a failed request for robots.txt is repeated immediately",
        ),
        "NOROBOTS_MAXSIZE": Setting(
            2 * 1024 * 1024, partial(values.whole, "bytes", 1, LARGEST_FILE), "largest accepted robots.txt"
        ),
        "NOROBOTS_COPY_META": Setting(
            ("proxy", "bindaddress", "download_slot"),
            values.meta_keys,
            "meta keys that the request for robots.txt copies from the page request",
        ),
        "NOROBOTS_CONCURRENT_FETCHES": Setting(
            500,
            partial(values.whole, "downloads", 0, _MILLION),
            "how many robots.txt files may be loaded at the same time",
        ),
        "NOROBOTS_MEMORY_MAX": Setting(
            64 * 1024 * 1024,
            partial(values.whole, "bytes", 1, _TIB),
            "how much memory the robots.txt files may take",
        ),
        "NOROBOTS_STORE_MAX": Setting(
            1024 * 1024 * 1024, partial(values.whole, "bytes", 1, _TIB), "largest size of a SQLite store"
        ),
    }
)

DEFAULTS: Mapping[str, object] = MappingProxyType({name: one.default for name, one in SETTINGS.items()})


def error(name: str, value: object, problem: str) -> SettingError:
    """Return the error for an invalid value, without the password of a store."""
    shown = repr(value)
    if name == "NOROBOTS_STORE":
        shown = repr(without_password(value)) if isinstance(value, str) else without_password(shown)
    return SettingError(f"{name} = {shown}: {problem}")


def read(settings: BaseSettings, name: str, reader: Callable[[Any], Any] | None = None) -> Any:
    """Return the value of a setting as the code uses it; one that is not of this package needs a reader."""
    value = settings.get(name, DEFAULTS.get(name))
    try:
        return (reader or SETTINGS[name].read)(value)
    except ValueError as exc:
        raise error(name, value, str(exc)) from exc


def setting(
    source: str | Callable[[BaseSettings], object], reader: Callable[[Any], Any] | None = None
) -> Any:
    """Return a field of a `Section`, which comes from a setting, or is made of several by a function."""
    made = source if callable(source) else partial(read, name=source, reader=reader)
    return field(metadata={"read": made})


class Section:
    """Settings of the core or of a feature: a dataclass whose fields are made by `setting`."""

    __slots__ = ()

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Read and check them. Raises `SettingError`, with the setting, its value and what is accepted."""
        return cls(**{one.name: one.metadata["read"](settings) for one in fields(cls)})  # type: ignore[arg-type]


def _parser(settings: BaseSettings) -> type[RobotParser]:
    """Return the parser that the user has set; the strict parser in place of Scrapy's default."""
    is_default = settings.getpriority("ROBOTSTXT_PARSER") in (None, SETTINGS_PRIORITIES["default"])
    if is_default or settings.get("ROBOTSTXT_PARSER") is None:
        return StrictRobotParser
    parser: type[RobotParser] = read(settings, "ROBOTSTXT_PARSER", values.parser)
    return parser


def _store(settings: BaseSettings) -> str:
    """Return the store to use: by default a file in `JOBDIR` if that is set, or else memory."""
    store: str | None = read(settings, "NOROBOTS_STORE")
    job = settings.get("JOBDIR")
    if store or not job:
        return store or MEMORY
    if not isinstance(job, (str, os.PathLike)):
        raise error("JOBDIR", job, "must be a path")
    return f"sqlite:///{Path(job) / 'robots.sqlite'}"


def _freshness(settings: BaseSettings) -> Freshness:
    return Freshness(**{one.name: read(settings, PREFIX + one.name.upper()) for one in fields(Freshness)})


@dataclass(frozen=True, slots=True)
class Config(Section):
    """The settings of one crawl. Times are in seconds, sizes in bytes."""

    obey: bool = setting("ROBOTSTXT_OBEY", values.flag)
    robot: str | None = setting("ROBOTSTXT_USER_AGENT", values.robot)
    parser: type[RobotParser] = setting(_parser)
    also_obey: tuple[type[RobotParser], ...] = setting("NOROBOTS_ALSO_OBEY")
    also_robots: tuple[str, ...] = setting("NOROBOTS_ALSO_ROBOTS")
    status_policy: StatusPolicy = setting("NOROBOTS_STATUS_POLICY")
    store: str = setting(_store)
    dry_run: bool = setting("NOROBOTS_DRY_RUN")
    crawl_delay_max: float = setting("NOROBOTS_CRAWL_DELAY_MAX")
    multivalue: bool = setting("NOROBOTS_MULTIVALUE")
    freshness: Freshness = setting(_freshness)
    retry_closed: int = setting("NOROBOTS_RETRY_CLOSED")
    retry_closed_max: int = setting("NOROBOTS_RETRY_CLOSED_MAX")
    timeout: float = setting("NOROBOTS_TIMEOUT")
    retry_times: int = setting("NOROBOTS_RETRY_TIMES")
    maxsize: int = setting("NOROBOTS_MAXSIZE")
    copy_meta: tuple[str, ...] = setting("NOROBOTS_COPY_META")
    concurrent_fetches: int = setting("NOROBOTS_CONCURRENT_FETCHES")
    memory_max: int = setting("NOROBOTS_MEMORY_MAX")
    store_max: int = setting("NOROBOTS_STORE_MAX")

    @property
    def longest_download(self) -> float:
        """The longest time that a download of a robots.txt can take, in seconds: each try of each hop."""
        return self.timeout * (1 + self.retry_times) * (1 + REDIRECT_MAX)

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Config:
        """Read and check the settings of a crawler, and warn about unknown ones."""
        names = [name.removeprefix(PREFIX) for name in SETTINGS]
        for name in settings:
            if isinstance(name, str) and _SIMILAR_PREFIX.match(name) and name not in SETTINGS:
                nearest = get_close_matches(_SIMILAR_PREFIX.sub("", name), names, n=1)
                hint = f"; did you mean {PREFIX}{nearest[0]}?" if nearest else ""
                logger.warning("Unknown setting %s is ignored%s", name, hint)
        return super(Config, cls).from_settings(settings)
