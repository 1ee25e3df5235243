"""A robots.txt in a report: what is found in it when it is loaded, and its listing at the end, line by line.

`Examined.of` finds lines without effect, although their author intended one: lines with findings of severity
`ERROR`, and rules that such a line takes from their robots. It also finds rules with patterns, which the
strict reading takes literally. Only the start of a file is examined, because findings take longer than
parsing. `list_files` says for each line whether it applies to the crawl's robot, how many requests it
dropped, what is wrong with it, and where other readings (`NOROBOTS_ALSO_OBEY`) differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, TypeAlias

from scrapy_norobots.rules.access import Access
from scrapy_norobots.rules.parser import StrictRobotParser, parser_names, strict_reading, verdicts
from scrapy_norobots.standard import KINDS, Finding, RobotsTxt, Severity
from scrapy_norobots.standard.decision import printable, quoted
from scrapy_norobots.standard.findings import find_all, rules_of
from scrapy_norobots.standard.hints import meant_name
from scrapy_norobots.standard.lines import is_user_agent, to_lines, to_text
from scrapy_norobots.standard.names import names_robot, to_name
from scrapy_norobots.standard.records import DEFAULT_NAME, Record
from scrapy_norobots.standard.urls import percent_encode

# How many characters of a file are examined: at most about 0.1 s of work, for any content.
_EXAMINED_MAX = 32 * 1024

# Kinds of findings that change nothing for any robot.
HARMLESS = ("robots-txt",)

# The kinds of findings that a file is examined for.
_EXAMINED = {"wildcard", *(kind for kind, facts in KINDS.items() if facts.severity is Severity.ERROR)}

# Shown like a kind of finding: a rule without a finding that a line above it takes from its robots.
MISPLACED = "misplaced-rule"

# What a file is marked with: rules without effect that were meant for the crawl's robot and that nothing else
# enforces; rules for this robot with `*` or `$`, if only the strict reading decides.
TYPOS, PATTERNS = "typos", "patterns"

# What stands before the paths of a line that was meant as a rule, and the paths.
_PATHS = re.compile(r"(?<=[\s:=])/(?!/)[^\s#]*")

# How many files are listed, and how many characters they may have together in the page.
FILES_MAX = 200
TEXT_MAX = 1024 * 1024

# How much of one file is listed: lines, and notes.
_LINES_MAX = 5_000
_NOTES_MAX = 1_000

# How many URLs of one file are checked with all readings: a check can take a millisecond.
_QUESTIONS_MAX = 100

# A line with a path, in the standard or in RFC 9309; and what a URL that it is about may look like.
_PATH_LINE = re.compile(r"[ \t]*(?:dis)?allow[ \t]*:[ \t]*(/[^#\s]*)", re.IGNORECASE | re.ASCII)

MISPLACED_MEANING = (
    "A User-agent line above it has an error, so the robots that it was meant for do not obey it."
)

# Of an origin, how many requests each line has dropped: line 0 is that of a parser that gives no line.
Drops = Mapping[tuple[int, str], int]

# A file to show: its `origin` and `url`, the `robot`, the parsers (`readers`), the `lines`, and
# how many `more` are not listed; `applies`, the first and last lines of the records that apply to the robot;
# and by line number, as text from 1: `drops` counts requests, for every rule of these records, and for other
# lines that dropped some; `notes`; `differs` says where readings differ. `dropped_by` counts what no line is
# counted for.
Listing: TypeAlias = dict[str, Any]


def errors_of(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings on lines without effect; these lines and the rules that they take are all."""
    return [one for one in findings if one.severity is Severity.ERROR and one.kind not in HARMLESS]


