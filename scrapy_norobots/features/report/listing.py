"""A robots.txt as its reader saw it, line by line, as plain data for the page.

For each line it says whether it stands in the record that applies to the crawl's robot, how many requests it
dropped, what is wrong with it, and where other readings (`NOROBOTS_ALSO_OBEY`) differ. A listing is made from
what is in memory at the end of a crawl; all together are bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeAlias

from scrapy_norobots.features.report.ineffective import HARMLESS, MISPLACED, errors_of
from scrapy_norobots.rules.parser import AllRules, Rules, parser_names, strict_reading
from scrapy_norobots.standard import KINDS, RobotsTxt, Severity
from scrapy_norobots.standard.decision import printable
from scrapy_norobots.standard.findings import rules_of
from scrapy_norobots.standard.lines import to_lines, to_text
from scrapy_norobots.standard.names import to_name
from scrapy_norobots.standard.records import Record, find_record, read_records
from scrapy_norobots.standard.urls import percent_encode

if TYPE_CHECKING:
    from scrapy_norobots.rules.access import Access

# How many files are listed, and how many characters they may have together in the page.
FILES_MAX = 200
TEXT_MAX = 1024 * 1024

# How much of one file is listed: characters of its lines, and notes.
_FILE_MAX = 256 * 1024
_NOTES_MAX = 1_000

# How many URLs of one file are checked with all readings: a check can take a millisecond.
_QUESTIONS_MAX = 100

# A line with a path, in the standard or in RFC 9309; and what a URL that it is about may look like.
_PATH_LINE = re.compile(r"[ \t]*(?:dis)?allow[ \t]*:[ \t]*(/[^#\s]*)", re.IGNORECASE | re.ASCII)

_MISPLACED = "Does not apply to the robots that it was meant for, because of a User-agent line above it."

# Severity, kind, message and hint.
Note: TypeAlias = tuple[str, str, str, str]

# Of an origin, how many requests each line has dropped: line 0 is that of a parser that gives no line.
Drops = Mapping[tuple[int, str], int]


# A file to show: its `origin` and `url`, the `robot`, the parsers (`readers`), the `lines`, and
# how many `more` are not listed; `applies`, the first and last lines of the records that apply to the robot;
# and by line number, as text from 1: `drops` counts requests, for every rule of these records, and for other
# lines that dropped some; `notes`; `differs` says where readings differ. `dropped_by` counts what no line is
# counted for.
Listing: TypeAlias = dict[str, Any]


def list_files(accesses: Iterable[Access], robot: str | bytes, drops: Mapping[str, Drops]) -> list[Listing]:
    """List the files of some accesses, those of most interest first, as far as the bounds allow.

    `drops` is by origin. This takes up to some seconds: run it in a thread.
    """
    listings: list[Listing] = []
    room = TEXT_MAX
    for access in islice((one for one in accesses if one.rules is not None), FILES_MAX):
        if min(len(access.snapshot.body), _FILE_MAX) > room:
            continue  # there would be no room for its listing
        assert access.rules is not None
        listing = _list_file(access, access.rules, robot, drops.get(str(access.snapshot.origin), {}))
        text = json.dumps(listing)
        size = len(text) + 5 * sum(map(text.count, "<>&"))  # which are escaped in the page
        if size <= room:
            listings.append(listing)
            room -= size
    return listings


def _list_file(access: Access, rules: Rules, robot: str | bytes, drops: Drops) -> Listing:
    snapshot = access.snapshot
    lines, more = _first_lines(to_lines(to_text(snapshot.body)))
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
        raw = find_record(read_records(snapshot.body, multivalue=robots.multivalue), to_name(robot))
        in_raw = {line for line, _ in raw.names} if raw else ()
        records = [record for record in robots.records if record.line in in_raw]
        listing["applies"] = [
            [one.line, max(line for line, _ in (*one.user_agents, *one.rules))] for one in records
        ]
        listing["drops"] = _drops_of(lines, records, drops)
        if isinstance(rules, AllRules):
            listing["differs"] = _differences(access, rules, robot, lines)
        obeyed = {line for line, count in listing["drops"].items() if count} | listing["differs"].keys()
        listing["notes"] = _notes_of(shown, obeyed)
    return listing


def _first_lines(lines: list[str]) -> tuple[list[str], int]:
    """Return the lines that are listed, and how many more there are."""
    room = _FILE_MAX
    for number, line in enumerate(lines):
        room -= len(line) + 10
        if room < 0:
            return lines[:number], len(lines) - number
    return (lines[:-1], 0) if lines[-1] == "" else (lines, 0)


def _drops_of(lines: list[str], applying: list[Record], drops: Drops) -> dict[str, int]:
    """Return the counts of the rules of the records that apply, and of other lines that dropped something.

    A file may have changed during the crawl: counts of lines that do not stand in it any more are left out.
    """
    counts = {line: 0 for record in applying for line, value in record.rules if value}
    for (line, text), count in drops.items():
        if line and line <= len(lines) and text in lines[line - 1]:
            counts[line] = counts.get(line, 0) + count
    return {str(line): count for line, count in sorted(counts.items())}


def _notes_of(robots: RobotsTxt, obeyed: Container[str]) -> dict[str, list[Note]]:
    """Return the notes on lines; lines that another reading obeys have an effect."""
    notes: dict[str, list[Note]] = {}
    findings = robots.findings
    errors = errors_of(findings)
    _, idle = rules_of(errors, robots.records)
    faulty = {finding.line for finding in errors}
    lost = [(line, MISPLACED, _MISPLACED, "") for line in idle if line not in faulty]
    found = [(one.line, one.kind, one.message, one.hint) for one in findings]
    for line, kind, meaning, hint in chain(found[:_NOTES_MAX], lost[:_NOTES_MAX]):
        severity, message = Severity.ERROR if kind == MISPLACED else KINDS[kind].severity, meaning
        if severity is Severity.ERROR and kind in HARMLESS:
            severity = Severity.INFO
        elif severity is Severity.ERROR and str(line) in obeyed:
            severity, message = Severity.WARNING, f"In the strict reading: {meaning}"
        notes.setdefault(str(line), []).append((severity.value, kind, message, hint))
    return notes


def _differences(
    access: Access, rules: AllRules, robot: str | bytes, lines: list[str]
) -> dict[str, list[str]]:
    """Ask all readings about a URL for each line with a path, and say where they differ from the first."""
    origin = access.snapshot.origin
    names = parser_names(rules)
    paths = [
        (number, match[1])
        for number, line in enumerate(lines, 1)
        if len(line) <= 500 and (match := _PATH_LINE.match(line))
    ]
    differs: dict[str, list[str]] = {}
    for number, path in paths[:_QUESTIONS_MAX]:
        target = percent_encode(path.removesuffix("$").replace("*", "x"))
        first, *others = [reading.forbids(origin, target, robot) for reading in rules.readings]
        verb = "allows" if first else "forbids"
        found = [name for name, forbids in zip(names[1:], others, strict=True) if forbids != first]
        if found:
            differs[str(number)] = [f"{name} {verb} {printable(target)}" for name in found]
    return differs
