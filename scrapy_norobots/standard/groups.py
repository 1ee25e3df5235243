"""Groups: the records of RFC 9309, made of the same sections of a file as those of 1994 (section 2.2.1).

A group begins with one or more ``User-agent`` lines and ends where such a line follows a rule. Blank lines
and other lines, such as ``Crawl-delay``, end nothing (2.2.4). All groups of a robot apply together; if none
names it, those for ``*`` do. `groups_of` is the only place where groups are read: for rules, and for the
statements and delays in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from scrapy_norobots.standard.lines import (
    ALLOW,
    ANY_DISALLOW,
    Sections,
    has_rule,
    rules_below,
    sections_of,
    to_text,
)
from scrapy_norobots.standard.names import is_for_all, token_of
from scrapy_norobots.standard.patterns import Index, pattern_of
from scrapy_norobots.standard.records import RawRecord, Record, Rule, rule_of
from scrapy_norobots.standard.urls import Origin


def named_places(values: Sequence[str], token: str) -> list[int]:
    """Return the places of the values that name a robot; if none does, of those that are for all robots."""
    named = []
    if token and token in "\n".join(values).lower():  # as in few files
        named = [place for place, value in enumerate(values) if token_of(value) == token]
    return named or [place for place, value in enumerate(values) if "*" in value and is_for_all(value)]


def groups_of(sections: Sections, token: str | None) -> list[range]:
    """Return the groups that apply to the robot with a product token, each as a range of sections.

    If the token is None, these are all groups of the file.
    """
    values, below = sections.values, sections.below
    found: list[range] = []
    end = 0
    for place in range(len(values)) if token is None else named_places(values, token):
        if place < end:  # named twice by one group
            continue
        first = place
        while first > end and not has_rule(below[first - 1]):
            first -= 1
        end = place + 1
        while end < len(below) and not has_rule(below[end - 1]):
            end += 1
        found.append(range(first, end))
    return found


class Group(Record):
    """The groups of one robot as one record, with their ``Allow`` and ``Disallow`` lines in file order."""

    __slots__ = ("_index", "_place")

    @property
    def allows(self) -> list[str]:
        """The values of the ``Allow`` lines."""
        return [rule.value for rule in self.rules if rule.allows]

    @property
    def values(self) -> list[str]:
        """The values of the ``Disallow`` lines."""
        return [rule.value for rule in self.rules if not rule.allows]

    def values_after(self, _record: object, _known: object) -> list[str]:
        """Return the same."""
        return self.values

    def prepare(self, _origin: Origin | None = None) -> None:
        """Do the work that the first call of `deciding` needs."""
        self._index = Index(self.allows, self.values)
        self._index.prepare()
        patterns = [pattern_of(rule.value, allows=rule.allows) for rule in self.rules]
        self._place = {pattern: place for place, pattern in reversed([*enumerate(patterns)])}

    def deciding(self, _rules: object, origin: Origin | None, target: str) -> Rule | None:
        """Return the rule with the most octets that matches `target` (2.2.2); None if none matches."""
        pattern = self._index.deciding(origin, target)
        return None if pattern is None else rule_of(*self._rules[self._place[pattern]])


class RawGroup(NamedTuple):
    """All groups of a robot, as in the file: their sections."""

    sections: Sections
    groups: list[range]

    @property
    def place(self) -> tuple[range, ...]:
        """The sections that no other groups for a robot have."""
        return tuple(self.groups)

    @property
    def text(self) -> str:
        """The text below the ``User-agent`` lines."""
        return "".join([self.sections.below[place] for group in self.groups for place in group])

    @property
    def allows(self) -> list[str]:
        """The values of the ``Allow`` lines."""
        return ALLOW.findall(self.text)

    def values_after(self, record: Record | RawRecord | None, known: list[str]) -> list[str]:
        """Return the values of the ``Disallow`` lines.

        Given the strict record of the robot and its values, these are mostly the same, and are then not read
        again.
        """
        text = self.text
        end = record.length_in(text, len(known)) if isinstance(record, RawRecord) else 0
        return known + ANY_DISALLOW.findall(text, end) if end else ANY_DISALLOW.findall(text)

    def record(self) -> Group:
        """Return the names and rules of the groups with the numbers of their lines."""
        names: list[tuple[int, str]] = []
        rules: list[tuple[int, str, bool]] = []
        lines = self.sections.line_numbers
        for place in (place for group in self.groups for place in group):
            names.append((lines[place], self.sections.values[place]))
            rules += rules_below(self.sections.below[place], lines[place])
        return Group(names, rules)


def rules_without_effect(body: bytes | str) -> tuple[list[int], list[int]]:
    """Return the lines of all rules with a value, and of those among them that have no effect by RFC 9309.

    These are outside of a group, in a group without a name, or have no path (see `pattern_of`).
    """
    sections = sections_of(to_text(body))[1]
    outside = [line for line, value, _ in rules_below(sections.above, 0) if value]
    rules, idle = list(outside), list(outside)
    lines = sections.line_numbers
    for group in groups_of(sections, None):
        is_named = any(is_for_all(name) or token_of(name) for name in map(sections.values.__getitem__, group))
        found = (rules_below(sections.below[place], lines[place]) for place in group)
        for line, value, allows in (rule for rule in chain.from_iterable(found) if rule[1]):
            rules.append(line)
            if not is_named or pattern_of(value, allows=allows) is None:
                idle.append(line)
    return rules, idle
