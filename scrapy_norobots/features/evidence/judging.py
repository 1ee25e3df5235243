"""`Judging`: makes the decisions of one run again, from its stored answers alone.

A decision names an answer by origin and time. The page must be of that origin, the digest must be that of the
file, and the file, read by the parsers of the crawl, must give the same verdict, reason, line, rule and
parser for all spellings in which the URL may be sent. An answer without a file is judged by the status policy
of the crawl. Overridden requests cannot be judged, nor can URLs of web pages that are shortened.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from scrapy_norobots.features.evidence import fields, judges
from scrapy_norobots.features.evidence.decisions import (
    Why,
    may_be_robots_txt,
    origin_of,
    why_allowed,
    why_dropped,
)
from scrapy_norobots.features.evidence.fields import shortened
from scrapy_norobots.features.evidence.index import Index, Outcome
from scrapy_norobots.features.evidence.runs import Settings
from scrapy_norobots.rules.access import Access, Judge
from scrapy_norobots.rules.freshness import Freshness
from scrapy_norobots.rules.parser import Rules, statements_on
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.rules.spellings import forbidden, knows_aiohttp, spellings_of
from scrapy_norobots.standard import Origin, Reason, Verdict
from scrapy_norobots.standard.urls import split

# How much memory parsed files may take, in bytes, and how many outcomes and claims are remembered.
_PARSED_MAX = 64 * 1024 * 1024
_OUTCOMES_MAX = 50_000
_CLAIMS_MAX = 30_000

# The reasons why a request needs no robots.txt. A decision by a file may also have the second one.
_STATEMENT = Reason.STATEMENT.name.lower()
_EXEMPTIONS = (Reason.NOT_WEB.name.lower(), Reason.ROBOTS_TXT.name.lower())

_NO_TIMES = Freshness(0, 0, 0, 0)  # freshness is not checked

_DIGEST = re.compile("sha256:[0-9a-f]{64}")
_SHORTENED = ("url", "requested", "sent_as")

# The types of the values in a line; a line has no other keys than these.
_TEXT, _MAYBE = (str,), (str, type(None))
_TYPES: Mapping[str, tuple[type, ...]] = {
    "seq": (int,), "prev": _TEXT, "time": _TEXT, "url": _TEXT, "verdict": _TEXT, "robot": _TEXT,
    "origin": _MAYBE, "reason": _TEXT, "line": (int, type(None)), "rule": _MAYBE, "robots_digest": _MAYBE,
    "robots_time": _MAYBE, "parser": _MAYBE,
}  # fmt: skip
_MORE: Mapping[str, tuple[type, ...]] = {
    "requested": _TEXT, "sent_as": _TEXT, "dry_run": (bool,), "shortened": (dict,),
    "decided_for": _TEXT, "usage": (list,),
}  # fmt: skip
_KEYS = _TYPES.keys()
# What only a decision by an answer has.
_OF_ANSWER = (
    "line", "rule", "robots_digest", "robots_time", "parser", "sent_as", "decided_for", "usage"
)  # fmt: skip


class Reading(NamedTuple):
    """What reads files as the parsers of a crawl do, and the descriptions of these parsers here."""

    read: Callable[[bytes], Rules]
    parsers: tuple[str, ...]


# Takes the descriptions of parsers in their order, and by keyword the other `Settings` of a crawl that its
# reading depends on. Raises `LookupError` if a parser is unknown or cannot be used.
Readings: TypeAlias = Callable[..., Reading]


class MismatchError(Exception):
    """A decision is not what the evidence supports."""


@dataclass(slots=True)
class _Claim:
    """What a decision states and rests on, whatever its URL is."""

    origin: Origin
    access: Access
    robot: str | bytes
    stated: Why
    _allowed: Why | None = None

    def why_allowed(self, url: str) -> Why:
        """Return why a URL is allowed, which is the same for nearly all URLs."""
        if may_be_robots_txt(url):
            return why_allowed(url, self.robot, self.access)
        if self._allowed is None:
            self._allowed = why_allowed(url, self.robot, self.access)
        return self._allowed


class Judging:
    """Judges the decisions of a run by its settings and the answers in an index.

    `not_judged` counts the decisions that no evidence can confirm.
    """

    def __init__(self, settings: Settings, index: Index, readings: Readings) -> None:
        self._settings = settings
        self._index = index
        self._outcome = lru_cache(_OUTCOMES_MAX)(index.outcome)
        self._parsed: dict[object, Access] = {}
        self._parsed_size = 0
        self._claims: dict[str, _Claim] = {}
        self._names = settings.parser_names
        self._versions = self._problem = ""
        self._read: Callable[[bytes], Rules] = _no_rules
        self.not_judged = 0
        try:
            reading = readings(
                settings.parsers,
                multivalue=settings.multivalue,
                also_robots=settings.also_robots,
                purposes=settings.purposes,
            )
        except LookupError as exc:
            self._problem = str(exc)
        else:
            self._read = reading.read
            self._versions = _differences(settings, reading.parsers)

    def can_read(self, body: bytes) -> bool:
        """Return whether the parsers read a file without an exception; raise `LookupError` without them."""
        if self._problem:
            raise LookupError(self._problem)
        try:
            self._read(body)
        except Exception:  # a user's parser may raise anything
            return False
        return True

    def check(self, facts: Mapping[str, Any], end: str = "") -> None:
        """Raise `MismatchError` if a decision is not what the evidence supports.

        What lines of the same `end` share is checked once; see `LineReader`. Raises `LookupError` if a
        decision cannot be judged here, and `ValueError` or `TypeError` if it is none.
        """
        claim = self._claims.get(end)
        if claim is None:
            _check_types(facts)
            _check_shortened(facts)
            self._check_settings(facts)
        _check_times(facts)
        if claim is None and not self._rests_on_answer(facts):
            return
        origin, target = split(facts["url"])
        if claim is None or origin != claim.origin:
            claim = self._claim(facts, origin)
            if end:
                if len(self._claims) >= _CLAIMS_MAX:
                    self._claims.clear()
                self._claims[end] = claim
        assert target is not None  # there is an origin
        self._check_by_answer(facts, claim, target)

    def _rests_on_answer(self, facts: Mapping[str, Any]) -> bool:
        """Return whether a decision must be judged by an answer; check it if it needs none."""
        reason = facts["reason"]
        if facts["verdict"] == fields.OVERRIDDEN:
            if reason != fields.OVERRIDE:
                raise MismatchError(f"recorded as {fields.OVERRIDDEN}, but not because of {fields.OVERRIDE}")
            _check_without_answer(facts, origin_of(facts["url"]))
            self.not_judged += 1
        elif reason == Reason.BAD_URL.name.lower():
            _check_bad_url(facts)
        elif reason in _EXEMPTIONS and facts["robots_time"] is None:
            _check_exempt(facts)
        elif "url" in facts.get("shortened", ()):
            self._claim(facts, split(facts["url"])[0])
            self.not_judged += 1
        else:
            return True
        return False

    def _check_settings(self, facts: Mapping[str, Any]) -> None:
        if facts["verdict"] == Verdict.ALLOWED.value and not self._settings.has_allowed:
            raise MismatchError("allowed, but the crawl did not store allowed requests")
        is_dropped = facts["verdict"] not in (Verdict.ALLOWED.value, fields.OVERRIDDEN)
        is_marked = "dry_run" in facts
        if is_marked and facts["dry_run"] is not True:
            raise ValueError(f"dry_run is {facts['dry_run']!r}")
        if is_marked and not self._settings.dry_run:
            raise MismatchError("marked as of a dry run, but the crawl was none")
        if is_marked != (is_dropped and self._settings.dry_run):
            raise MismatchError(
                "of a dry run, but not marked: the request was sent"
                if is_dropped
                else "marked as sent because of the dry run, but its verdict lets it pass"
            )

    def _claim(self, facts: Mapping[str, Any], origin: Origin | None) -> _Claim:
        """Check the answer that a decision names, and return what the decision claims."""
        if origin is None or shortened(str(origin)) != facts["origin"]:
            raise MismatchError(f"does not belong to the origin {facts['origin']}")
        when = facts["robots_time"]
        outcome = self._outcome(fields.uri_of(facts["origin"]), when)
        if outcome is None:
            raise MismatchError(
                f"{facts['verdict']}, but no answer for {facts['origin']} at {when} is stored"
            )
        if outcome.digest != facts["robots_digest"]:
            raise MismatchError(
                f"the digest of its robots.txt is {outcome.digest}, not {facts['robots_digest']}"
            )
        for name in (facts["parser"] or "").split(fields.AND):
            if name and name not in self._names and facts["reason"] != _STATEMENT:
                raise MismatchError(f"judged by {name}, a parser that the crawl did not have")
        robot = facts["robot"]
        if self._settings.robot is None:
            robot = robot.encode("utf-8", "surrogateescape")
        return _Claim(origin, self._access(outcome, origin), robot, _stated(facts))

    def _check_by_answer(self, facts: Mapping[str, Any], claim: _Claim, target: str) -> None:
        url, access, robot = facts["url"], claim.access, claim.robot
        decision = forbidden(access, url, claim.origin, target, robot, self._spellings(target))
        if decision is None:
            why, sent_as = claim.why_allowed(url), url
        else:
            why, sent_as = why_dropped(decision), decision.url
        if why.rule is not None:
            why = why._replace(rule=shortened(why.rule))
        if why != claim.stated:
            text = f"recorded as {claim.stated}; judged as {why}"
            if str(claim.stated) == str(why):
                text = f"recorded as {why} with {claim.stated.differs_from(why)}"
            raise MismatchError(f"{text}{self._versions}")
        if statements_on(access.rules, url, robot) != facts.get("usage"):
            raise MismatchError(
                f"the statements of robots.txt are not those that are recorded (usage){self._versions}"
            )
        if facts.get("sent_as") != (None if sent_as == url else shortened(sent_as)):
            raise MismatchError(
                f"the decision is about {sent_as!r}, not about {facts.get('sent_as', url)!r} (sent_as)"
                f"{self._versions}"
            )

    def _access(self, outcome: Outcome, origin: Origin) -> Access:
        """Return what may be fetched by an outcome; raise `MismatchError` if its body is not stored."""
        # Rules that are whole URLs apply to one origin, so accesses are not shared between origins.
        key = outcome, origin
        if key in self._parsed:
            return self._parsed[key]
        body, status = b"", outcome.status
        if outcome.digest is not None:
            if self._problem:
                raise LookupError(self._problem)
            found = self._index.body(outcome.digest)
            if found is None:
                raise MismatchError(f"the body with the digest {outcome.digest} is not stored")
            body, status = found, 200
        snapshot = Snapshot(origin, origin.robots_url, 0.0, status, body=body)
        # About how much memory an access takes, with the rules that it will keep.
        self._parsed_size += 2_000 + 10 * len(body)
        if self._parsed_size > _PARSED_MAX:
            self._parsed.clear()
            self._claims.clear()  # they have accesses too
            self._parsed_size = 2_000 + 10 * len(body)
        access = self._parsed[key] = Judge(self._settings.policy, _NO_TIMES, self._read).judge(snapshot)
        return access

    def _spellings(self, target: str) -> Iterator[str]:
        """Yield the spellings of a target that the crawl checked; raise `LookupError` if one is unknown."""
        yield target
        others = spellings_of(target)[1:]
        if others and self._settings.aiohttp and not knows_aiohttp():
            raise LookupError(
                "the crawl checked the spelling that aiohttp sends; aiohttp is not installed here"
            )
        yield from others if self._settings.aiohttp else others[:3]


def _no_rules(body: bytes) -> Rules:
    raise AssertionError("there is no parser to read it")


def _differences(settings: Settings, here: Sequence[str]) -> str:
    """Return in words what judged in the crawl and has another version here."""
    pairs = [*zip(settings.parsers, here, strict=True), (settings.python, judges.python())]
    different = [f"{there} in the crawl, {one} here" for there, one in pairs if there != one]
    return f" ({'; '.join(different)})" if different else ""


def _check_types(facts: Mapping[str, Any]) -> None:
    keys = facts.keys()
    if not keys >= _KEYS:
        raise ValueError(f"without {', '.join(sorted(_KEYS - keys))}")
    for name, types in _TYPES.items():
        if type(facts[name]) not in types:
            raise TypeError(f"{name} is {facts[name]!r}")
    for name in keys - _KEYS:
        if name not in _MORE or type(facts[name]) not in _MORE[name]:
            raise ValueError(f"{name} is {facts[name]!r}")


def _check_shortened(facts: Mapping[str, Any]) -> None:
    cut = facts.get("shortened")
    if cut is None:
        return
    for name, digest in cut.items():
        is_cut = name in _SHORTENED and len(facts.get(name, "")) == fields.TEXT_KEPT
        if not is_cut or not isinstance(digest, str) or _DIGEST.fullmatch(digest) is None:
            raise ValueError(f"shortened is {cut!r}")
    if not cut:
        raise ValueError("shortened is {}")


def _check_without_answer(facts: Mapping[str, Any], origin: str | None) -> None:
    """Check that a decision by no answer has nothing that only an answer gives."""
    if facts["origin"] != (origin if origin is None else shortened(origin)):
        raise MismatchError(f"does not belong to the origin {facts['origin']}")
    for name in _OF_ANSWER:
        if facts.get(name) is not None:
            raise MismatchError(f"recorded as {facts['reason']}, which has no {name}: {facts[name]!r}")


def _check_times(facts: Mapping[str, Any]) -> None:
    when, robots_time = facts["time"], facts["robots_time"]
    fields.check_date(when)
    if robots_time is not None and when < robots_time:
        raise MismatchError(f"made at {when}, before its robots.txt was downloaded at {robots_time}")


def _check_bad_url(facts: Mapping[str, Any]) -> None:
    if facts["verdict"] != fields.UNREACHABLE:
        raise MismatchError(
            f"recorded as {facts['verdict']}, but a URL without an origin is {fields.UNREACHABLE}"
        )
    try:
        origin = Origin.of(facts["url"])
    except ValueError:
        _check_without_answer(facts, None)
    else:
        raise MismatchError(f"dropped as a URL without an origin, but its origin is {origin}")


def _check_exempt(facts: Mapping[str, Any]) -> None:
    """Check that a URL is that of a robots.txt (U7), or has no origin (U9)."""
    origin, target = split(facts["url"])
    reason = Reason.NOT_WEB if target is None else Reason.ROBOTS_TXT if target == "/robots.txt" else None
    if reason is None or facts["reason"] != reason.name.lower():
        raise MismatchError(f"recorded as {facts['reason']}, but it needs a robots.txt")
    if facts["verdict"] != Verdict.ALLOWED.value:
        raise MismatchError(f"recorded as {facts['verdict']}; it is always allowed")
    _check_without_answer(facts, None if origin is None else str(origin))


def _stated(facts: Mapping[str, Any]) -> Why:
    verdict, reason, decided_for = facts["verdict"], facts["reason"], facts.get("decided_for")
    return Why(verdict, reason, facts["line"], facts["rule"], facts["parser"], decided_for)