@dataclass(frozen=True, slots=True)
class Examined:
    """What was found in a file.

    `lines` is how many lines have no effect, or none for the robots they were meant for, `kinds` lists the
    kinds of findings, and `text` says both for the log. `marks` are of `TYPOS` and `PATTERNS`.
    """

    lines: int = 0
    kinds: str = ""
    text: str = ""
    marks: frozenset[str] = frozenset()

    @classmethod
    def of(cls, access: Access, robot: str | bytes, also_robots: Sequence[str] = ()) -> Examined:
        """Examine the first 32 KiB of the file of an origin, for the robots of a crawl."""
        robots = strict_reading(access.rules)
        if robots is None:
            return cls()
        # No character has more than four bytes.
        start = to_text(access.snapshot.body[: 4 * _EXAMINED_MAX + 4])
        lines = _lines(start[:_EXAMINED_MAX])
        if len(start) > _EXAMINED_MAX:
            lines.pop()  # it may be cut in two
        text = "\n".join(lines)
        findings = find_all(text, multivalue=robots.multivalue, kinds=_EXAMINED)
        marks = set()
        patterns = {one.line for one in findings if one.kind == "wildcard"}
        if patterns and parser_names(access.rules) == [StrictRobotParser.__name__]:
            record = _record_for(robots, robot)
            marks |= {PATTERNS} if record and patterns & {line for line, _ in record.rules} else set()
        errors = errors_of(findings)
        if not errors:
            return cls(marks=frozenset(marks))
        rules, idle = rules_of(errors, RobotsTxt.parse(text, multivalue=robots.multivalue).records)
        if any(
            _may_be_fetched(access, line, name)
            for name in (robot, *also_robots)
            for line in _meant_for(name, _record_for(robots, name), lines, set(rules), set(idle))
        ):
            marks.add(TYPOS)
        kinds = {
            kind: [one for one in errors if one.kind == kind]
            for kind in dict.fromkeys(finding.kind for finding in errors)
        }
        lost = len({finding.line for finding in errors} | set(idle))
        details = "; ".join(
            f"{_place(found)}, {quoted(found[0].text.strip())}: {found[0].message.rstrip('.')}"
            for found in kinds.values()
        )
        why = ", so the strict reading allows pages that the site meant to forbid" if idle else ""
        said = f"{lost} {'line' if lost == 1 else 'lines'}{why} ({details})"
        listed = ", ".join(f"{kind} ({_place(found)})" for kind, found in kinds.items())
        return cls(lost, listed, said, frozenset(marks))


def _record_for(robots: RobotsTxt, robot: str | bytes) -> Record | None:
    return robots.decisions("/", robot)[0].record  # of the strict reading


def _may_be_fetched(access: Access, line: str, robot: str | bytes) -> bool:
    """Return whether a robot may fetch any of what a line without effect was meant to forbid."""
    paths = _PATHS.findall(line)
    origin = access.snapshot.origin
    return not paths or not all(access.forbids(origin, percent_encode(path), robot) for path in paths)


def _meant_for(
    robot: str | bytes, record: Record | None, lines: list[str], rules: set[int], idle: set[int]
) -> Iterator[str]:
    """Yield the lines of rules without effect that were meant for a robot, which has a record or none.

    A rule was meant for the robots that the lines above it name, with blank lines between or not; without
    such lines, it was meant for all.
    """
    folded = to_name(robot).casefold()
    has_default = record is None or DEFAULT_NAME in record.names
    is_meant = is_group_complete = True
    for number, line in enumerate(lines, 1):
        if is_user_agent(line) or meant_name(line):
            name = line.partition("#")[0].partition(":")[2].strip().rstrip("*") or DEFAULT_NAME
            is_named = names_robot(name, folded) or (has_default and name == DEFAULT_NAME)
            is_meant = is_named or (is_meant and not is_group_complete)
            is_group_complete = False
        elif number in rules:
            is_group_complete = True
            if is_meant and number in idle:
                yield line


def _place(found: list[Finding]) -> str:
    return f"line {found[0].line}" + (f" and {len(found) - 1} more" if len(found) > 1 else "")


def _lines(text: str) -> list[str]:
    lines = to_lines(text)
    return lines if lines[-1] else lines[:-1]  # what follows the last line end is no line


