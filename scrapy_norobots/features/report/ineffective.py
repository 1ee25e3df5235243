"""Examine a robots.txt: which of its lines have no effect, although their author intended one.

They are the lines with findings of severity `ERROR`, and rules that such a line takes from their robots. With
the strict reading, a crawl may fetch what these lines were meant to forbid, so it reports them. It also
reports rules with patterns, which that reading takes literally. Only the start of a file is examined, because
findings take longer than parsing, about 1.5 ms for 32 KiB of rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy_norobots.rules.parser import is_only_strict, strict_reading
from scrapy_norobots.standard import Finding, RobotsTxt, Severity
from scrapy_norobots.standard.decision import quoted
from scrapy_norobots.standard.findings import find_all, rules_of
from scrapy_norobots.standard.hints import meant_name
from scrapy_norobots.standard.lines import is_user_agent, to_lines, to_text
from scrapy_norobots.standard.names import names_robot, to_name
from scrapy_norobots.standard.records import DEFAULT_NAME, Record
from scrapy_norobots.standard.urls import percent_encode

if TYPE_CHECKING:
    from scrapy_norobots.rules.access import Access

# How many characters and lines are searched: at most about 0.1 s of work, for any content. A file of more
# than 8 KiB is searched in a thread.
_CHARACTERS_MAX = 32 * 1024
_LINES_MAX = 2_000

# Kinds of findings that change nothing for any robot.
HARMLESS = ("robots-txt",)

# Listed among the kinds of findings: a rule without a finding that a line above it takes from its robots.
MISPLACED = "misplaced-rule"

# What a file is marked with: rules without effect that were meant for the crawl's robot and that nothing else
# enforces; rules for this robot with `*` or `$`, if only the strict reading decides.
TYPOS, PATTERNS = "typos", "patterns"

# What stands before the paths of a line that was meant as a rule, and the paths.
_PATHS = re.compile(r"(?<=[\s:=])/(?!/)[^\s#]*")


def errors_of(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings on lines without effect; these lines and the rules that they take are all."""
    return [one for one in findings if one.severity is Severity.ERROR and one.kind not in HARMLESS]


@dataclass(frozen=True, slots=True)
class Examined:
    """What was found in a file.

    `lines` is how many lines have no effect, `kinds` lists the kinds of findings, and `text` says for the log
    how many rules have no effect, or none for the robots they were meant for, with a message for each kind.
    `marks` are of `TYPOS` and `PATTERNS`.
    """

    lines: int = 0
    kinds: str = ""
    text: str = ""
    marks: frozenset[str] = frozenset()

    @classmethod
    def of(cls, access: Access, robot: str | bytes) -> Examined:
        """Examine the first 32 KiB of the file of an origin, for a robot."""
        robots = strict_reading(access.rules)
        if robots is None:
            return NOTHING
        text, is_truncated = _start(access.snapshot.body)
        severities = (Severity.ERROR, Severity.INFO)
        findings = find_all(text, multivalue=robots.multivalue, severities=severities)
        errors = errors_of(findings)
        record = robots.decide("/", robot).record if findings else None
        marks = set()
        if is_only_strict(access.rules):
            patterns = {one.line for one in findings if one.kind == "wildcard"}
            if record is not None and not patterns.isdisjoint(line for line, _ in record.rules):
                marks.add(PATTERNS)
        if not errors:
            return cls(marks=frozenset(marks))
        rules, idle = rules_of(errors, RobotsTxt.parse(text, multivalue=robots.multivalue).records)
        for line in _meant_for(robot, record, to_lines(text), set(rules), set(idle)):
            targets = [percent_encode(target) for target in _PATHS.findall(line)]
            if not targets or not all(access.forbids(access.snapshot.origin, one, robot) for one in targets):
                marks.add(TYPOS)
                break
        kinds: dict[str, list[Finding]] = {}
        for finding in errors:
            kinds.setdefault(finding.kind, []).append(finding)
        faulty = {finding.line for finding in errors}
        misplaced = [line for line in idle if line not in faulty]
        lines = len(faulty) + len(misplaced)
        beginning = " at its start" if is_truncated else ""
        details = "; ".join(_detail(found) for found in kinds.values())
        if idle:
            said = (
                f"{len(idle)} of {len(rules)} Disallow {'line' if len(rules) == 1 else 'lines'}{beginning}, "
                f"so the strict reading allows pages that the site meant to forbid ({details})"
            )
        else:
            said = f"{lines} {'line' if lines == 1 else 'lines'}{beginning} ({details})"
        places = {kind: _place([one.line for one in found]) for kind, found in kinds.items()}
        if misplaced:
            places[MISPLACED] = _place(misplaced)
        listed = ", ".join(f"{kind} ({place})" for kind, place in places.items())
        return cls(lines, listed, said, frozenset(marks))


NOTHING = Examined()


def _meant_for(
    robot: str | bytes, record: Record | None, lines: list[str], rules: set[int], idle: set[int]
) -> Iterator[str]:
    """Yield the lines of rules without effect that were meant for a robot, which has a record or none.

    A rule was meant for the robots that the lines above it name, with blank lines between or not; without
    such lines, it was meant for all.
    """
    folded = to_name(robot).casefold()
    has_default = record is None or DEFAULT_NAME in record.names
    names: list[str] = []
    is_group_complete = False
    for number, line in enumerate(lines, 1):
        if is_user_agent(line) or meant_name(line):
            names = [] if is_group_complete else names
            is_group_complete = False
            names.append(line.partition("#")[0].partition(":")[2].strip().rstrip("*") or DEFAULT_NAME)
        elif number in rules:
            is_group_complete = True
            is_for_all = has_default and DEFAULT_NAME in names
            is_named = any(names_robot(name, folded) for name in names)
            if number in idle and (not names or is_for_all or is_named):
                yield line


def _detail(found: list[Finding]) -> str:
    place = _place([one.line for one in found])
    return f"{place}, {quoted(found[0].text.strip())}: {found[0].message.rstrip('.')}"


def _place(lines: list[int]) -> str:
    return f"line {lines[0]}" + (f" and {len(lines) - 1} more" if len(lines) > 1 else "")


def _start(body: bytes) -> tuple[str, bool]:
    """Return the first whole lines of a file, and whether there are more."""
    text = to_text(body[: 4 * _CHARACTERS_MAX])  # no character has more than four bytes
    start = text[:_CHARACTERS_MAX]
    if len(start) < len(text):
        start = start[: max(start.rfind("\n"), start.rfind("\r")) + 1]
    lines = to_lines(start)
    if len(lines) > _LINES_MAX:
        start = "\n".join(lines[:_LINES_MAX])
    return start, len(start) < len(text)
