"""What evidence files consist of, for those who write them and those who read them.

A run has two files: a WARC file with all answers, and a file of lines of JSON. The *opening line* has the
settings of the crawl, a *record line* the digest of the next record of the WARC file, a *decision line* a
decision, and the *closing line*, which ends the run, the digest of all lines before it. The audit makes all
lines but the first again: one that differs in a byte was changed. The *head* of a run is the SHA-256 of the
file of lines.
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
from importlib.metadata import distributions, version
from typing import Any, NamedTuple

import scrapy
from scrapy.http import Response

from scrapy_norobots._version import __version__
from scrapy_norobots.rules.access import Access
from scrapy_norobots.rules.parser import StrictRobotParser, parser_names, statements_on
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Decision, Origin, Reason
from scrapy_norobots.standard.urls import percent_encode

WARC_SUFFIX, DECISIONS_SUFFIX = ".warc.gz", ".decisions.jsonl.gz"

# Fields of WARC records beside the standard's: the origin whose robots.txt was requested, the digest of the
# body that was judged, and whether it is a copy from a store or a redirect that was followed.
ORIGIN = "Norobots-Origin"
BODY_DIGEST = "Norobots-Body-Digest"
NOTE, STORE, REDIRECT = "Norobots-Note", "store", "redirect"

# Verdicts that `standard.Verdict` does not have.
UNREACHABLE, OVERRIDDEN = "unreachable", "overridden"
VERDICTS = ("allowed", "forbidden", UNREACHABLE, OVERRIDDEN)

# Longer texts are cut in a line, so that no line has more than LINE_MAX bytes.
TEXT_MAX = 16 * 1024
LINE_MAX = 4 * 1024 * 1024
# More bytes than the headers of a record have, those of WARC and of HTTP.
HEADERS_MAX = 2 * 1024 * 1024

_CREDENTIALS = re.compile(r"^([^/?#]*://)[^/?#]*@")

# What decisions depend on besides the settings.
VERSIONS = {
    "Python": f"{platform.python_implementation()} {platform.python_version()}",
    "Scrapy": scrapy.__version__,
    "scrapy-norobots": __version__,
    "Protego": version("Protego"),
    # A dependency of aiohttp; the spelling in which it sends a URL is checked where it is installed.
    "yarl": next((found.version for found in distributions(name="yarl")), None),
}


@dataclass(frozen=True)
class Settings:
    """The settings of a crawl that its decisions depend on, and what judged; the opening line has them.

    `parsers` are import paths. `purposes` is None if statements about use are not read. `robot` is None if
    decisions are made by the header of each request.
    """

    policy: dict[str, str]
    parsers: list[str]
    versions: dict[str, str | None] = field(default_factory=VERSIONS.copy)
    multivalue: bool = False
    dry_run: bool = False
    also_robots: list[str] = field(default_factory=list)
    purposes: list[str] | None = None
    allowed: bool = True
    robot: str | None = None


def line_of(facts: Mapping[str, Any]) -> bytes:
    """Return a line of the file of lines."""
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


def uri_of(url: str) -> str:
    """Return a URL, or an origin, as the fields of a WARC record have it, even if no host has such a name."""
    return percent_encode(url)[:TEXT_MAX]


@lru_cache(maxsize=1_000)  # one answer decides about many pages
def date_of(time: float) -> str:
    """Return seconds since the epoch as a date in UTC, to the microsecond (WARC 1.1, WARC-Date)."""
    # Times before 1970 or after 9999, which only a damaged store has, become the nearest valid date.
    date = datetime.fromtimestamp(min(max(time, 0.0), 253_402_300_799.0), timezone.utc)
    return f"{date.isoformat(timespec='microseconds')[:-6]}Z"


def time_of(date: str) -> float:
    """Return the seconds since the epoch of a date; raise `ValueError` if it is none, else `TypeError`."""
    return datetime.fromisoformat(f"{date[:-1]}+00:00").timestamp()


def judged_of(snapshot: Snapshot) -> bytes | None:
    """Return the body of a snapshot if pages are judged by it."""
    return snapshot.body if 200 <= (snapshot.status or 0) < 300 else None


class Answer(NamedTuple):
    """An answer to a request for a robots.txt, or, with an `error`, what is known of a download without one.

    `judged` is the decoded body, if pages are judged by it; `renewed` is the copy that a 304 renews.
    `note` says that it is a copy from a store, or a redirect that was followed, which decides nothing.
    """

    origin: Origin
    response: Response
    time: float
    judged: bytes | None = None
    renewed: Snapshot | None = None
    note: str | None = None
    error: str | None = None

    @classmethod
    def of(cls, snapshot: Snapshot, note: str | None = None) -> Answer:
        """Return what is known of a snapshot without its answer: a copy from a store, or an error."""
        headers = {
            name.encode("latin-1", "replace"): value.encode("latin-1", "replace")
            for name, value in snapshot.headers.items()
        }
        return cls(
            snapshot.origin,
            Response(snapshot.url, snapshot.status or 0, headers=headers, body=snapshot.body),
            snapshot.time,
            judged_of(snapshot),
            note=note,
            error=snapshot.error if snapshot.status is None else None,
        )


class Made(NamedTuple):
    """A decision, as it is made: `url` is checked, by the name or whole User-Agent header `robot`.

    A request that is dropped has a `decision`. There is no `access` if the URL has no origin, if the request
    needs no robots.txt, which `exemption` explains, or if robots.txt was overridden.
    """

    time: float
    url: str
    robot: str | bytes
    requested: str
    access: Access | None = None
    decision: Decision | None = None
    exemption: Reason | None = None


def decision_line(made: Made) -> bytes:
    """Return the line of a decision."""
    access, decision, url = made.access, made.decision, _shown(made.url)
    snapshot = None if access is None else access.snapshot
    robot = made.robot if isinstance(made.robot, str) else made.robot.decode("utf-8", "surrogateescape")
    more = {
        "requested": _shown(made.requested),
        "sent_as": None if decision is None else _shown(decision.url),
        "decided_for": None if decision is None else decision.decided_for,
        "usage": None if access is None else statements_on(access.rules, made.url, made.robot),
    }
    verdict, reason, parser = _judgement(made)
    line, rule = (None, None) if decision is None or decision.rule is None else decision.rule
    facts = {
        # The clock may have been set back since the download, or that of another process may be ahead.
        "time": date_of(max(made.time, 0.0 if snapshot is None else snapshot.time)),
        "url": url,
        **{name: value for name, value in more.items() if value not in (None, "", url)},
        "verdict": verdict,
        "robot": robot[:TEXT_MAX],
        "origin": None if snapshot is None else str(snapshot.origin)[:TEXT_MAX],
        "reason": reason,
        "line": line,
        "rule": None if rule is None else rule[:TEXT_MAX],
        "robots_digest": None if access is None or access.rules is None else digest_of(access.snapshot.body),
        "robots_time": None if snapshot is None else date_of(snapshot.time),
        "parser": parser,
    }
    return line_of(facts)


def _judgement(made: Made) -> tuple[str, str, str | None]:
    """Return the verdict, the reason and the parser of a decision."""
    access, decision, exemption = made.access, made.decision, made.exemption
    if decision is not None:
        reason = decision.reason.name.lower()
        if decision.reason in (Reason.RULE, Reason.PARSER, Reason.STATEMENT):
            return decision.verdict.value, reason, decision.parser or StrictRobotParser.__name__
        return UNREACHABLE, reason, None
    if access is None:
        if exemption is None:
            return OVERRIDDEN, "dont_obey_robotstxt", None
        return "allowed", exemption.name.lower(), None
    if access.rules is None:
        return "allowed", "error" if access.snapshot.status is None else "status", None
    return "allowed", "no_rule_matches", ", ".join(parser_names(access.rules))


def _shown(url: str) -> str:
    """Return a URL without user name and password: evidence is made to be shown."""
    return (_CREDENTIALS.sub(r"\1", url) if "@" in url else url)[:TEXT_MAX]