def list_files(accesses: Iterable[Access], robot: str | bytes, drops: Mapping[str, Drops]) -> list[Listing]:
    """List the files of some accesses, those of most interest first, as far as the bounds allow.

    `drops` is by origin. This takes up to some seconds: run it in a thread.
    """
    listings: list[Listing] = []
    room = TEXT_MAX
    for access in islice((one for one in accesses if one.rules is not None), FILES_MAX):
        if len(access.snapshot.body) > room:
            continue  # there would be no room for its listing
        listing = _list_file(access, robot, drops.get(str(access.snapshot.origin), {}))
        text = json.dumps(listing)
        size = len(text) + 5 * sum(map(text.count, "<>&"))  # which are escaped in the page
        if size <= room:
            listings.append(listing)
            room -= size
    return listings


def _list_file(access: Access, robot: str | bytes, drops: Drops) -> Listing:
    snapshot, rules = access.snapshot, access.rules
    all_lines = _lines(to_text(snapshot.body))
    lines, more = all_lines[:_LINES_MAX], len(all_lines[_LINES_MAX:])
    listing = Listing(
        origin=printable(str(snapshot.origin)),
        url=printable(snapshot.url),
        robot=printable(to_name(robot), 100),
        readers=parser_names(rules),
        lines=[printable(line) for line in lines],
        more=more,
        applies=[],
        drops={},
        dropped_by=[(printable(text), count) for (line, text), count in drops.items() if not line],
        notes={},
        differs={},
    )
    robots = strict_reading(rules)
    if robots is not None:
        shown = RobotsTxt.parse("\n".join(lines) if more else snapshot.body, multivalue=robots.multivalue)
        own = _record_for(robots, robot)
        starts = {line for line, _ in own.user_agents} if own else ()
        records = [record for record in robots.records if record.line in starts]
        listing["applies"] = [
            [one.line, max(line for line, _ in (*one.user_agents, *one.rules))] for one in records
        ]
        counts = {line: 0 for record in records for line, value in record.rules if value}
        for (line, text), count in drops.items():
            # The file may have changed during the crawl: lines that it does not have any more are left out.
            if 0 < line <= len(lines) and text in lines[line - 1]:
                counts[line] = counts.get(line, 0) + count
        listing["drops"] = {str(line): count for line, count in sorted(counts.items())}
        listing["differs"] = {str(line): said for line, said in _differences(access, robot, lines)}
        obeyed = {line for line, count in listing["drops"].items() if count} | listing["differs"].keys()
        listing["notes"] = _notes_of(shown, obeyed)
    return listing


def _notes_of(robots: RobotsTxt, obeyed: Container[str]) -> dict[str, list[tuple[str, str, str, str]]]:
    # Each is severity, kind, message and hint. Lines that another reading obeys have an effect.
    notes: dict[str, list[tuple[str, str, str, str]]] = {}
    errors = errors_of(robots.findings)
    _, idle = rules_of(errors, robots.records)
    faulty = {finding.line for finding in errors}
    lost = [(line, MISPLACED, MISPLACED_MEANING, "") for line in idle if line not in faulty]
    found = [(one.line, one.kind, one.message, one.hint) for one in robots.findings]
    for line, kind, meaning, hint in chain(found[:_NOTES_MAX], lost[:_NOTES_MAX]):
        severity, message = Severity.ERROR if kind == MISPLACED else KINDS[kind].severity, meaning
        if kind in HARMLESS:
            severity = Severity.INFO
        elif severity is Severity.ERROR and str(line) in obeyed:
            severity, message = Severity.WARNING, f"In the strict reading: {meaning}"
        notes.setdefault(str(line), []).append((severity.value, kind, message, hint))
    return notes


def _differences(access: Access, robot: str | bytes, lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Ask all readings about a URL for each line with a path; yield where they differ from the first."""
    names, rules = parser_names(access.rules), access.rules
    if rules is None or len(names) < 2:
        return
    paths = (
        (number, match[1])
        for number, line in enumerate(lines, 1)
        if len(line) <= 500 and (match := _PATH_LINE.match(line))
    )
    for number, path in islice(paths, _QUESTIONS_MAX):
        target = percent_encode(path.removesuffix("$").replace("*", "x"))
        first, *others = verdicts(rules, access.snapshot.origin, target, robot)
        verb = "allows" if first else "forbids"
        found = [name for name, forbids in zip(names[1:], others, strict=True) if forbids != first]
        if found:
            yield number, [f"{name} {verb} {printable(target)}" for name in found]
