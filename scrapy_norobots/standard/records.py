"""Records: which robots a group of lines names, and what it disallows (clauses R1 to R6).

`read_records` goes through the lines once and keeps what it reads as plain tuples, since most files
are asked about one robot only; `Record` and `Rule` are the same facts as a reader of code wants them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from scrapy_norobots.standard.lines import FIELD, is_blank

DEFAULT_NAME = "*"


class Rule(NamedTuple):
    """One ``Disallow`` line: its number in the file, from 1, and its value without comment and blanks."""

    line: int
    value: str


class UserAgent(NamedTuple):
    """One ``User-agent`` line: its number in the file, from 1, and its value without comment and blanks."""

    line: int
    value: str


class Record(NamedTuple):
    """One record: the robots it names and the rules it has for them, both in file order.

    A record without rules restricts nothing, and is still the record of the robots it names (R3).
    """

    user_agents: tuple[UserAgent, ...]
    rules: tuple[Rule, ...]

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
        """Whether it is, or is part of, the default record (R5); it may name robots as well (R6)."""
        return DEFAULT_NAME in self.names


# A record while it is read: (line, value) of its User-agent lines, and of its Disallow lines.
RawRecord = tuple[list[tuple[int, str]], list[tuple[int, str]]]


def read_records(lines: Iterable[str]) -> list[RawRecord]:
    """Read the records of a file from its lines.

    A blank line ends a record (F5), and so does a ``User-agent`` line after a ``Disallow`` line (R2).
    Lines of other fields, without a colon or with a comment only do neither (F4, F7, F8). A
    ``Disallow`` line outside a record belongs to nobody (R4).
    """
    records: list[RawRecord] = []
    user_agents: list[tuple[int, str]] | None = None
    rules: list[tuple[int, str]] = []
    field = FIELD.match
    for number, line in enumerate(lines, 1):
        match = field(line)
        if match is None:
            if not line or is_blank(line):
                user_agents = None
            continue
        is_user_agent, value = match.groups()
        if is_user_agent:
            if user_agents is None or rules:
                user_agents, rules = [], []
                records.append((user_agents, rules))
            user_agents.append((number, value.rstrip(" \t")))
        elif user_agents is not None:
            rules.append((number, value.rstrip(" \t")))
    return records


def to_record(raw: RawRecord) -> Record:
    """Give a record read by `read_records` its public form."""
    user_agents, rules = raw
    return Record(tuple(map(UserAgent._make, user_agents)), tuple(map(Rule._make, rules)))
