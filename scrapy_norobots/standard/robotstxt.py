"""`RobotsTxt`: a robots.txt file that answers what a robot may fetch, by the 1994 standard, RFC 9309 or both.

This module joins the others of the package. It does no input or output, and accepts any bytes without raising
an exception. A `RobotsTxt` keeps its body, and reads it when it is asked: once for the rules of a robot,
which it then keeps, and again for records, findings and the reasons of decisions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from scrapy_norobots.standard.decision import RFC9309_PARSER, Decision, Reason, Verdict
from scrapy_norobots.standard.findings import Finding, find_all
from scrapy_norobots.standard.groups import Group, RawGroup, groups_of
from scrapy_norobots.standard.lines import Sections, is_html, sections_of, to_text
from scrapy_norobots.standard.names import Robot
from scrapy_norobots.standard.patterns import Index, PatternSet, with_signs
from scrapy_norobots.standard.records import RawRecord, Record, find_record, records_in
from scrapy_norobots.standard.rules import RuleSet
from scrapy_norobots.standard.urls import Origin, is_robots_txt, split

# A body of at most this many bytes is read within about 20 ms, whatever its content. Larger ones keep the
# records of robots in memory, so that a decision is as fast.
SMALL_BODY = 32 * 1024

# The rules of at most this many robots are cached. A crawl has one robot, or a few; a robot that changes its
# name with each request must not fill the memory.
_ROBOTS_REMEMBERED = 64

_Rules = tuple[RuleSet | PatternSet, ...]

# Not equal to any robot.
_NOBODY: tuple[object, _Rules] = object(), ()


class _File(NamedTuple):
    """A file that is being read, once for all readings: its sections by each standard."""

    text: str
    strict: Sections
    later: Sections
    multivalue: bool

    @classmethod
    def of(cls, body: bytes | str, multivalue: bool) -> _File:
        text = to_text(body)
        return cls(text, *sections_of(text), multivalue)

    def raw_records(self) -> Iterator[RawRecord]:
        return iter(()) if is_html(self.text) else records_in(self.strict, multivalue=self.multivalue)


class _Reading(NamedTuple):
    """What differs between the standards: how the record of a robot is found, and all records."""

    parser: str
    find: Callable[[_File, Robot], RawRecord | RawGroup | None]
    all: Callable[[_File], Iterator[RawRecord | RawGroup]]


_STRICT = _Reading(
    "",
    lambda file, robot: find_record(file.raw_records(), robot.name),
    _File.raw_records,
)

_RFC9309 = _Reading(
    RFC9309_PARSER,
    lambda file, robot: RawGroup(file.later, own) if (own := groups_of(file.later, robot.token)) else None,
    lambda file: (RawGroup(file.later, [group]) for group in groups_of(file.later, None)),
)

#: The values of `reading`; of several readings, all must allow a URL.
READINGS: Mapping[str, tuple[_Reading, ...]] = MappingProxyType(
    {"1994": (_STRICT,), "rfc9309": (_RFC9309,), "both": (_STRICT, _RFC9309)}
)


def _prepared(found: Iterable[Record | RawRecord | RawGroup | None]) -> _Rules:
    """Return the rules of a robot's records; RFC 9309 needs only those for what the other reading allows."""
    rules: list[RuleSet | PatternSet] = []
    strict: Record | RawRecord | None = None
    known: list[str] = []
    plain: RuleSet | None = None
    for one in found:
        if isinstance(one, (Group, RawGroup)):
            values = rest = one.values_after(strict, known)
            if plain and known == values[: len(known)]:
                rest = values[len(known) :] + with_signs(known)
            if rest:
                allows = one.allows
                index = Index(allows, values) if any(allows) else None
                if plain:
                    rules.clear()  # one set answers for both readings
                rules.append(PatternSet(rest, index=index, strict=plain))
        elif one is not None:
            strict, known = one, one.values
            prefixes = RuleSet(known)
            plain = prefixes if prefixes.has_one_form else None
            rules.append(prefixes)
    return tuple(rules) or (RuleSet(()),)  # never empty, so that the cache knows it


