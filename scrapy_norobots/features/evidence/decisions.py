"""Decisions as lines of JSON: whether a page could be requested, why, and by which file."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from scrapy_norobots.features.evidence import fields
from scrapy_norobots.features.evidence.fields import date_of, digest_of
from scrapy_norobots.rules.access import Access
from scrapy_norobots.rules.parser import StrictRobotParser, parser_names, statements_on, strict_reading
from scrapy_norobots.standard import Decision, Origin, Reason, Verdict

# About how much memory a decision takes until it is written, in bytes.
SIZE = 500

# How many files' times and digests are remembered.
_REMEMBERED = 10_000


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
        """Whether the request passes because it is allowed, and not because robots.txt was overridden."""
        return self.decision is None and (self.access is not None or self.exemption is not None)


class DecisionLines:
    """Makes lines of decisions, in the thread that writes them."""

    def __init__(self, *, dry_run: bool) -> None:
        self._dry_run = dry_run
        self._files: dict[tuple[Origin, float, bool], tuple[str, str | None]] = {}

    def line(self, made: Made) -> bytes:
        """Return the line of a decision."""
        robot = made.robot
        if isinstance(robot, bytes):
            robot = robot.decode("utf-8", "surrogateescape")
        facts: dict[str, Any] = {
            "time": date_of(made.time),
            "url": _without_credentials(made.url),
            "verdict": fields.OVERRIDDEN,
            "robot": robot,
            "origin": None,
            "reason": fields.OVERRIDE,
            "line": None,
            "rule": None,
            "robots_digest": None,
            "robots_time": None,
            "parser": None,
        }
        if made.requested != made.url:
            facts["requested"] = _without_credentials(made.requested)
        access = made.access
        if access is not None:
            usage = statements_on(access.rules, made.url, made.robot)
            if usage is not None:
                facts["usage"] = usage
            facts["origin"] = str(access.snapshot.origin)
            facts["robots_time"], facts["robots_digest"] = self._file(access)
        if made.decision is not None:
            facts |= _dropped(made.url, made.decision, access)
            if self._dry_run:
                facts["dry_run"] = True
        elif access is not None:
            facts |= _allowed(made.url, made.robot, access)
        else:
            facts["origin"] = _origin_of(made.url)
            if made.exemption is not None:
                facts |= {"verdict": Verdict.ALLOWED.value, "reason": made.exemption.name.lower()}
        return json.dumps(facts).encode() + b"\n"

    def _file(self, access: Access) -> tuple[str, str | None]:
        """Return the time and the digest of a file; an origin has one file of each time."""
        snapshot, has_rules = access.snapshot, access.rules is not None
        key = (snapshot.origin, snapshot.time, has_rules)
        found = self._files.get(key)
        if found is None:
            if len(self._files) >= _REMEMBERED:
                self._files.clear()
            digest = digest_of(snapshot.body) if has_rules else None
            found = self._files[key] = date_of(snapshot.time), digest
        return found


def verdict_of(decision: Decision) -> str:
    """Return the verdict on a page: "allowed", "forbidden" by rules, or "unreachable" without any."""
    if decision.allowed or decision.reason in (Reason.RULE, Reason.PARSER, Reason.STATEMENT):
        return decision.verdict.value
    return fields.UNREACHABLE


def _dropped(url: str, decision: Decision, access: Access | None) -> dict[str, Any]:
    facts: dict[str, Any] = {"verdict": verdict_of(decision), "reason": decision.reason.name.lower()}
    if decision.reason is Reason.STATEMENT and access is not None:
        facts["parser"] = fields.AND.join(parser_names(access.rules))  # these allow it
    elif facts["verdict"] != fields.UNREACHABLE:
        facts["parser"] = decision.parser or StrictRobotParser.__name__
    if decision.rule is not None:
        facts["line"], facts["rule"] = decision.rule
    if decision.decided_for:
        facts["decided_for"] = decision.decided_for
    if decision.url != url:
        facts["sent_as"] = _without_credentials(decision.url)
    return facts


def _allowed(url: str, robot: str | bytes, access: Access) -> dict[str, Any]:
    """Return why a request passes. Users' parsers are not asked: they belong to the crawl's thread."""
    robots = strict_reading(access.rules)
    if robots is None and access.rules is not None:
        reason = Reason.PARSER
    else:
        reason = (access if robots is None else robots).decide(url, robot).reason
    return {
        "verdict": Verdict.ALLOWED.value,
        "reason": reason.name.lower(),
        "parser": fields.AND.join(parser_names(access.rules)) or None,
    }


def _origin_of(url: str) -> str | None:
    try:
        origin = Origin.of(url)
    except ValueError:
        return None
    return None if origin is None else str(origin)


def _without_credentials(url: str) -> str:
    """Return a URL without user name and password: evidence is made to be shown."""
    if "@" not in url:
        return url
    scheme, slashes, rest = url.partition("://")
    end = min((place for mark in "/?#" if (place := rest.find(mark)) >= 0), default=len(rest))
    return f"{scheme}{slashes}{rest[:end].rpartition('@')[2]}{rest[end:]}"
