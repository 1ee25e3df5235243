"""`RobotsTxt`: a robots.txt file, read by the 1994 standard, that answers what a robot may fetch.

This module joins the others of the package. It does no input or output, and accepts any bytes without raising
an exception. A `RobotsTxt` keeps its body, and reads it when it is asked: once for the rules of a robot,
which it then keeps, and again for records, findings and the reasons of decisions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cached_property

from scrapy_norobots.standard.decision import Decision, Reason, Verdict
from scrapy_norobots.standard.findings import Finding, find_all
from scrapy_norobots.standard.names import to_name
from scrapy_norobots.standard.records import RawRecord, Record, find_record, read_records
from scrapy_norobots.standard.rules import RuleSet
from scrapy_norobots.standard.urls import Origin, is_robots_txt, split

# A body of at most this many bytes is read within about 20 ms, whatever its content. Larger ones keep the
# records of robots in memory, so that a decision is as fast.
SMALL_BODY = 32 * 1024

# The rules of at most this many robots are cached. A crawl has one robot, or a few; a robot that changes its
# name with each request must not fill the memory.
_ROBOTS_REMEMBERED = 64

# Not equal to any robot.
_NOBODY = object(), RuleSet(())


class RobotsTxt:
    r"""A robots.txt file, read by the 1994 standard. It does not change.

    Make one with `parse`. The robot that a method asks about is a name (``"FooBot"``) or a whole User-Agent
    header (``"FooBot/1.2 (+http://foo.example/)"``), as `str` or `bytes`. A file does not know the origin
    that it came from, so ask it only about URLs of this origin (U8).

    >>> robots = RobotsTxt.parse(b"User-agent: *\nDisallow: /tmp/ # soon gone\n")
    >>> robots.allowed("http://foo.example/tmp/a", "FooBot/1.2")
    False
    >>> robots.decide("http://foo.example/tmp/a", "FooBot/1.2").rule
    Rule(line=2, value='/tmp/')
    """

    def __init__(self, body: bytes | str, *, multivalue: bool = False) -> None:
        """Do the same as `parse`. Raises `TypeError` if `body` is neither `bytes` nor `str`."""
        if not isinstance(body, (bytes, str)):
            raise TypeError(f"a robots.txt body must be bytes or str, not {type(body).__name__}")
        self.multivalue = multivalue
        self._body = body
        # By name of the robot: the rules for `allowed`, and the record for the reasons of `decide`.
        self._rules: dict[str, RuleSet] = {}
        self._records: dict[str, Record | None] = {}
        # The last robot that was asked about, as given, and its rules: a crawl has one robot, or a few.
        self._last: tuple[object, RuleSet] = _NOBODY

    @classmethod
    def parse(cls, body: bytes | str, *, multivalue: bool = False) -> RobotsTxt:
        """Return the file that has this body: bytes as downloaded, or text that is decoded already.

        If `multivalue` is true, a line may have several values, separated by spaces or tabs (D1). Any bytes
        and any text are a robots.txt (F1); raises `TypeError` for other types. A file that is empty or has no
        records restricts no robot (F9). Nothing is read yet: the first question reads the file.
        """
        return cls(body, multivalue=multivalue)

    @property
    def body(self) -> bytes | str:
        """The body of the file, as given."""
        return self._body

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """All records of the file, a tuple of `Record`, in file order (R1).

        Several of them may be part of the default record (R5).
        """
        return tuple(Record(raw.names, raw.rules) for raw in self._read())

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What in the file does not follow the standard, a tuple of `Finding`, ordered by line number."""
        return tuple(find_all(self._body, multivalue=self.multivalue))

    @property
    def size(self) -> int:
        """Approximate memory use in bytes, including the cached rules and records of robots."""
        kept = {id(one): one.size for one in (*self._rules.values(), *self._records.values()) if one}
        return 1000 + sys.getsizeof(self._body) + sum(kept.values())

    def is_ready(self, robot: str | bytes) -> bool:
        """Return whether questions about `robot` are fast: the file is small, or was already read for it."""
        return len(self._body) <= SMALL_BODY or to_name(robot) in self._records

    def prepare(self, origin: Origin, robot: str | bytes) -> None:
        """Read the rules for `robot`, and its record if the file is large, so that questions are fast."""
        if len(self._body) > SMALL_BODY:
            self._record_of(robot, origin)  # before the rules, which are then those of the record
        self._rules_of(robot).match(origin, "/")

    def allowed(self, url: str, robot: str | bytes) -> bool:
        """Return whether `robot` may fetch `url` (A1 to A4, U1 to U9).

        `url` is an absolute URL, or a path with or without a query that starts with ``/``. A path is checked
        as one of the file's own origin. A URL that is not http or https (``mailto:``) or lacks its host
        (``http:///a``) is always allowed (U9), and so is ``/robots.txt`` (U7). Raises
        `TypeError` if `url` is not a `str`, or `robot` neither `str` nor `bytes`; raises `ValueError` if
        `url` is neither a URL nor a path, or its port is not a number from 0 to 65535.
        """
        last, rules = self._last
        if robot != last:
            rules = self._rules_of(robot)
        origin, target = split(url)
        return target is None or rules.match(origin, target) is None

    def forbids(self, origin: Origin, target: str, robot: str | bytes) -> bool:
        """Return whether `robot` must not fetch `target`, a path with its query, at the file's origin."""
        return self._rules_of(robot).match(origin, target) is not None

    def decide(self, url: str, robot: str | bytes, source: str | None = None) -> Decision:
        """Return whether `robot` may fetch `url`, with the line and the record that decide it.

        `url`, `robot` and the errors are those of `allowed`, which is faster. `source` is the URL that the
        file was downloaded from; the text of the decision names it.
        """
        origin, target = split(url)
        record = self._record_of(robot, origin)
        rule = None
        if target is None:
            reason = Reason.NOT_WEB
        elif is_robots_txt(target):
            reason = Reason.ROBOTS_TXT
        elif record is None:
            reason = Reason.NO_RECORD
        else:
            prefix = self._rules_of(robot).match(origin, target)
            rule = None if prefix is None else record.forbidding(prefix, origin)
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

    def _rules_of(self, robot: str | bytes) -> RuleSet:
        last, rules = self._last
        if robot != last:
            name = to_name(robot)
            rules = self._rules.get(name) or self._read_rules(name)
            self._last = robot, rules
        return rules

    def _read_rules(self, name: str) -> RuleSet:
        record: RawRecord | Record | None
        try:
            record = self._records[name]
        except KeyError:
            record = find_record(self._read(), name)
        rules = RuleSet(record.values if record else ())
        if len(self._rules) >= _ROBOTS_REMEMBERED:
            self._rules.clear()
            self._records.clear()
        for same in list(self._rules.values()):  # a list, since threads may ask at once
            if same == rules:  # most names have the rules of the default record
                rules = same
        self._rules[name] = rules
        return rules

    def _record_of(self, robot: str | bytes, origin: Origin | None) -> Record | None:
        """Return the record that applies to a robot, cached: a crawl that drops one request drops more."""
        name = to_name(robot)
        try:
            return self._records[name]
        except KeyError:
            found = find_record(self._read(), name)
            record = Record(found.names, found.rules) if found else None
            record = next((same for same in list(self._records.values()) if same == record), record)
            if record is not None:
                record.prepare(origin)
            if len(self._records) >= _ROBOTS_REMEMBERED:
                self._records.clear()
            self._records[name] = record
            return record

    def _read(self) -> Iterator[RawRecord]:
        return read_records(self._body, multivalue=self.multivalue)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.records)} records>"
