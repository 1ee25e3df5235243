"""Decisions as JSON objects: whether a page could be requested, why, and by which file.

`chain` makes lines of them. What the decisions of an origin share is encoded once.
"""

from __future__ import annotations

import json
from collections import Counter
from json.encoder import encode_basestring_ascii as _quoted
from typing import NamedTuple

from scrapy_norobots.features.evidence import fields
from scrapy_norobots.features.evidence.fields import date_of, digest_of, digest_of_text, shortened
from scrapy_norobots.rules.access import Access
from scrapy_norobots.rules.parser import StrictRobotParser, parser_names, statements_on, strict_reading
from scrapy_norobots.standard import Decision, Origin, Reason, Verdict

# How many ends of lines are remembered, and how long one may be, in characters.
_REMEMBERED = 10_000
_LONGEST_REMEMBERED = 2_000


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


class Why(NamedTuple):
    """A verdict and what it rests on, as a line states it."""

    verdict: str
    reason: str
    line: int | None = None
    rule: str | None = None
    parser: str | None = None
    decided_for: str | None = None

    def __str__(self) -> str:
        by = f", by {self.parser}" if self.parser != StrictRobotParser.__name__ and self.parser else ""
        by += f", for {self.decided_for!r}" if self.decided_for else ""
        place = self.reason if self.line is None else f"line {self.line}, {self.rule!r}"
        return f"{self.verdict} ({place}{by})"

    def differs_from(self, other: Why) -> str:
        """Return in words what differs from what is `other`, although both read the same."""
        pairs = zip(self._fields, self, other, strict=True)
        return ", ".join(f"{name} {one!r}, not {two!r}" for name, one, two in pairs if one != two)


_OVERRIDDEN = Why(fields.OVERRIDDEN, fields.OVERRIDE)


class DecisionLines:
    """Makes JSON objects of decisions, in the thread that writes them. `verdicts` counts these."""

    def __init__(self, *, dry_run: bool) -> None:
        self.verdicts: Counter[str] = Counter()
        self._dry_run = dry_run
        self._ends: dict[object, tuple[str, str]] = {}

    def line(self, made: Made) -> bytes:
        """Return the JSON object of a decision."""
        url, decision = _without_credentials(made.url), made.decision
        texts = {"url": url}
        if made.requested != made.url:
            texts["requested"] = _without_credentials(made.requested)
        if decision is not None and decision.url != made.url:
            texts["sent_as"] = _without_credentials(decision.url)
        more = [f', "{name}": {_quoted(shortened(text))}' for name, text in texts.items() if name != "url"]
        usage = None if made.access is None else statements_on(made.access.rules, made.url, made.robot)
        if usage is not None:
            more.append(f', "usage": {json.dumps(usage)}')
        if self._dry_run and decision is not None:
            more.append(', "dry_run": true')
        if cut := {name: digest_of_text(text) for name, text in texts.items() if len(text) > fields.TEXT_MAX}:
            more.append(f', "shortened": {json.dumps(cut)}')
        # The clock may have been set back since the download, or that of another process may be ahead.
        when = made.time if made.access is None else max(made.time, made.access.snapshot.time)
        begin = f'{{"time": "{date_of(when)}", "url": {_quoted(shortened(url))}, '
        verdict, end = self._end(made)
        self.verdicts[verdict] += 1
        return f"{begin}{end}{''.join(more)}}}".encode()

    def _end(self, made: Made) -> tuple[str, str]:
        """Return the verdict, and what follows the URL; an origin has one file of each time."""
        access, decision = made.access, made.decision
        if access is None:
            why = _without_file(made)
            return why.verdict, _facts(why, made, origin_of(made.url) if decision is None else None)
        reasons = None if decision is None else why_dropped(decision)
        if reasons is None and may_be_robots_txt(made.url):
            reasons = why_allowed(made.url, made.robot, access)
        key = access.snapshot.origin, access.snapshot.time, access.rules is not None, made.robot, reasons
        found = self._ends.get(key)
        if found is None:
            why = reasons or why_allowed(made.url, made.robot, access)
            found = why.verdict, _facts(why, made, str(access.snapshot.origin))
            if len(self._ends) >= _REMEMBERED:
                self._ends.clear()
            if len(found[1]) <= _LONGEST_REMEMBERED:
                self._ends[key] = found
        return found


def _facts(why: Why, made: Made, origin: str | None) -> str:
    access, robot = made.access, made.robot
    if isinstance(robot, bytes):
        robot = robot.decode("utf-8", "surrogateescape")
    facts = {
        "verdict": why.verdict,
        "robot": shortened(robot),
        "origin": origin if origin is None else shortened(origin),
        "reason": why.reason,
        "line": why.line,
        "rule": why.rule if why.rule is None else shortened(why.rule),
        "robots_digest": None if access is None or access.rules is None else digest_of(access.snapshot.body),
        "robots_time": None if access is None else date_of(access.snapshot.time),
        "parser": why.parser,
    }
    if why.decided_for is not None:
        facts["decided_for"] = shortened(why.decided_for)
    return json.dumps(facts)[1:-1]


def verdict_of(decision: Decision) -> str:
    """Return the verdict on a page: "allowed", "forbidden" by rules, or "unreachable" without any."""
    if decision.allowed or decision.reason in (Reason.RULE, Reason.PARSER, Reason.STATEMENT):
        return decision.verdict.value
    return fields.UNREACHABLE


def why_dropped(decision: Decision) -> Why:
    """Return why a request is dropped."""
    verdict = verdict_of(decision)
    parser = None
    if verdict != fields.UNREACHABLE:
        parser = decision.parser or StrictRobotParser.__name__
    line, rule = decision.rule or (None, None)
    return Why(verdict, decision.reason.name.lower(), line, rule, parser, decision.decided_for or None)


def why_allowed(url: str, robot: str | bytes, access: Access) -> Why:
    """Return why a request passes. Users' parsers are not asked: they belong to the crawl's thread."""
    robots = strict_reading(access.rules)
    if robots is None and access.rules is not None:
        reason = Reason.PARSER
    else:
        reason = (access if robots is None else robots).decide(url, robot).reason
    parser = fields.AND.join(parser_names(access.rules)) or None
    return Why(Verdict.ALLOWED.value, reason.name.lower(), parser=parser)


def _without_file(made: Made) -> Why:
    if made.decision is not None:
        return why_dropped(made.decision)
    if made.exemption is not None:
        return Why(Verdict.ALLOWED.value, made.exemption.name.lower())
    return _OVERRIDDEN


def may_be_robots_txt(url: str) -> bool:
    """Return whether the reason why a URL is allowed may be another one than that of other URLs (U7)."""
    return "robots.txt" in url or "%" in url or not url.isprintable()


def origin_of(url: str) -> str | None:
    """Return the origin of a URL as a decision without an answer states it."""
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
