"""`RobotsTxt`: a robots.txt file, read by the 1994 standard and asked what a robot may fetch.

The one module that joins the others of this package. Nothing here does input or output; parsing never
raises on bytes, whatever they hold.
"""

from __future__ import annotations

import sys
from functools import cached_property

from scrapy_norobots.standard.decision import Decision, Reason, Verdict
from scrapy_norobots.standard.findings import Finding, find_all
from scrapy_norobots.standard.lines import is_html, to_lines, to_text
from scrapy_norobots.standard.names import names_robot, to_name
from scrapy_norobots.standard.records import (
    DEFAULT_NAME,
    RawRecord,
    Record,
    Rule,
    read_records,
    to_record,
)
from scrapy_norobots.standard.rules import Glance, RuleSet, find
from scrapy_norobots.standard.urls import is_robots_txt, split

# How many robots' names are remembered. A crawl has one, a few at most; one that changes its name with
# each request must not fill the memory.
_ROBOTS_REMEMBERED = 64

# Indices of records that stand at no one place in the file: the default record, which may be spread over
# several (R5), and that of a robot for which there is none.
_DEFAULT = -1
_NONE = -2


class RobotsTxt:
    r"""An immutable robots.txt file.

    >>> robots = RobotsTxt.parse(b"User-agent: *\nDisallow: /tmp/ # soon gone\n")
    >>> robots.allowed("http://foo.example/tmp/a", "FooBot/1.2")
    False
    >>> robots.decide("http://foo.example/tmp/a", "FooBot/1.2").rule
    Rule(line=2, value='/tmp/')
    """

    def __init__(self, body: bytes | str, raw: list[RawRecord]) -> None:
        """Hold what `parse` has read; not for use by others."""
        self._body = body
        self._raw = raw
        self._index_of: dict[str | bytes, int] = {}
        self._asked: dict[int, tuple[Record | None, RuleSet]] = {}
        self._glances: dict[str | bytes, Glance] = {}

    @classmethod
    def parse(cls, body: bytes | str) -> RobotsTxt:
        """Read a file from its bytes (or from text, taken as decoded).

        Never raises on bytes or text; raises `TypeError` for anything else. An empty file, or one
        without records, restricts nobody (F9).
        """
        text = to_text(body)
        return cls(body, [] if is_html(text) else read_records(to_lines(text)))

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """The records of the file, in file order; several may be part of the default one (R5)."""
        return tuple(map(to_record, self._raw))

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What in the file is not as the standard wants it, by line number.

        Nothing of it is worked out before it is asked for.
        """
        return tuple(find_all(self._body))

    @property
    def size(self) -> int:
        """About how much memory the file takes, in bytes, once one robot's rules are in use."""
        return (
            1000
            + len(self._body)
            + sum(_size_of(*line) for raw in self._raw for part in raw for line in part)
        )

    def allowed(self, url: str, robot: str | bytes) -> bool:
        """Whether `robot`, a name or a whole User-Agent header, may fetch `url` (U1 to U9).

        `url` is a URL, or a path that starts with ``/``. Raises `TypeError` for other types than `str` (and,
        for the robot, `bytes`), `ValueError` for a URL that is neither, or has an impossible port.
        """
        try:
            base, start, few, many = self._glances[robot]
            if (
                url.startswith(base)
                and not url.startswith(few, start)
                and "%" not in url
                and "/." not in url
                and not ("\t" in url or "\n" in url or "\r" in url)
                and not (many and find(many, url[start:]) >= 0)
            ):
                return True
        except (AttributeError, KeyError, TypeError):  # a first question, or of a wrong type
            return self._look(url, robot)
        return self._look(url, robot)

    def _look(self, url: str, robot: str | bytes) -> bool:
        """Answer what cannot be seen at a glance, and prepare a glance for more such URLs."""
        origin, target = split(url)
        rules = self._record_for(robot)[1]
        if target is None:
            return True
        known = self._glances.get(robot)
        if origin is not None and (known is None or not url.startswith(known.base)):
            glance = rules.glance(url, origin)
            if glance is not None:
                self._glances[robot] = glance
        return not rules or rules.match(origin, target) is None or is_robots_txt(target)

    def decide(self, url: str, robot: str | bytes, source: str | None = None) -> Decision:
        """Say whether and why `robot` may fetch `url`; takes and raises what `allowed` does.

        `source`, the URL that the file came from, is named in the decision.
        """
        origin, target = split(url)
        record, rules = self._record_for(robot)
        rule: Rule | None = None
        if target is None:
            reason = Reason.NOT_WEB
        elif is_robots_txt(target):
            reason = Reason.ROBOTS_TXT
        elif record is None:
            reason = Reason.NO_RECORD
        else:
            rule = rules.match(origin, target)
            reason = Reason.RULE if rule else Reason.NO_RULE_MATCHES
        return Decision(
            verdict=Verdict.FORBIDDEN if rule else Verdict.ALLOWED,
            url=url,
            robot=to_name(robot),
            reason=reason,
            rule=rule,
            record=record,
            source=source,
        )

    def _record_for(self, robot: str | bytes) -> tuple[Record | None, RuleSet]:
        """Return the record that counts for a robot, None if there is none (A4), and its rules."""
        try:
            index = self._index_of.get(robot)
        except TypeError:  # not hashable, so neither text nor bytes: to_name says so better
            index = None
        if index is None:
            name = to_name(robot)
            if len(self._index_of) >= _ROBOTS_REMEMBERED:
                self._index_of.clear()
                self._glances.clear()
            index = self._index_of[robot] = self._select(name)
        asked = self._asked.get(index)
        if asked is None:
            record = self._record(index)
            asked = self._asked[index] = record, RuleSet(record.rules if record else ())
        return asked

    def _select(self, name: str) -> int:
        """Return the index of the first record that names the robot (A3), else `_DEFAULT` or `_NONE`."""
        folded = name.casefold()
        has_default = False
        for index, (user_agents, _) in enumerate(self._raw):
            for _, value in user_agents:
                if value == DEFAULT_NAME:
                    has_default = True
                elif name != DEFAULT_NAME and names_robot(value, folded):
                    return index
        return _DEFAULT if has_default else _NONE

    def _record(self, index: int) -> Record | None:
        if index == _NONE:
            return None
        if index >= 0:
            return to_record(self._raw[index])
        # R5, R6: the default record is made of all that name "*".
        parts = [raw for raw in self._raw if any(value == DEFAULT_NAME for _, value in raw[0])]
        return to_record(
            (
                [line for user_agents, _ in parts for line in user_agents],
                [line for _, rules in parts for line in rules],
            )
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self._raw)} records>"


def _size_of(line: int, value: str) -> int:
    """About how much memory a line of a record takes: as read, and in the rules made of it."""
    size = 260 + sys.getsizeof(value)
    if not value.isascii():
        size += 3 * len(value.encode("utf-8", "surrogatepass"))  # as %XX
    if "://" in value:
        size += 600  # an origin with rules of its own
    return size
