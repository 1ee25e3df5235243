"""What evidence files consist of, for those who write them and those who read them.

A run has two files: a WARC file with the settings of the crawl and all answers, and a file of lines of
JSON. There are four kinds of lines. A *record line* names a record of the WARC file, a *decision line* has a
decision, a *seal* has the digest of all bytes of the file before it, and a *closing line*, which is a seal
too, ends the run. The audit makes each line again from what it has read: a line that differs in one byte was
changed. The *head* of a run is the SHA-256 of the file of lines.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from functools import lru_cache
from importlib.metadata import packages_distributions, version
from json.encoder import encode_basestring_ascii as _quoted
from typing import TYPE_CHECKING, Any, NamedTuple

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
# What followed on an answer that decided nothing: a redirect, or a retry of the download.
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

_CREDENTIALS = re.compile(r"^([^/?#]*://)[^/?#]*@")

# How long a judgement that is remembered may be, in characters.
_LONGEST_REMEMBERED = 2_000

# More bytes than the headers of a record have, those of WARC and of HTTP; and how many the latter may have.
HEADERS_MAX, HTTP_HEADERS_MAX = 2 * 1024 * 1024, 1024 * 1024

# The last time that can be a date, in seconds since the epoch.
_LAST_TIME = 253_402_300_799.0

PYTHON = f"{platform.python_implementation()} {platform.python_version()}"

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
        """Return the settings that a text has; raise `ValueError` or `TypeError` if it has none."""
        settings = cls(**json.loads(text))
        if settings.format != cls.format:
            raise ValueError(f"they have format {settings.format}, and this version reads {cls.format}")
        return settings


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
    return datetime.fromisoformat(f"{date[:-1]}+00:00").timestamp()


@lru_cache(maxsize=100)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()[:-6]


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


class _Why(NamedTuple):
    """A verdict and what it rests on."""

    verdict: str
    reason: str
    line: int | None = None
    rule: str | None = None
    parser: str | None = None
    decided_for: str | None = None


class DecisionLines:
    """Makes lines of decisions. What those of an origin share is encoded once."""

    def __init__(self, *, dry_run: bool, remembered: int = 10_000) -> None:
        """Remember so many judgements."""
        self._dry_run = dry_run
        self._remembered = remembered
        self._judgements: dict[object, tuple[str, str]] = {}

    def line(self, made: Made) -> tuple[str, bytes]:
        """Return the verdict of a decision, and its line."""
        url, access, decision = _without_credentials(made.url), made.access, made.decision
        texts = {"requested": _without_credentials(made.requested)}
        if decision is not None:
            texts["sent_as"] = _without_credentials(decision.url)
        more: dict[str, object] = {name: cut(text) for name, text in texts.items() if text != url}
        usage = None if access is None else statements_on(access.rules, made.url, made.robot)
        if usage is not None:
            more["usage"] = usage
        if self._dry_run and decision is not None:
            more["dry_run"] = True
        if max(len(url), len(made.robot), *map(len, texts.values())) > TEXT_MAX:
            more["cut"] = True
        # The clock may have been set back since the download, or that of another process may be ahead.
        when = made.time if access is None else max(made.time, access.snapshot.time)
        verdict, judgement = self._judgement(made)
        end = f", {json.dumps(more)[1:]}" if more else "}"
        return (
            verdict,
            f'{{"time": "{date_of(when)}", "url": {_quoted(cut(url))}, {judgement}{end}\n'.encode(),
        )

    def _judgement(self, made: Made) -> tuple[str, str]:
        """Return the verdict, and what follows the URL; an origin has one file of each time."""
        access, why, by = made.access, None, None
        if made.decision is not None:
            why = _why_dropped(made.decision)
        elif access is None or _may_be_robots_txt(made.url):
            why = _why_allowed(made)
        if access is not None:
            by = access.snapshot.origin, access.snapshot.time, access.rules is not None
        key = by, made.robot, why
        found = self._judgements.get(key)
        if found is None:
            why = why or _why_allowed(made)
            found = why.verdict, _facts(why, made)
            if len(self._judgements) >= self._remembered:
                self._judgements.clear()
            if len(found[1]) <= _LONGEST_REMEMBERED:
                self._judgements[key] = found
        return found


def _facts(why: _Why, made: Made) -> str:
    access = made.access
    facts = {
        "verdict": why.verdict,
        "robot": cut(_as_text(made.robot)),
        "origin": None if access is None else cut(str(access.snapshot.origin)),
        "reason": why.reason,
        "line": why.line,
        "rule": why.rule if why.rule is None else cut(why.rule),
        "robots_digest": None if access is None or access.rules is None else digest_of(access.snapshot.body),
        "robots_time": None if access is None else date_of(access.snapshot.time),
        "parser": why.parser,
    }
    more = {} if why.decided_for is None else {"decided_for": cut(why.decided_for)}
    return json.dumps({**facts, **more})[1:-1]


def _why_dropped(decision: Decision) -> _Why:
    is_read = decision.allowed or decision.reason in (Reason.RULE, Reason.PARSER, Reason.STATEMENT)
    verdict = decision.verdict.value if is_read else UNREACHABLE
    parser = decision.parser or StrictRobotParser.__name__ if is_read else None
    line, rule = decision.rule or (None, None)
    return _Why(verdict, decision.reason.name.lower(), line, rule, parser, decision.decided_for or None)


def _why_allowed(made: Made) -> _Why:
    """Return why a request passes. Users' parsers are not asked: they belong to the crawl's thread."""
    access, reason = made.access, made.exemption
    if access is None:
        return _Why(*((OVERRIDDEN, OVERRIDE) if reason is None else ("allowed", reason.name.lower())))
    robots = access if access.rules is None else strict_reading(access.rules)
    reason = Reason.PARSER if robots is None else robots.decide(made.url, made.robot).reason
    return _Why("allowed", reason.name.lower(), parser=", ".join(parser_names(access.rules)) or None)


def _may_be_robots_txt(url: str) -> bool:
    """Return whether the reason why a URL is allowed may be another one than that of other URLs (U7)."""
    return "robots.txt" in url or "%" in url or not url.isprintable()


def _as_text(robot: str | bytes) -> str:
    return robot.decode("utf-8", "surrogateescape") if isinstance(robot, bytes) else robot


def _without_credentials(url: str) -> str:
    """Return a URL without user name and password: evidence is made to be shown."""
    return _CREDENTIALS.sub(r"\1", url) if "@" in url else url
