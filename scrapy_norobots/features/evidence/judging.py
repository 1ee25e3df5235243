"""`Judging`: makes the decisions of one run again, from its stored answers alone.

A decision names an answer by its origin and time. The file of this answer, read by the parsers of the crawl,
or its status, judged by the policy of the crawl, must lead to the same line, byte by byte. So each key of a
line is checked except `time`, if it is not before that of the answer, `robot` and `requested`. Overridden
requests cannot be judged, nor can lines whose texts are cut.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from scrapy_norobots.features.evidence import fields
from scrapy_norobots.features.evidence.answers import Stored
from scrapy_norobots.features.evidence.fields import DecisionLines, Made
from scrapy_norobots.rules.access import Access, Judge, StatusPolicy, forbidden, knows_aiohttp, spellings_of
from scrapy_norobots.rules.parser import Rules, StrictRobotParser
from scrapy_norobots.rules.snapshot import Freshness, Snapshot
from scrapy_norobots.standard import Decision, Origin, Reason, Verdict
from scrapy_norobots.standard.urls import split

# How much memory parsed files may take, in bytes.
_PARSED_MAX = 64 * 1024 * 1024

# How many judgements are remembered: more than in a crawl, which needs its memory for other things.
_REMEMBERED = 30_000

_NO_TIMES = Freshness(0, 0, 0, 0)  # freshness is not checked

# The answers of a run are in a temporary file, however many there are.
_SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE answers (
    origin TEXT, date TEXT, status TEXT, digest TEXT, PRIMARY KEY (origin, date)
) WITHOUT ROWID;
CREATE TABLE bodies (digest TEXT PRIMARY KEY, body BLOB);
"""
_FIND = (
    "SELECT status, answers.digest, body FROM answers LEFT JOIN bodies USING (digest) "
    "WHERE origin = ? AND date = ?"
)

# Returns what reads files as the parsers of a crawl do, and the descriptions of these parsers here. Raises
# `LookupError` if a parser is unknown or cannot be used.
Readings: TypeAlias = Callable[[fields.Settings], tuple[Callable[[bytes], Rules], list[str]]]


class MismatchError(Exception):
    """A decision is not what the evidence supports."""


class UnjudgedError(MismatchError):
    """A decision cannot be judged here."""


