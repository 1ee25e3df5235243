"""`RobotsTxt`: a robots.txt file, read by the 1994 standard and asked what a robot may fetch.

The one module that joins the others of this package. Nothing here does input or output; parsing never
raises on bytes, whatever they hold.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cached_property
from operator import attrgetter

from scrapy_norobots.standard.decision import Decision, Reason, Verdict
from scrapy_norobots.standard.findings import Finding, find_all
from scrapy_norobots.standard.lines import is_html, to_lines, to_text
from scrapy_norobots.standard.names import names_robot, to_name
from scrapy_norobots.standard.records import (
    DEFAULT_NAME,
    PackedRecords,
    RawRecord,
    Record,
    Rule,
    to_record,
)
from scrapy_norobots.standard.rules import Glance, RuleSet
from scrapy_norobots.standard.urls import Origin, is_normal, is_robots_txt, split

# How many robots' names are remembered. A crawl has one, a few at most; one that changes its name with
# each request must not fill the memory.
_ROBOTS_REMEMBERED = 64

# A body of at most so many bytes is read within a few milliseconds, whatever is in it.
SMALL_BODY = 32 * 1024

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

    def __init__(self, body: bytes | str, packed: PackedRecords, *, multivalue: bool = False) -> None:
        """Hold what `parse` has read; not for use by others."""
        self.multivalue = multivalue
        self._body = body
        self._packed = packed
        self._index_of: dict[str | bytes, int] = {}
        self._rules_at: dict[int, RuleSet] = {}
        self._record_at: dict[int, Record] = {}
        self._glances: dict[str | bytes, Glance] = {}

    @classmethod
    def parse(cls, body: bytes | str, *, multivalue: bool = False) -> RobotsTxt:
        """Read a file from its bytes (or from text, taken as decoded).

        With `multivalue`, a line may name several robots or several paths (D1). Never raises on bytes or
        text; raises `TypeError` for anything else. An empty file, or one without records, restricts nobody
        (F9).
        """
        text = to_text(body)
        lines = () if is_html(text) else to_lines(text)
        return cls(body, PackedRecords(lines, multivalue=multivalue), multivalue=multivalue)

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """The records of the file, in file order; several may be part of the default one (R5)."""
        return tuple(map(to_record, self._packed.unpack()))

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What in the file is not as the standard wants it, by line number.

        Nothing of it is worked out before it is asked for.
        """
        return tuple(find_all(self._body, multivalue=self.multivalue))

    @property
    def size(self) -> int:
        """About how much memory the file takes, in bytes, once it has said why to one robot."""
        return 1000 + len(self._body) + self._packed.size

    def is_ready(self, robot: str | bytes) -> bool:
        """Whether questions about `robot` are answered at once: the file is small, or was read for it."""
        return len(self._body) <= SMALL_BODY or robot in self._index_of

    def prepare(self, robot: str | bytes) -> None:
        """Read the file for `robot`."""
        self._index(robot)

    def allowed(self, url: str, robot: str | bytes) -> bool:
        """Whether `robot`, a name or a whole User-Agent header, may fetch `url` (U1 to U9).

        `url` is a URL, or a path that starts with ``/``. Raises `TypeError` for other types than `str` (and,
        for the robot, `bytes`), `ValueError` for a URL that is neither, or has an impossible port.
        """
        try:
            base, start, few, cut, keys, short, origin, rules = self._glances[robot]
            if not url.startswith(base):
                return self._look(url, robot)
        except (AttributeError, KeyError, TypeError):  # a first question, or of a wrong type
            return self._look(url, robot)
        if not few:
            return True
        if (
            "%" not in url
            and (url.find(".", start) < 0 or "/." not in url)  # to look for two characters takes longer
            and "\t" not in url
            and "\n" not in url
            and "\r" not in url
            and (
                not url.startswith(few, start)
                or (keys and url[cut] not in keys and not (short and url.startswith(short, start)))
            )
        ):
            return True
        target = url[start:].partition("#")[0]
        if is_normal(target):  # so there is nothing to drop from it
            return rules.look_up(origin, target) is None or target == "/robots.txt"
        return self._look(url, robot)

    def _look(self, url: str, robot: str | bytes) -> bool:
        """Answer any question, and prepare a glance for more such URLs."""
        rules = self._rules_at[self._index(robot)]
        origin, target = split(url)
        glance = self._glances.get(robot)
        if origin and not (glance and url.startswith(glance[0])):
            glance = rules.glance(url, origin)
            if glance:
                self._glances[robot] = glance
        return target is None or rules.match(origin, target) is None or is_robots_txt(target)

    def decide(self, url: str, robot: str | bytes, source: str | None = None) -> Decision:
        """Say whether and why `robot` may fetch `url`; takes and raises what `allowed` does.

        `source`, the URL that the file came from, is named in the decision.
        """
        origin, target = split(url)
        index = self._index(robot)
        record = self._record(index)
        rule = None
        if target is None:
            reason = Reason.NOT_WEB
        elif is_robots_txt(target):
            reason = Reason.ROBOTS_TXT
        elif record is None:
            reason = Reason.NO_RECORD
        else:
            line = self._rules_at[index].match(origin, target)
            if line is None:
                reason = Reason.NO_RULE_MATCHES
            else:
                reason = Reason.RULE
                rule = _rule_of(record, line, origin, target)
        return Decision(
            verdict=Verdict.FORBIDDEN if rule else Verdict.ALLOWED,
            url=url,
            robot=to_name(robot),
            reason=reason,
            rule=rule,
            record=record,
            source=source,
        )

    def _index(self, robot: str | bytes) -> int:
        """Return the index of the record that counts for a robot, and have its rules ready at `_rules_at`."""
        try:
            index = self._index_of.get(robot)
        except TypeError:  # not hashable, so neither text nor bytes: to_name says so better
            index = None
        if index is None:
            name = to_name(robot)
            if len(self._index_of) >= _ROBOTS_REMEMBERED:
                self._index_of.clear()
                self._glances.clear()
            records = self._packed.unpack()
            index = self._index_of[robot] = _select(records, name)
            if index not in self._rules_at:
                self._rules_at[index] = RuleSet(_raw(records, index)[1])
        return index

    def _record(self, index: int) -> Record | None:
        if index == _NONE:
            return None
        record = self._record_at.get(index)
        if record is None:
            record = self._record_at[index] = to_record(_raw(self._packed.unpack(), index))
        return record

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self._packed)} records>"


