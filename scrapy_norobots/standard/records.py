"""Records: groups of lines that name robots and disallow paths (clauses R1 to R6, A3, A4).

A file is read in one pass that yields raw records. `find_record` stops at the record of a robot, and only the
rules of that record are extracted. `Record` and `Rule` are the same facts for users of the package.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from scrapy_norobots.standard.lines import (
    BLANK_LINE,
    DISALLOW,
    Sections,
    is_html,
    numbered,
    sections_of,
    to_text,
    to_values,
)
from scrapy_norobots.standard.names import names_robot
from scrapy_norobots.standard.rules import WHOLE_URL, RuleSet, first_of_prefixes
from scrapy_norobots.standard.urls import Origin

DEFAULT_NAME = "*"


class Rule(NamedTuple):
    """A ``Disallow`` line: `line`, its number from 1, and `value`, without comment and blanks (F6)."""

    line: int
    value: str

    @property
    def allows(self) -> bool:
        """Whether it is an `AllowRule`."""
        return False

    def __str__(self) -> str:
        return f"{'Allow' if self.allows else 'Disallow'}: {self.value}"


class AllowRule(Rule):
    """An ``Allow`` line, which only RFC 9309 has."""

    __slots__ = ()

    @property
    def allows(self) -> bool:
        """True."""
        return True


def rule_of(line: int, value: str, allows: bool = False) -> Rule:
    """Return a rule, which may allow."""
    return AllowRule(line, value) if allows else Rule(line, value)


class UserAgent(NamedTuple):
    """A ``User-agent`` line: `line`, its number from 1, and `value`, without comment and blanks (F6)."""

    line: int
    value: str


class Record:
    """A record (R1): `user_agents`, the robots that it names, and `rules`, which apply to them.

    A record without rules restricts nothing, and still is the record of the robots that it names (R3).
    """

    __slots__ = ("_first", "_names", "_rules")

    def __init__(
        self, user_agents: Iterable[tuple[int, str]], rules: Iterable[tuple[int, str] | tuple[int, str, bool]]
    ) -> None:
        """Make a record from its lines, each a line number and a value; a rule may allow (RFC 9309)."""
        # Plain tuples, which the garbage collector need not traverse: a large file has tens of thousands of
        # rules, and a collection blocks the whole process.
        self._names = list(user_agents)
        self._rules = list(rules)
        # For the origin of the last question, or "all": the index of the first rule for each prefix.
        self._first: tuple[Origin | str | None, dict[str, int]] | None = None

    @property
    def user_agents(self) -> tuple[UserAgent, ...]:
        """The ``User-agent`` lines."""
        return tuple(map(UserAgent._make, self._names))

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The ``Disallow`` lines; by RFC 9309, the ``Allow`` lines too."""
        return tuple(rule_of(*rule) for rule in self._rules)

    @property
    def values(self) -> Any:
        """The values of the rules, as `RuleSet` takes them."""
        return [rule[1] for rule in self._rules]

    def prepare(self, origin: Origin | None) -> None:
        """Do the work that the first call of `deciding` with this origin needs."""
        if self._first is None or self._first[0] not in (origin, "all"):
            depends = any(value[:1] != "/" and WHOLE_URL.match(value) for value in self.values)
            self._first = origin if depends else "all", first_of_prefixes(self.values, origin)

    def deciding(self, rules: RuleSet | None, origin: Origin | None, target: str) -> Rule | None:
        """Return the first rule that forbids `target`; None if none does.

        `rules` are those of this record, prepared. `origin` is the origin of the target; None for bare paths.
        """
        assert rules is not None
        prefix = rules.match(origin, target)
        if prefix is None:
            return None
        self.prepare(origin)
        assert self._first is not None
        return rule_of(*self._rules[self._first[1][prefix]])

    @property
    def size(self) -> int:
        """Approximate memory use, in bytes."""
        values = [*self.names, *(rule[1] for rule in self._rules)]
        return 170 * len(values) + sum(map(len, values))

    @property
    def line(self) -> int:
        """The number of the record's first line."""
        return self._names[0][0]

    @property
    def place(self) -> object:
        """What no other record for a robot has, unless it is the same one."""
        return tuple(self._names)

    @property
    def names(self) -> tuple[str, ...]:
        """The values of the ``User-agent`` lines, as written."""
        return tuple(name for _, name in self._names)

    @property
    def is_default(self) -> bool:
        """Whether this is the default record or a part of it (R5). It may name robots as well (R6)."""
        return DEFAULT_NAME in self.names

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return (self._names, self._rules) == (other._names, other._rules)

    def __hash__(self) -> int:
        return hash((tuple(self._names), tuple(self._rules)))

    def __repr__(self) -> str:
        return f"Record(user_agents={self.user_agents!r}, rules={self.rules!r})"