class Judging:
    """Judges the decisions of a run by its settings and its answers.

    `not_judged` counts the decisions that no evidence can confirm.
    """

    def __init__(self, settings: fields.Settings, readings: Readings) -> None:
        """Raise `AttributeError`, `TypeError` or `ValueError` if these are no settings."""
        self.not_judged = 0
        self._settings = settings
        self._lines = DecisionLines(dry_run=settings.dry_run, remembered=_REMEMBERED)
        self._accesses: dict[tuple[Origin, str], Access] = {}
        self._size = 0
        self._problem = self._versions = ""
        read: Callable[[bytes], Any] = bytes  # not called if there is a problem
        try:
            read, here = readings(settings)
        except LookupError as exc:
            self._problem = str(exc)
        else:
            pairs = zip([*settings.parsers, settings.python], [*here, fields.PYTHON], strict=True)
            different = [f"{there} in the crawl, {one} here" for there, one in pairs if there != one]
            self._versions = f" ({'; '.join(different)})" if different else ""
        self._judge = Judge(StatusPolicy.of(settings.policy), _NO_TIMES, read)
        self._answers = sqlite3.connect("", isolation_level=None)
        self._answers.executescript(_SCHEMA)

    def close(self) -> None:
        """Forget the answers."""
        self._answers.close()

    def add(self, stored: Stored) -> None:
        """Add an answer. What a parser of the crawl has failed on comes again, as an error."""
        digest, status = stored.fields.get(fields.BODY_DIGEST), stored.status
        if stored.body is not None:
            self._answers.execute("INSERT OR IGNORE INTO bodies VALUES (?, ?)", (digest, stored.body))
        # After a file that was not read, such as one that was cut off, an error follows.
        is_unread = digest is None and status is not None and 200 <= status < 300
        if not is_unread and fields.FOLLOWED_BY not in stored.fields:
            origin, date = stored.fields[fields.ORIGIN], stored.fields["WARC-Date"]
            # SQLite has no numbers as large as a status may be.
            row = origin, date, None if status is None else str(status), digest
            self._answers.execute("REPLACE INTO answers VALUES (?, ?, ?, ?)", row)

    def check(self, line: bytes, facts: Mapping[str, Any]) -> None:
        """Raise `MismatchError` if a decision is not what the evidence supports.

        Raises `UnjudgedError` if it cannot be judged here, and `ValueError`, `TypeError` or `KeyError` if the
        line has no decision.
        """
        verdict = facts["verdict"]
        if verdict == Verdict.ALLOWED.value and not self._settings.allowed:
            raise MismatchError("allowed, but the crawl did not store allowed requests")
        if "cut" in facts or verdict == fields.OVERRIDDEN:
            self.not_judged += 1
        if "cut" in facts:
            return
        _, again = self._lines.line(self._made_again(facts))
        if again != line:
            raise MismatchError(_difference(facts, json.loads(again)) + self._versions)

    def _made_again(self, facts: Mapping[str, Any]) -> Made:
        url, when, robot = facts["url"], facts["robots_time"], facts["robot"]
        if self._settings.robot is None:  # parsers get the header, in bytes
            robot = robot.encode("utf-8", "surrogateescape")
        made = Made(fields.time_of(facts["time"]), url, robot, facts.get("requested", url))
        if facts["verdict"] == fields.OVERRIDDEN:
            return made
        try:
            origin, target = split(url)
        except ValueError:
            return made._replace(decision=Decision(Verdict.FORBIDDEN, url, "", Reason.BAD_URL))
        if origin is None or target is None:
            return made._replace(exemption=Reason.NOT_WEB)
        if when is None:
            if target != "/robots.txt":
                raise MismatchError(f"{facts['verdict']} ({facts['reason']}), but it needs a robots.txt")
            return made._replace(exemption=Reason.ROBOTS_TXT)
        access = self._accesses.get((origin, when)) or self._access(origin, when, facts["verdict"])
        decision = forbidden(access, url, origin, target, robot, self._spellings(target))
        return made._replace(access=access, decision=decision)

    def _access(self, origin: Origin, when: str, verdict: str) -> Access:
        """Return what may be fetched by the answer of an origin and a time."""
        found = self._answers.execute(_FIND, (fields.uri_of(str(origin)), when)).fetchone()
        if found is None:
            raise MismatchError(f"{verdict}, but no answer for {origin} at {when} is stored")
        status, digest, body = found
        if digest is not None:
            if self._problem:
                raise UnjudgedError(f"cannot be judged: {self._problem}")
            if body is None:
                raise MismatchError(f"{verdict}, but the file with the digest {digest} is not stored")
        number = 200 if digest is not None else None if status is None else int(status)
        snapshot = Snapshot(origin, origin.robots_url, fields.time_of(when), number, body=body or b"")
        # About how much memory an access takes, with the rules that it will keep.
        size = 2_000 + 10 * len(snapshot.body)
        self._size += size
        if self._size > _PARSED_MAX:
            self._accesses.clear()
            self._size = size
        access = self._accesses[origin, when] = self._judge.judge(snapshot)
        return access

    def _spellings(self, target: str) -> Iterator[str]:
        """Yield the spellings of a target that the crawl checked."""
        yield target
        others = spellings_of(target)[1:]
        if others and self._settings.aiohttp and not knows_aiohttp():
            raise UnjudgedError(
                "cannot be judged: the crawl checked the spelling that aiohttp sends, and it is not installed"
            )
        yield from others if self._settings.aiohttp else others[:3]


def _difference(stated: Mapping[str, Any], judged: Mapping[str, Any]) -> str:
    """Return in words in what a line differs from the one that the evidence leads to."""
    if (one := _in_words(stated)) != (other := _in_words(judged)):
        return f"recorded as {one}; judged as {other}"
    keys = [key for key in {**judged, **stated} if repr(stated.get(key)) != repr(judged.get(key))]
    texts = (f"{key} {stated.get(key)!r}, not {judged.get(key)!r}" for key in keys)
    return f"recorded as {one} with {', '.join(texts) or 'another order of its keys'}"


def _in_words(facts: Mapping[str, Any]) -> str:
    line, parser, other = facts.get("line"), facts.get("parser"), facts.get("decided_for")
    place = facts.get("reason") if line is None else f"line {line}, {facts.get('rule')!r}"
    by = f", by {parser}" if parser not in (None, StrictRobotParser.__name__) else ""
    return f"{facts['verdict']} ({place}{by}{f', for {other!r}' if other else ''})"