class RobotsTxt:
    r"""A robots.txt file, read by the 1994 standard, by RFC 9309, or by both. It does not change.

    Make one with `parse`. The robot that a method asks about is a name (``"FooBot"``) or a whole User-Agent
    header (``"FooBot/1.2 (+http://foo.example/)"``), as `str` or `bytes`. A file does not know the origin
    that it came from, so ask it only about URLs of this origin (U8).

    >>> robots = RobotsTxt.parse(b"User-agent: *\nDisallow: /tmp/ # soon gone\n")
    >>> robots.allowed("http://foo.example/tmp/a", "FooBot/1.2")
    False
    >>> str(robots.decide("http://foo.example/tmp/a", "FooBot/1.2").rule)
    'Disallow: /tmp/'
    """

    def __init__(self, body: bytes | str, *, reading: str = "1994", multivalue: bool = False) -> None:
        """Do the same as `parse`. Raises `TypeError` if `body` is neither `bytes` nor `str`."""
        if not isinstance(body, (bytes, str)):
            raise TypeError(f"a robots.txt body must be bytes or str, not {type(body).__name__}")
        if reading not in READINGS:
            raise ValueError(f"unknown reading {reading!r}; choose from {', '.join(READINGS)}")
        self.reading = reading
        self.multivalue = multivalue
        self._readings = READINGS[reading]
        self._body = body
        # For each robot, by reading: the rules for `allowed`, and the record for the reasons of `decide`. The
        # rules are kept by the places of their records too, so that robots share them.
        self._rules: dict[Robot | tuple[object, ...], _Rules] = {}
        self._records: dict[Robot, tuple[Record | None, ...]] = {}
        # The last robot that was asked about, as given, and its rules: a crawl has one robot, or a few.
        self._last = _NOBODY
        # The site of the last question, and its origin: a crawl asks a file about one site, or a few.
        self._site: tuple[str, Origin | None] = "", None

    @classmethod
    def parse(cls, body: bytes | str, *, reading: str = "1994", multivalue: bool = False) -> RobotsTxt:
        """Return the file that has this body: bytes as downloaded, or text that is decoded already.

        `reading` is ``"1994"``, ``"rfc9309"``, or ``"both"``, which allows only what both standards allow. If
        `multivalue` is true, a line may have several values by the standard of 1994, separated by spaces or
        tabs (D1). Any bytes and any text are a robots.txt (F1). Raises `TypeError` for other types, and
        `ValueError` for an unknown reading. A file that is empty or has no records restricts no robot (F9).
        `parse` does not read the file yet: the first question reads it.
        """
        return cls(body, reading=reading, multivalue=multivalue)

    @property
    def body(self) -> bytes | str:
        """The body of the file, as given."""
        return self._body

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """All records of the file, a tuple of `Record`, in file order (R1); by the first reading.

        Several of them may be part of the default record (R5), or be for the same robot (RFC 9309, 2.2.1).
        """
        return tuple(raw.record() for raw in self._readings[0].all(self._read()))

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What in the file does not follow the 1994 standard, a tuple of `Finding`, ordered by line."""
        return tuple(find_all(self._body, multivalue=self.multivalue))

    @property
    def size(self) -> int:
        """Approximate memory use in bytes, including the cached rules and records of robots."""
        kept = (*self._rules.values(), *self._records.values())
        sizes = {id(one): one.size for each in kept for one in each if one is not None}
        return 1000 + sys.getsizeof(self._body) + sum(sizes.values())

    @property
    def parsers(self) -> tuple[str, ...]:
        """The name of the parser of each reading in decisions; empty for that of 1994."""
        return tuple(reading.parser for reading in self._readings)

    def is_ready(self, robot: str | bytes) -> bool:
        """Return whether questions about `robot` are fast: the file is small, or was already read for it."""
        return len(self._body) <= SMALL_BODY or Robot.of(robot) in self._records

    def prepare(self, origin: Origin, robot: str | bytes) -> None:
        """Read the rules for `robot`, and its record if the file is large, so that questions are fast."""
        if len(self._body) > SMALL_BODY:
            self._records_of(robot, origin)
        for rules in self._rules_of(robot):
            rules.match(origin, "/")

    def allowed(self, url: str, robot: str | bytes) -> bool:
        """Return whether `robot` may fetch `url` (A1 to A4, U1 to U9).

        `url` is an absolute URL, or a path that starts with ``/``, with or without a query. A path is checked
        as one of the file's own origin. A URL that is not http or https (``mailto:``) or has no host
        (``http:///a``) is always allowed (U9). ``/robots.txt`` is always allowed, too (U7). Raises
        `TypeError` if `url` is not a `str`, or if `robot` is neither `str` nor `bytes`. Raises `ValueError`
        if `url` is neither a URL nor a path, or if its port is not a number from 0 to 65535.
        """
        last, rules = self._last
        if robot != last:
            rules = self._rules_of(robot)
        site, origin = self._site
        rest = url.removeprefix(site) if isinstance(url, str) else url
        if rest == url or "#" in rest or "\t" in rest or "\n" in rest or "\r" in rest or url[-1] <= " ":
            last_origin = origin
            origin, target = split(url)
            if target is None:
                return True
            if origin is not None and origin != last_origin:
                self._site = f"{origin}/", origin
        else:  # most questions are about one site, and this is what `split` would return
            target = f"/{rest}"
        for each in rules:  # noqa: SIM110  # a generator would take twice the time
            if each.match(origin, target) is not None:
                return False
        return True

    def forbids(self, origin: Origin, target: str, robot: str | bytes) -> bool:
        """Return whether `robot` must not fetch `target`, a path with its query, at the file's origin."""
        for rules in self._rules_of(robot):  # noqa: SIM110  # a generator would take twice the time
            if rules.match(origin, target) is not None:
                return True
        return False

    def decide(self, url: str, robot: str | bytes, source: str | None = None) -> Decision:
        """Return whether `robot` may fetch `url`, with the line and the record that decide it.

        `url`, `robot` and the errors are those of `allowed`, which is faster. `source` is the URL that the
        file was downloaded from; the text of the decision names it. With several readings, the first one that
        forbids the URL decides. If none forbids it, the first reading decides.
        """
        decisions = self.decisions(url, robot, source)
        return next((decision for decision in decisions if not decision), decisions[0])

    def decisions(self, url: str, robot: str | bytes, source: str | None = None) -> list[Decision]:
        """Return the same by each reading."""
        origin, target = split(url)
        records, rules = self._records_of(robot, origin), self._rules_of(robot)
        strict = next((each if isinstance(each, RuleSet) else each.strict for each in rules), None)
        made = []
        for reading, record in zip(self._readings, records, strict=True):
            rule = None
            if target is None:
                reason = Reason.NOT_WEB
            elif is_robots_txt(target):
                reason = Reason.ROBOTS_TXT
            elif record is None:
                reason = Reason.NO_RECORD
            else:
                rule = record.deciding(strict, origin, target)
                reason = Reason.RULE if rule else Reason.NO_RULE_MATCHES
            made.append(
                Decision(
                    verdict=Verdict.ALLOWED if rule is None or rule.allows else Verdict.FORBIDDEN,
                    url=url,
                    robot=Robot.of(robot).name,
                    reason=reason,
                    rule=rule,
                    record=record,
                    source=source,
                    parser=reading.parser,
                )
            )
        return made

    def _rules_of(self, robot: str | bytes) -> _Rules:
        last, rules = self._last
        if robot != last:
            who = Robot.of(robot)
            rules = self._rules.get(who) or self._read_rules(who)
            self._last = robot, rules
        return rules

    def _read_rules(self, robot: Robot) -> _Rules:
        found = self._records.get(robot) or self._find(robot)
        place = tuple(one and one.place for one in found)
        if len(self._rules) >= 2 * _ROBOTS_REMEMBERED:  # there are two keys for each
            self._rules.clear()
        rules = self._rules.get(place) or _prepared(found)  # most names have those of the default record
        self._rules[place] = self._rules[robot] = rules
        return rules

    def _records_of(self, robot: str | bytes, origin: Origin | None) -> tuple[Record | None, ...]:
        """Return the records that apply to a robot, cached: a crawl that drops one request drops more."""
        who = Robot.of(robot)
        records = self._records.get(who)
        if records is None:
            records = tuple(raw and raw.record() for raw in self._find(who))
            records = next((same for same in list(self._records.values()) if same == records), records)
            for record in filter(None, records):
                record.prepare(origin)
            if len(self._records) >= _ROBOTS_REMEMBERED:
                self._records.clear()
            self._records[who] = records
        return records

    def _find(self, robot: Robot) -> list[RawRecord | RawGroup | None]:
        file = self._read()
        return [reading.find(file, robot) for reading in self._readings]

    def _read(self) -> _File:
        return _File.of(self._body, self.multivalue)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.records)} records>"