class RawRecord(NamedTuple):
    """A record as in the file, or the default record, joined from several (R5).

    `names` are its numbered names. `texts` has, for each part, the line of its last name and the text below.
    """

    names: list[tuple[int, str]]
    texts: list[tuple[int, str]]
    multivalue: bool

    @property
    def place(self) -> tuple[int, int]:
        """The first line and the number of names, which no other record for a robot has."""
        return self.names[0][0], len(self.names)

    @property
    def values(self) -> list[str]:
        """The values of the rules."""
        values = [value for _, below in self.texts for value in DISALLOW.findall(below)]
        return [part for value in values for part in to_values(value)] if self.multivalue else values

    @property
    def rules(self) -> Iterator[tuple[int, str]]:
        """The rules: the same values with their line numbers."""
        for first, below in self.texts:
            for line, value in numbered(DISALLOW, below, first):
                for part in to_values(value) if self.multivalue else (value,):
                    yield line, part

    def length_in(self, text: str, count: int) -> int:
        """Return how much of the start of a text surely has the `count` rules of this record, and no others.

        The text may be that of the record, with more below it; then the lines that may be a rule are counted.
        """
        own = "".join([below for _, below in self.texts])
        if self.multivalue or not f"{text}\n".startswith(f"{own}\n"):  # not a part of a line
            return 0
        if (
            "\t" in own or "\v" in own or "\f" in own or "\n " in own
        ):  # blanks that the readings may treat otherwise
            return 0
        return len(own) if own.lower().count("\ndi") == count else 0

    def record(self) -> Record:
        """Return the record with the numbers of its lines."""
        return Record(self.names, self.rules)


def read_records(body: bytes | str, *, multivalue: bool = False) -> Iterator[RawRecord]:
    """Yield the records of a file, in file order.

    With `multivalue`, a line may have several values (D1). An HTML page has no records (F8).
    """
    text = to_text(body)
    return iter(()) if is_html(text) else records_in(sections_of(text)[0], multivalue=multivalue)


def records_in(sections: Sections, *, multivalue: bool = False) -> Iterator[RawRecord]:
    """Yield the records in the sections of a file."""
    line = sections.above.count("\n")
    names: list[tuple[int, str]] = []
    for value, below in zip(sections.values, sections.below, strict=True):
        line += 1
        names += [(line, name) for name in to_values(value)] if multivalue else [(line, value)]
        blank = BLANK_LINE.search(below)
        if blank or DISALLOW.search(below):
            yield RawRecord(names, [(line, below[: blank.start()] if blank else below)], multivalue)
            names = []
        line += below.count("\n")


def find_record(records: Iterable[RawRecord], robot: str) -> RawRecord | None:
    """Return the first record that names a robot (A3), or else the default record (A4, R5, R6).

    Stops at the first record that names the robot. Returns None if no record applies.
    """
    folded = "" if robot == DEFAULT_NAME else robot.casefold()
    # The parts of the default record are joined at once: the garbage collector goes through what is kept, and
    # a large file may have tens of thousands of parts.
    default: RawRecord | None = None
    for record in records:
        is_default = False
        for _, name in record.names:
            if name == DEFAULT_NAME:
                is_default = True
            elif names_robot(name, folded):
                return record
        if not is_default:
            continue
        if default is None:
            default = record
        else:
            default.names.extend(record.names)
            default.texts.extend(record.texts)
    return default
