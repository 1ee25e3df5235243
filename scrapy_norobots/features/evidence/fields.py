"""What evidence files consist of, for those who write them and those who read them.

A run has two files: a WARC file with the settings of the crawl and all answers, and a file of lines of
JSON. There are three kinds of lines. A *record line* has the digest of the next record of the WARC file, a
*decision line* has a decision, and the *closing line*, which ends the run, has the digest of all lines before
it. The audit makes each line again from what it has read: a line that differs in one byte was changed. The
*head* of a run is the SHA-256 of the file of lines.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

import scrapy

from scrapy_norobots._version import __version__
from scrapy_norobots.rules.access import Access
from scrapy_norobots.rules.parser import StrictRobotParser, parser_names, statements_on, strict_reading
from scrapy_norobots.standard import Decision, Reason
from scrapy_norobots.standard.urls import percent_encode

if TYPE_CHECKING:
    from scrapy.robotstxt import RobotParser

WARC_SUFFIX, DECISIONS_SUFFIX = ".warc.gz", ".decisions.jsonl.gz"

# Fields of WARC records beside the standard's: the origin whose robots.txt was requested, the digest of the
# body that was judged, and where a record came from if not from the network.
ORIGIN = "Norobots-Origin"
BODY_DIGEST = "Norobots-Body-Digest"
SOURCE, STORE = "Norobots-Source", "store"
# What followed on an answer that decided nothing.
FOLLOWED_BY, REDIRECT = "Norobots-Followed-By", "redirect"

# The field of the warcinfo record that has the `Settings`.
SETTINGS = "norobots-settings"

# Verdicts that `standard.Verdict` does not have, and the reason of the second one.
UNREACHABLE, OVERRIDDEN = "unreachable", "overridden"
OVERRIDE = "dont_obey_robotstxt"
VERDICTS = ("allowed", "forbidden", UNREACHABLE, OVERRIDDEN)

# Longer texts are cut in a line, so that no line has more than LINE_MAX bytes.
TEXT_MAX = 16 * 1024
LINE_MAX = 4 * 1024 * 1024

_CREDENTIALS = re.compile(r"^([^/?#]*://)[^/?#]*@")

# More bytes than the headers of a record have, those of WARC and of HTTP.
HEADERS_MAX = 2 * 1024 * 1024

# The last time that can be a date, in seconds since the epoch.
_LAST_TIME = 253_402_300_799.0

# What decisions depend on besides the settings.
VERSIONS = {
    "Python": f"{platform.python_implementation()} {platform.python_version()}",
    "Scrapy": scrapy.__version__,
    "scrapy-norobots": __version__,
    "Protego": version("Protego"),
}


@dataclass(frozen=True)
class Settings:
    """The settings of a crawl that its decisions depend on, and what judged; the warcinfo record has them.

    `aiohttp` is whether the spelling that aiohttp sends is checked, `parsers` the import path of each parser.
    `purposes` is None if statements about use are not read, `allowed` whether decisions to allow a request
    are stored. `robot` is ROBOTSTXT_USER_AGENT, or None if decisions are made by the header of each request.
    """

    policy: dict[str, str]
    parsers: list[str]
    versions: dict[str, str] = field(default_factory=VERSIONS.copy)
    multivalue: bool = False
    aiohttp: bool = False
    dry_run: bool = False
    also_robots: list[str] = field(default_factory=list)
    purposes: list[str] | None = None
    allowed: bool = True
    robot: str | None = None


def path_of(parser: type[RobotParser]) -> str:
    """Return the import path of a parser."""
    return f"{parser.__module__}.{parser.__qualname__}"


def line_of(facts: Mapping[str, Any]) -> bytes:
    """Return a line of a decisions file."""
    return json.dumps(facts).encode() + b"\n"


def record_line(member: bytes) -> bytes:
    """Return the line of a record that is one gzip member of the WARC file."""
    return line_of({"record": f"sha256:{sha256(member).hexdigest()}", "length": len(member)})


def closing_line(run: str, lost: int, digest: str) -> bytes:
    """Return the last line of a run: how many records were lost, and the digest of all lines before it."""
    return line_of({"closes": run, "lost": lost, "sha256": digest})


@lru_cache(maxsize=8)  # one file decides about many pages
def digest_of(body: bytes) -> str:
    """Return the digest of a body that was judged: ``sha256:`` and 64 hexadecimal digits."""
    return f"sha256:{sha256(body).hexdigest()}"


def cut(text: str) -> str:
    """Return a text as a line has it."""
    return text[:TEXT_MAX]


def uri_of(url: str) -> str:
    """Return a URL, or an origin, as the fields of a WARC record have it, even if no host has such a name."""
    return cut(percent_encode(url))


@lru_cache(maxsize=1_000)  # one answer decides about many pages
def date_of(time: float) -> str:
    """Return seconds since the epoch as a date in UTC, to the microsecond (WARC 1.1, WARC-Date).

    Times before 1970 or after 9999, which only a damaged store has, become the nearest valid date.
    """
    date = datetime.fromtimestamp(min(max(time, 0.0), _LAST_TIME), timezone.utc)
    return f"{date.isoformat(timespec='microseconds')[:-6]}Z"


def time_of(date: str) -> float:
    """Return the seconds since the epoch of a date; raise `ValueError` if it is none, else `TypeError`."""
    return datetime.fromisoformat(f"{date[:-1]}+00:00").timestamp()


class Made(NamedTuple):
    """A decision, as it is made.

    `url` is checked, and `requested` is sent; they differ if the request has `norobots_url`. `robot` is the
    name or whole User-Agent header by which it was made. If the request is dropped, there is a `decision`,
    and an `access` unless the URL has no origin. There is neither if the request needs no robots.txt, which
    `exemption` explains, or if robots.txt was overridden.
    """

    time: float
    url: str
    robot: str | bytes
    requested: str
    access: Access | None = None
    decision: Decision | None = None
    exemption: Reason | None = None

    @property
    def is_allowed(self) -> bool:
        """Whether the request passes, and not because robots.txt was overridden."""
        return self.decision is None and (self.access is not None or self.exemption is not None)


def decision_line(made: Made) -> bytes:
    """Return the line of a decision."""
    url, access, decision, file = _without_credentials(made.url), made.access, made.decision, None
    robot = made.robot if isinstance(made.robot, str) else made.robot.decode("utf-8", "surrogateescape")
    verdict, reason, parser = _judgement(made)
    line, rule = (None, None) if decision is None or decision.rule is None else decision.rule
    more: dict[str, Any] = {"requested": cut(_without_credentials(made.requested))}
    if access is not None:
        file = access.snapshot
        more["usage"] = statements_on(access.rules, made.url, made.robot)
    if decision is not None:
        more["sent_as"] = cut(_without_credentials(decision.url))
        more["decided_for"] = decision.decided_for or None
    facts = {
        # The clock may have been set back since the download, or that of another process may be ahead.
        "time": date_of(made.time if file is None else max(made.time, file.time)),
        "url": cut(url),
        "verdict": verdict,
        "robot": cut(robot),
        "origin": None if file is None else cut(str(file.origin)),
        "reason": reason,
        "line": line,
        "rule": None if rule is None else cut(rule),
        "robots_digest": None if access is None or access.rules is None else digest_of(access.snapshot.body),
        "robots_time": None if file is None else date_of(file.time),
        "parser": parser,
    }
    return line_of(
        {**facts, **{name: value for name, value in more.items() if value not in (None, facts["url"])}}
    )


def _judgement(made: Made) -> tuple[str, str, str | None]:
    """Return the verdict, the reason and the parsers.

    Users' parsers are not asked why a request passes: they belong to the crawl's thread.
    """
    access, decision, reason = made.access, made.decision, made.exemption
    if decision is not None:
        if decision.reason in (Reason.RULE, Reason.PARSER, Reason.STATEMENT):
            parser = decision.parser or StrictRobotParser.__name__
            return decision.verdict.value, decision.reason.name.lower(), parser
        return UNREACHABLE, decision.reason.name.lower(), None
    if access is None:
        return (OVERRIDDEN, OVERRIDE, None) if reason is None else ("allowed", reason.name.lower(), None)
    robots = access if access.rules is None else strict_reading(access.rules)
    reason = Reason.PARSER if robots is None else robots.decide(made.url, made.robot).reason
    return "allowed", reason.name.lower(), ", ".join(parser_names(access.rules)) or None


def _without_credentials(url: str) -> str:
    """Return a URL without user name and password: evidence is made to be shown."""
    return _CREDENTIALS.sub(r"\1", url) if "@" in url else url
