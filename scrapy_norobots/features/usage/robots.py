"""`UsageStatements`: the statements of one robots.txt, and which of them apply to a URL and a robot.

Groups are those of RFC 9309, which the drafts extend. A line outside any group, or after a blank line,
applies to every robot as well: it stands in no record of the 1994 standard, and was probably meant for all.
If in doubt, a no applies.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_norobots.features.usage.statements import (
    CONTENT_SIGNAL,
    CONTENT_USAGE,
    LICENSE,
    LONGEST,
    ROBOTS_TXT,
    STARS,
    TOO_MANY,
    TOO_MANY_STARS,
    Statement,
    read,
    split_path,
)
from scrapy_norobots.standard import Decision, Finding, Reason, Rule, Verdict
from scrapy_norobots.standard.decision import printable, quoted
from scrapy_norobots.standard.groups import groups_of
from scrapy_norobots.standard.lines import BLANK_LINE, BLANKS, Sections, is_html, sections_of, to_text
from scrapy_norobots.standard.names import Robot, is_for_all, to_name, token_of
from scrapy_norobots.standard.patterns import matches
from scrapy_norobots.standard.urls import is_robots_txt, normal, split

if TYPE_CHECKING:
    from scrapy_norobots.standard import Origin

GROUP, AFTER_BLANK, OUTSIDE = "group", "after a blank line", "outside any group"

_KINDS = frozenset({CONTENT_USAGE, CONTENT_SIGNAL, LICENSE})
_LINE = re.compile(rf"\n[ \t]*({'|'.join(sorted(_KINDS))})[ \t]*:[ \t]*([^#\n]*)[^\n]*", re.IGNORECASE)

# The largest number of statements of a file that are read, so that a question is fast.
_MOST = 1_000

# How many statements a fact lists.
_LISTED = 20


def malformed_statements(body: bytes) -> list[Finding]:
    """Return a finding for each statement of a file that cannot be read as a whole, by line."""
    return [
        Finding("malformed-statement", one.line or 0, one.text, f"{one.kind}: {printable(one.problem)}.")
        for one in UsageStatements(body).all
        if one.problem
    ]


class Found(NamedTuple):
    """A statement; `group` is the number of its group, None if there is none; `path` is in normal form."""

    statement: Statement
    group: int | None
    path: str


class UsageStatements:
    """`Statements`: what one robots.txt states about the use of pages.

    A URL is forbidden if a statement that applies says no to one of `purposes`. Any body is accepted.
    """

    def __init__(self, body: bytes, purposes: Sequence[str] = ()) -> None:
        self._purposes = purposes
        self._found: list[Found] = []
        # By product token, the numbers of the groups with statements that name it; None: all robots.
        self._groups: defaultdict[str | None, set[int]] = defaultdict(set)
        text = to_text(body)
        if any(kind in text.lower() for kind in _KINDS) and not is_html(text):
            sections = sections_of(text)[1]
            numbers = [number for number, group in enumerate(groups_of(sections, None)) for _ in group]
            self._found = list(_statements(sections, numbers))
            stating = {found.group for found in self._found}
            for name, number in zip(sections.values if stating else (), numbers, strict=False):
                self._groups[None if is_for_all(name) else token_of(name)] |= {number} & stating
        # A word of a value, "a,", takes 25 times its length.
        values = sum(500 + 25 * len(found.statement.text) for found in self._found)
        self.size = 500 + 500 * len(self._groups) + values

    @property
    def all(self) -> tuple[Statement, ...]:
        return tuple(found.statement for found in self._found)

    def on(self, target: str, robot: str | bytes) -> list[Statement]:
        """Return the statements that apply to a target (a path with its query) and a robot, by line."""
        lines = {one.line or 0: one for found in self._for(robot) for one in _of_set(found, normal(target))}
        return [lines[line] for line in sorted(lines)]

    def is_ready(self, robot: str | bytes) -> bool:
        return True

    def prepare(self, origin: Origin, robot: str | bytes) -> None:
        pass

    def forbids(self, origin: Origin, target: str, robot: str | bytes) -> bool:
        return bool(self._purposes) and self._refusal(target, robot) is not None

    def decide(self, url: str, robot: str | bytes, source: str | None = None) -> Decision:
        target = split(url)[1]
        refusal = None if target is None else self._refusal(target, robot)
        decision = Decision(Verdict.ALLOWED, url, to_name(robot), Reason.STATEMENT, source=source)
        if refusal is None:
            return decision
        statement, purpose = refusal
        assert statement.line is not None  # it is one of robots.txt
        return replace(
            decision,
            verdict=Verdict.FORBIDDEN,
            rule=Rule(statement.line, statement.text),
            detail=f"line {statement.line} of {printable(source or 'robots.txt')}, {quoted(statement.text)}, "
            f"says no to {purpose!r} (NOROBOTS_PURPOSES)",
            parser=type(self).__name__,
        )

    def facts(self, url: str, robot: str | bytes) -> list[dict[str, Any]]:
        target = split(url)[1]
        return [] if target is None else [one.facts() for one in self.on(target, robot)[:_LISTED]]

    def _refusal(self, target: str, robot: str | bytes) -> tuple[Statement, str] | None:
        if not self._found or not self._purposes or is_robots_txt(target):
            return None
        refusals = (
            (one, each)
            for one in self.on(target, robot)
            for each in self._purposes
            if one.says(each) is False
        )
        return next(refusals, None)

    def _for(self, robot: str | bytes) -> tuple[list[Found], list[Found]]:
        """Return the statements of a robot's own groups, and those for every robot.

        A no of either set is a no.
        """
        every = self._groups.get(None, set())
        groups = self._groups.get(Robot.of(robot).token or None, every)
        return (
            [each for each in self._found if each.group in groups],
            [each for each in self._found if each.statement.place != GROUP],
        )


def _statements(sections: Sections, numbers: Sequence[int]) -> Iterator[Found]:
    """Yield the statements of a file, given the number of the group of each section."""
    line = count = 0
    for below, group in zip((sections.above, *sections.below), (None, *numbers), strict=True):
        line += group is not None  # the User-agent line above it
        blank = BLANK_LINE.search(below)
        end = 0
        for match in _LINE.finditer(below):
            line += below.count("\n", end, match.start() + 1)
            end = match.start() + 1
            is_after_blank = blank is not None and blank.start() < match.start()
            place = OUTSIDE if group is None else AFTER_BLANK if is_after_blank else GROUP
            count += 1
            if count > _MOST:
                text, kind = match[0].strip()[:200], match[1].lower()
                yield Found(Statement(kind, ROBOTS_TXT, text, None, TOO_MANY, line, OUTSIDE), None, "")
                return
            yield _statement(match, line, place, group)
        line += below.count("\n", end)


def _statement(match: re.Match[str], line: int, place: str, group: int | None) -> Found:
    text, kind, value = match[0][1:].strip(BLANKS), match[1].lower(), match[2].rstrip(BLANKS)
    if kind == LICENSE:
        return Found(read(kind, ROBOTS_TXT, text, value, line=line), None, "")
    path = ""
    if kind == CONTENT_USAGE:
        path, value = split_path(value)
    if path.count("*") > STARS:
        unread = Statement(kind, ROBOTS_TXT, text[:LONGEST], None, TOO_MANY_STARS, line, place)
        return Found(unread, group, "")
    statement = read(kind, ROBOTS_TXT, text, value, line=line, place=place, path=path[:200])
    return Found(statement, group, normal(path, is_prefix=True) if path else "")


def _of_set(found: Sequence[Found], target: str) -> Iterator[Statement]:
    """Yield the statements of a set that apply to a target.

    Of the ``Content-Usage`` lines, these are the ones with the longest path (draft-ietf-aipref-attach, 3.1),
    and those that are not read, with whatever path.
    """
    longest = -1
    by_path: list[Statement] = []
    for each in found:
        if each.statement.kind != CONTENT_USAGE or each.statement.problem in (TOO_MANY, TOO_MANY_STARS):
            yield each.statement
        elif len(each.path) >= longest and matches(each.path, target):
            by_path = [each.statement] if len(each.path) > longest else [*by_path, each.statement]
            longest = len(each.path)
    yield from by_path
