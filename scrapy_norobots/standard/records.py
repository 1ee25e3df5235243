"""Records: which robots a group of lines names, and what it disallows (clauses R1 to R6, A3, A4).

`read_records` is the one pass over a file: it yields part after part, so that whoever looks for a robot's
record reads no further, and takes out of the text only the rules that are asked for. `Record` and `Rule`
are the same facts as a reader of code wants them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from scrapy_norobots.standard.lines import (
    BLANK_LINE,
    DISALLOW,
    USER_AGENT,
    is_html,
    numbered,
    to_text,
    to_values,
    with_line_feeds,
)
from scrapy_norobots.standard.names import names_robot

DEFAULT_NAME = "*"


class Rule(NamedTuple):
    """A ``Disallow`` line: `line`, its number from 1, and `value`, without comment and blanks (F6)."""

    line: int
    value: str


class UserAgent(NamedTuple):
    """A ``User-agent`` line: `line`, its number from 1, and `value`, without comment and blanks (F6)."""

    line: int
    value: str


class Record(NamedTuple):
    """A record (R1): `user_agents`, the robots that it names, and `rules`, which apply to them.

    A record without rules restricts nothing, and still is the record of the robots that it names (R3).
    """

    user_agents: tuple[UserAgent, ...]
    rules: tuple[Rule, ...]

    @classmethod
    def of(cls, records: Sequence[RawRecord]) -> Record:
        """Make a record of a raw one, or the default record of several (R5)."""
        return cls(
            tuple(UserAgent(line, name) for record in records for line, name in record.names),
            tuple(rule for record in records for rule in record.rules),
        )

    @property
    def size(self) -> int:
        """About how much memory it takes, in bytes."""
        lines = (*self.user_agents, *self.rules)
        return 150 * len(lines) + sum(len(value) for _, value in lines)

    @property
    def line(self) -> int:
        """The number of the record's first line."""
        return self.user_agents[0].line

    @property
    def names(self) -> tuple[str, ...]:
        """The values of its ``User-agent`` lines, as written."""
        return tuple(user_agent.value for user_agent in self.user_agents)

    @property
    def is_default(self) -> bool:
        """Whether this is the default record or a part of it (R5). It may name robots as well (R6)."""
        return DEFAULT_NAME in self.names


class RawRecord(NamedTuple):
    """A record as it stands in the text: the names, and below the last of them, from `line` on, the rules."""

    names: list[tuple[int, str]]
    line: int
    below: str
    multivalue: bool

    @property
    def values(self) -> list[str]:
        """The values of the rules."""
        values: list[str] = DISALLOW.findall(self.below)
        return [part for value in values for part in to_values(value)] if self.multivalue else values

    @property
    def rules(self) -> Iterator[Rule]:
        """The rules, with the same values."""
        for line, value in numbered(DISALLOW, self.below, self.line):
            for part in to_values(value) if self.multivalue else (value,):
                yield Rule(line, part)


def read_records(body: bytes | str, *, multivalue: bool = False) -> Iterator[RawRecord]:
    """Yield the records of a file, and the rules outside of records; in file order.

    With `multivalue`, a line may have several values (D1). An HTML page has no records (F8).
    """
    text = to_text(body)
    if is_html(text):
        return
    above, *agents = USER_AGENT.split("\n" + with_line_feeds(text))
    line = above.count("\n")
    names: list[tuple[int, str]] = []
    for value, below in zip(agents[::2], agents[1::2], strict=True):
        line += 1
        names += [(line, name) for name in to_values(value)] if multivalue else [(line, value)]
        blank = BLANK_LINE.search(below)
        if blank or DISALLOW.search(below):
            yield RawRecord(names, line, below[: blank.start()] if blank else below, multivalue)
            names = []
        line += below.count("\n")
    if names:
        yield RawRecord(names, line, "", multivalue)


def find_record(records: Iterable[RawRecord], robot: str) -> list[RawRecord]:
    """Return the first record that names a robot (A3), else all that are the default one (A4, R5, R6).

    Reads no further than that first record. The list is empty if there is neither.
    """
    folded = "" if robot == DEFAULT_NAME else robot.casefold()
    default = []
    for record in records:
        is_default = False
        for _, name in record.names:
            if name == DEFAULT_NAME:
                is_default = True
            elif names_robot(name, folded):
                return [record]
        if is_default:
            default.append(record)
    return default
