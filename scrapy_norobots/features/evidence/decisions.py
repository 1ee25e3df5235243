"""Decisions as lines of JSON: whether a page could be requested, why, and by which file.

The crawl and the audit both make lines with `DecisionLines`: a decision that is made again from the stored
answers must give the same line, byte by byte. What the decisions of an origin share is encoded once.
"""

from __future__ import annotations

import json
from json.encoder import encode_basestring_ascii as _quoted
from typing import NamedTuple

from scrapy_norobots.features.evidence import fields
from scrapy_norobots.features.evidence.fields import cut, date_of, digest_of
from scrapy_norobots.rules.access import Access
from scrapy_norobots.rules.parser import StrictRobotParser, parser_names, statements_on, strict_reading
from scrapy_norobots.standard import Decision, Reason, Verdict

# How long a judgement that is remembered may be, in characters.
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


class _Why(NamedTuple):
    """A verdict and what it rests on."""

    verdict: str
    reason: str
    line: int | None = None
    rule: str | None = None
    parser: str | None = None
    decided_for: str | None = None


class DecisionLines:
    """Makes lines of decisions; so many judgements are `remembered`."""

    def __init__(self, *, dry_run: bool, remembered: int = 10_000) -> None:
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
        if max(map(len, (url, _as_text(made.robot), *texts.values()))) > fields.TEXT_MAX:
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
        access, decision = made.access, made.decision
        why = None if decision is None else _why_dropped(decision)
        if access is None:
            if made.exemption is not None:
                why = _Why(Verdict.ALLOWED.value, made.exemption.name.lower())
            why = why or _Why(fields.OVERRIDDEN, fields.OVERRIDE)
            return why.verdict, _facts(why, made)
        if why is None and _may_be_robots_txt(made.url):
            why = _why_allowed(made.url, made.robot, access)
        key = access.snapshot.origin, access.snapshot.time, access.rules is not None, made.robot, why
        found = self._judgements.get(key)
        if found is None:
            why = why or _why_allowed(made.url, made.robot, access)
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
    verdict = decision.verdict.value if is_read else fields.UNREACHABLE
    parser = decision.parser or StrictRobotParser.__name__ if is_read else None
    line, rule = decision.rule or (None, None)
    return _Why(verdict, decision.reason.name.lower(), line, rule, parser, decision.decided_for or None)


def _why_allowed(url: str, robot: str | bytes, access: Access) -> _Why:
    """Return why a request passes. Users' parsers are not asked: they belong to the crawl's thread."""
    robots = strict_reading(access.rules)
    reason = Reason.PARSER
    if robots is not None or access.rules is None:
        reason = (access if robots is None else robots).decide(url, robot).reason
    return _Why(
        Verdict.ALLOWED.value, reason.name.lower(), parser=", ".join(parser_names(access.rules)) or None
    )


def _may_be_robots_txt(url: str) -> bool:
    """Return whether the reason why a URL is allowed may be another one than that of other URLs (U7)."""
    return "robots.txt" in url or "%" in url or not url.isprintable()


def _as_text(robot: str | bytes) -> str:
    return robot.decode("utf-8", "surrogateescape") if isinstance(robot, bytes) else robot


def _without_credentials(url: str) -> str:
    """Return a URL without user name and password: evidence is made to be shown."""
    if "@" not in url:
        return url
    scheme, slashes, rest = url.partition("://")
    end = min((place for mark in "/?#" if (place := rest.find(mark)) >= 0), default=len(rest))
    return f"{scheme}{slashes}{rest[:end].rpartition('@')[2]}{rest[end:]}"
