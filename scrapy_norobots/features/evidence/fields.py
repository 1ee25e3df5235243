"""What evidence files consist of, for those who write them and those who read them.

A run has two files: a WARC file with the settings of the crawl and all answers, and a file of lines of
JSON. There are four kinds of lines. A *record line* names a record of the WARC file, a *decision line* has a
decision, a *seal* has the digest of all bytes of the file before it, and a *closing line*, which is a seal
too, ends the run. The audit writes each line again from what it has read: a line that differs in one byte was
changed. The *head* of a run is the SHA-256 of the file of lines.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from functools import lru_cache
from importlib.metadata import packages_distributions, version
from typing import TYPE_CHECKING, Any

from scrapy_norobots._version import __version__
from scrapy_norobots.rules.access import StatusPolicy
from scrapy_norobots.standard.urls import percent_encode

if TYPE_CHECKING:
    from scrapy.robotstxt import RobotParser

WARC_SUFFIX, DECISIONS_SUFFIX = ".warc.gz", ".decisions.jsonl.gz"

# Fields of WARC records beside the standard's: the origin whose robots.txt was requested, the digest of the
# body that was judged, and where a record came from if not from the network.
ORIGIN = "Norobots-Origin"
BODY_DIGEST = "Norobots-Body-Digest"
SOURCE, STORE = "Norobots-Source", "store"
# The URL that was requested, if the answer has another one; and what followed on an answer that decided
# nothing: a redirect, or a retry of the download.
REQUESTED = "Norobots-Requested-URI"
FOLLOWED_BY = "Norobots-Followed-By"
REDIRECT, RETRY = "redirect", "retry"

# The field of the warcinfo record that has the `Settings`.
SETTINGS = "norobots-settings"

# Verdicts that `standard.Verdict` does not have, and the reason of the second one.
UNREACHABLE, OVERRIDDEN = "unreachable", "overridden"
OVERRIDE = "dont_obey_robotstxt"
VERDICTS = ("allowed", "forbidden", UNREACHABLE, OVERRIDDEN)

# Longer texts are cut in a line, so that no line has more than LINE_MAX bytes.
TEXT_MAX = 16 * 1024
LINE_MAX = 4 * 1024 * 1024

# More bytes than the headers of a record have, those of WARC and of HTTP; and how many the latter may have.
HEADERS_MAX, HTTP_HEADERS_MAX = 2 * 1024 * 1024, 1024 * 1024

# The last time that can be a date, in seconds since the epoch.
_LAST_TIME = 253_402_300_799.0

# The packages that Scrapy's parsers call; urllib.robotparser is a part of Python.
_LIBRARIES = {
    "scrapy.robotstxt.ProtegoRobotParser": "protego",
    "scrapy.robotstxt.RerpRobotParser": "robotexclusionrulesparser",
}


@dataclass(frozen=True)
class Settings:
    """The settings of a crawl that its decisions depend on, and what judged; the warcinfo record has them.

    `aiohttp` is whether the spelling that aiohttp sends is checked, `parsers` the `description` of each
    parser. `purposes` is None if statements about use are not read, `allowed` whether decisions to allow a
    request are stored. `robot` is ROBOTSTXT_USER_AGENT, or None if decisions are made by the header of each
    request. `format` changes if older evidence cannot be read any more.
    """

    policy: dict[str, str]
    parsers: list[str]
    python: str
    multivalue: bool = False
    aiohttp: bool = False
    dry_run: bool = False
    also_robots: list[str] = field(default_factory=list)
    purposes: list[str] | None = None
    allowed: bool = True
    robot: str | None = None
    format: int = 1

    @property
    def text(self) -> str:
        """The settings as JSON."""
        return json.dumps(asdict(self))

    @property
    def paths(self) -> list[str]:
        """The import paths of the parsers."""
        return [parser.partition(" ")[0] for parser in self.parsers]

    @classmethod
    def of(cls, text: str) -> Settings:
        """Return the settings that a text states; raise `ValueError` or `TypeError` if it does not."""
        settings = cls(**json.loads(text))
        StatusPolicy.of(settings.policy)
        for texts in (settings.parsers, settings.also_robots, settings.purposes or []):
            if type(texts) is not list or not all(isinstance(each, str) for each in texts):
                raise TypeError(f"{texts!r} is not a list of texts")
        if not settings.parsers:
            raise ValueError("there is no parser")
        if settings.format != cls.format:
            raise ValueError(f"they have format {settings.format}, and this version reads {cls.format}")
        return settings


def run_of(name: str) -> str:
    """Return the name of the run of a file."""
    return name.removesuffix(WARC_SUFFIX).removesuffix(DECISIONS_SUFFIX)


def python() -> str:
    """Return the version of Python."""
    return f"{platform.python_implementation()} {platform.python_version()}"


def path_of(parser: type[RobotParser]) -> str:
    """Return the import path of a parser."""
    return f"{parser.__module__}.{parser.__qualname__}"


def description(parser: type[RobotParser]) -> str:
    """Return the import path of a parser, and the distributions that its verdicts depend on."""
    path = path_of(parser)
    package = _LIBRARIES.get(path, path.partition(".")[0])
    if package == "scrapy_norobots":
        return f"{path} (scrapy-norobots {__version__})"
    names = sorted(set(packages_distributions().get(package, [])))
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    return f"{path} ({versions})" if versions else path


def line_of(facts: Mapping[str, Any]) -> bytes:
    """Return a line of a decisions file."""
    return json.dumps(facts).encode() + b"\n"


def record_line(record_id: object, member: bytes) -> bytes:
    """Return the line of a record that is one gzip member of the WARC file."""
    digest = hashlib.sha256(member).hexdigest()
    return line_of({"record": record_id, "length": len(member), "sha256": digest})


def seal_line(size: int, digest: str) -> bytes:
    """Return a line that has the SHA-256 of the first bytes of its file: of all before its gzip member."""
    return line_of({"bytes": size, "sha256": digest})


def closing_line(
    run: str, time: str, decisions: Mapping[str, int], answers: int, lost: int, seal: bytes
) -> bytes:
    """Return the last line of a run: how many records it has, and how many were lost; and a seal."""
    counts = {verdict: decisions[verdict] for verdict in VERDICTS if decisions.get(verdict)}
    facts = {"closes": run, "time": time, "decisions": counts, "answers": answers, "lost": lost}
    return line_of({**facts, **json.loads(seal)})


def digest_of(body: bytes) -> str:
    """Return the digest of a body that was judged: ``sha256:`` and 64 hexadecimal digits."""
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def cut(text: str) -> str:
    """Return a text as a line has it."""
    return text[:TEXT_MAX]


def uri_of(url: str) -> str:
    """Return a URL, or an origin, as the fields of a WARC record have it, even if no host has such a name."""
    return cut(percent_encode(url))


def date_of(time: float) -> str:
    """Return seconds since the epoch as a date in UTC, to the microsecond (WARC 1.1, WARC-Date).

    Times before 1970 or after 9999, which only a damaged store has, become the nearest valid date.
    """
    seconds, micros = divmod(round(min(max(time, 0.0), _LAST_TIME) * 1_000_000), 1_000_000)
    return f"{_second(seconds)}.{micros:06}Z"


def time_of(date: str) -> float:
    """Return the seconds since the epoch of a date; raise `ValueError` if it is none, else `TypeError`."""
    return datetime.fromisoformat(date[:-1]).replace(tzinfo=timezone.utc).timestamp()


@lru_cache(maxsize=100)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()[:-6]