def _select(records: list[RawRecord], name: str) -> int:
    """Return the index of the first record that names the robot (A3), else `_DEFAULT` or `_NONE` (A4)."""
    folded = name.casefold()
    has_default = False
    for index, (user_agents, _) in enumerate(records):
        for _, value in user_agents:
            if value == DEFAULT_NAME:
                has_default = True
            elif name != DEFAULT_NAME and names_robot(value, folded):
                return index
    return _DEFAULT if has_default else _NONE


def _raw(records: list[RawRecord], index: int) -> RawRecord:
    """Return the record at an index; the default one is made of all that name ``*`` (R5, R6)."""
    if index == _NONE:
        return [], []
    if index >= 0:
        return records[index]
    parts = [raw for raw in records if any(value == DEFAULT_NAME for _, value in raw[0])]
    return [line for names, _ in parts for line in names], [line for _, rules in parts for line in rules]


def _rule_of(record: Record, line: int, origin: Origin | None, target: str) -> Rule:
    """Return the rule of a line that forbids a target; the line has several in the multi-value dialect."""
    start = bisect_left(record.rules, line, key=attrgetter("line"))
    end = bisect_right(record.rules, line, key=attrgetter("line"))
    if end - start == 1:
        return record.rules[start]
    return next(rule for rule in record.rules[start:end] if RuleSet([rule]).match(origin, target))
