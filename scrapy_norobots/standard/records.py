"""Records: which robots a group of lines names, and what it disallows (clauses R1 to R6).

`PackedRecords` goes through the lines once and keeps what it reads in as little memory as it takes, since
most files are asked about one robot only, and a crawl keeps many; `Record` and `Rule` are the same facts as
a reader of code wants them.
"""

from __future__ import annotations

import sys
from array import array
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


# A record by plain tuples: (line, value) of its User-agent lines, and of its Disallow lines.
RawRecord = tuple[list[tuple[int, str]], list[tuple[int, str]]]

# The fields as nearly all files spell them, told without a search; whether they are User-agent.
_USUAL = {"User-agent": True, "User-Agent": True, "user-agent": True, "Disallow": False, "disallow": False}

# What a line of a record is; kept in the two lowest bits of its packed number.
_FIRST_NAME, _NAME, _RULE = range(3)


class PackedRecords:
    """The records of a file, in little more memory than the text of their values."""

    __slots__ = ("_numbers", "_values")

    def __init__(self, lines: Iterable[str], *, multivalue: bool = False) -> None:
        """Read the records of a file from its lines, which may have several values with `multivalue` (D1).

        A blank line ends a record (F5), and so does a ``User-agent`` line after a ``Disallow`` line (R2).
        Lines of other fields, without a colon or with a comment only do neither (F4, F7, F8). A
        ``Disallow`` line outside a record belongs to nobody (R4).
        """
        numbers = array("q")
        values: list[str] = []
        before: int | None = None  # what the line before was, None outside a record
        field = FIELD.match
        for number, line in enumerate(lines, 1):
            name, colon, value = line.partition(":")
            is_user_agent: bool | str | None = _USUAL.get(name)
            if is_user_agent is None or not colon:
                match = field(line)
                if match is None:
                    if not line or is_blank(line):
                        before = None
                    continue
                is_user_agent, value = match.groups()
            elif "#" in value:
                value = value.partition("#")[0]
            if is_user_agent:
                before = _FIRST_NAME if before is None or before == _RULE else _NAME
            elif before is None:
                continue
            else:
                before = _RULE
            numbers.append(number << 2 | before)
            values.append(value.strip(" \t"))
        if multivalue:
            numbers, values = _split(numbers, values)
        self._numbers = numbers
        self._values = "\n".join(values).encode("utf-8", "surrogatepass")

    def unpack(self) -> list[RawRecord]:
        """Return the records in file order."""
        records: list[RawRecord] = []
        values = self._values.decode("utf-8", "surrogatepass").split("\n")
        for number, value in zip(self._numbers, values, strict=False):  # no record gives one empty value
            kind = number & 3
            if kind == _FIRST_NAME:
                records.append(([], []))
            records[-1][kind == _RULE].append((number >> 2, value))
        return records

    def __len__(self) -> int:
        return sum(number & 3 == _FIRST_NAME for number in self._numbers)

    @property
    def size(self) -> int:
        """About how much memory they take, in bytes, with the largest record in use."""
        default = largest = 0
        for user_agents, rules in self.unpack():
            size = sum(_size_of(value) for part in (user_agents, rules) for _, value in part)
            if any(value == DEFAULT_NAME for _, value in user_agents):
                default += size
            largest = max(largest, default, size)
        return 8 * len(self._numbers) + len(self._values) + largest


def to_values(value: str) -> list[str]:
    """Return the values of a line of the multi-value dialect, which blanks or tabs separate (D1).

    A comma or semicolon before a blank is no part of a value.
    """
    parts = (part.rstrip(",;") for part in value.replace("\t", " ").split(" "))
    return [part for part in parts if part] or [""]


def _split(numbers: array[int], values: list[str]) -> tuple[array[int], list[str]]:
    """Give each of several values of a line an entry of its own."""
    split_numbers, split_values = array("q"), []
    for number, value in zip(numbers, values, strict=True):
        for part in to_values(value):
            split_numbers.append(number)
            split_values.append(part)
            if number & 3 == _FIRST_NAME:
                number += _NAME - _FIRST_NAME  # noqa: PLW2901  # only the first part begins a record
    return split_numbers, split_values


def _size_of(value: str) -> int:
    """About how much memory a line of a record takes while the record is in use."""
    size = 230 + sys.getsizeof(value)
    if not value.isascii():
        size += 3 * len(value.encode("utf-8", "surrogatepass"))  # as %XX
    if "://" in value:
        size += 600  # an origin with rules of its own
    return size


def to_record(raw: RawRecord) -> Record:
    """Give a record its public form."""
    user_agents, rules = raw
    return Record(tuple(map(UserAgent._make, user_agents)), tuple(map(Rule._make, rules)))
