"""Findings: report what in a robots.txt deviates from the standard, and how the parser reads it.

The table `KINDS` has the severity, the clause and the message of each kind. (``scrapy robots-lint`` adds
those of features, which are WARNINGs without a clause.) Findings are made from the records of `read_records`
and from the lines that it ignores. A decision needs none; the report looks at the start of each file.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from scrapy_norobots.standard.decision import printable
from scrapy_norobots.standard.hints import BAD_ESCAPE, hint_for, meant_field, meant_name, meant_rule
from scrapy_norobots.standard.lines import (
    BLANKS,
    DISALLOW,
    SURROGATE,
    encoding_of,
    is_html,
    numbered,
    to_text,
    to_values,
    with_line_feeds,
)
from scrapy_norobots.standard.names import robot_name
from scrapy_norobots.standard.records import DEFAULT_NAME, RawRecord, Record, read_records
from scrapy_norobots.standard.rules import WHOLE_URL, prefix_of
from scrapy_norobots.standard.urls import is_normal, is_robots_txt, percent_encode


class Severity(Enum):
    """How much a finding matters."""

    #: The line has no effect, or another one than its author wants.
    ERROR = "error"
    #: The line is read, but is not in the form that the standard defines.
    WARNING = "warning"
    #: The line uses a later extension, which the 1994 standard does not have.
    INFO = "info"


class Kind(NamedTuple):
    """What all findings of a kind have in common; `meaning` is a format string for the message."""

    severity: Severity
    clause: str
    meaning: str


_E, _W, _I = Severity.ERROR, Severity.WARNING, Severity.INFO

KINDS: dict[str, Kind] = {
    "byte-order-mark": Kind(_W, "F1", "The file starts with a byte order mark, which is ignored."),
    "byte-order-marks": Kind(
        _W,
        "F1",
        "The file starts with several byte order marks, which are ignored; most robots ignore only one.",
    ),
    "utf-16": Kind(_W, "F1", "The file is encoded as UTF-16, which many robots cannot read."),
    "utf-32": Kind(_W, "F1", "The file is encoded as UTF-32, which most robots cannot read."),
    "no-mark": Kind(
        _W, "F1", "The file is encoded as {0} without a byte order mark; most robots read no rules in it."
    ),
    "not-utf-8": Kind(
        _W, "F1", "The line has bytes that are not UTF-8; in a path, they are compared as %XX."
    ),
    "odd-line-break": Kind(
        _W,
        "F2",
        "The line has a character that some programs read as a line break; here it does not end the line.",
    ),
    "misspelt-field": Kind(_E, "F7", "The field is unknown, so the line is ignored; did you mean {0}?"),
    "unknown-field": Kind(_W, "F7", "The field is unknown, so the line is ignored."),
    "later-field": Kind(
        _I, "F7", "The field is a later extension of the 1994 standard, so the line is ignored."
    ),
    "nul": Kind(
        _E,
        "F8",
        "The line has NUL characters, so it is ignored; it may be in UTF-16, unlike the rest of the file.",
    ),
    "no-colon": Kind(_E, "F8", "The line is neither a field nor a comment, so it is ignored."),
    "html-page": Kind(_E, "F8", "The file is an HTML page, so it has no rules."),
    "no-blank-line": Kind(
        _W, "R2", "A blank line is missing above this line; the line starts a new record nevertheless."
    ),
    "no-disallow": Kind(_W, "R3", "The record has no Disallow line, so its robots may fetch everything."),
    "stray-disallow": Kind(
        _E, "R4", "The line is in no record (a blank line ends one), so it applies to no robot."
    ),
    "second-default": Kind(
        _W, "R5", "There is a record for '*' at line {0} already; the rules of both apply."
    ),
    "version-in-name": Kind(_W, "A2", "The name is compared without its version, as '{0}'."),
    "name-taken": Kind(
        _E, "A3", "An earlier record, at line {0}, applies to this robot, so this record does not."
    ),
    "empty-name": Kind(_E, "A5", "The line has no name, so it applies to no robot."),
    "star-in-name": Kind(
        _E, "A5", "A '*' within a name has no special meaning; only robots with a '*' in their name match."
    ),
    "several-names": Kind(_W, "A5", "The whole value is one robot's name, spaces included, and not a list."),
    "wildcard": Kind(_I, "U3", "'*' and '$' are ordinary characters here; patterns are a later extension."),
    "whole-url": Kind(_W, "U4", "A whole URL applies only to its own scheme, host and port."),
    "foreign-url": Kind(_E, "U4", "A URL with this scheme has no robots.txt, so the line is ignored."),
    "relative-path": Kind(_W, "U5", "The path does not start with '/'; it is read as if it did."),
    "unescaped": Kind(
        _W, "U6", "Spaces, control and non-ASCII characters are compared percent-encoded (%XX)."
    ),
    "bad-escape": Kind(_W, "U6", "A '%' without two hexadecimal digits after it is a literal '%'."),
    "several-paths": Kind(_E, "U6", "The whole value is one path, spaces included, and not a list."),
    "robots-txt": Kind(_E, "U7", "robots.txt itself may always be fetched, so it cannot be forbidden."),
}

_OF_A_FEATURE = Kind(_W, "", "")

_ODD_LINE_BREAK = re.compile("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_BLANK_INSIDE = re.compile(r"[ \t]")
_BLANK_AND_SLASH = re.compile(r"[ \t]/")

# Fields that RFC 9309, drafts and search engines added after 1994.
_LATER_FIELDS = frozenset(
    {
        "allow", "cache-delay", "clean-param", "content-signal", "content-usage", "crawl-delay", "host",
        "license", "nofollow", "noindex", "request-rate", "robot-version", "sitemap", "visit-time",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a robots.txt that does not follow the standard, and how it is read.

    - `kind`: a key of `scrapy_norobots.standard.KINDS`, such as ``"misspelt-field"``.
    - `line`: the number of the line, from 1.
    - `text`: the line as it stands in the file. It is not escaped.
    - `message`: a sentence that says how the line is read.
    - `hint`: what the author probably means, and how to write that; empty if this is not known.
    """

    kind: str
    line: int
    text: str
    message: str
    hint: str = ""

    @property
    def severity(self) -> Severity:
        """How much it matters, a `Severity`."""
        return KINDS.get(self.kind, _OF_A_FEATURE).severity

    @property
    def clause(self) -> str:
        """The clause of this project's reading of the standard, such as ``"F7"``."""
        return KINDS.get(self.kind, _OF_A_FEATURE).clause


# A finding without its text: kind, line number, and the values for the message and the hint.
_Found = tuple[str, int, tuple[object, ...]]


def find_all(body: bytes | str, *, multivalue: bool = False, kinds: Container[str] = KINDS) -> list[Finding]:
    """Return the findings of a file, sorted by line number; only those of some kinds.

    With `multivalue`, lines may have several values (D1). The time is proportional to the length of the file.
    """
    text = "\n" + with_line_feeds(to_text(body))
    lines = text.split("\n")  # lines are numbered from 1
    found = list(_of_encoding(body, text))
    if is_html(text):
        found.append(("html-page", 1, ()))
    else:
        records = list(read_records(body, multivalue=multivalue))
        rules = [
            (number, part)
            for number, value in numbered(DISALLOW, text, 0)
            for part in (to_values(value) if multivalue else (value,))
        ]
        if _ODD_LINE_BREAK.search(text):
            odd = (number for number, line in enumerate(lines) if _ODD_LINE_BREAK.search(line))
            found.extend(("odd-line-break", number, ()) for number in odd)
        found.extend(_of_lines(lines, records, rules))
        found.extend(_of_records(lines, records, rules))
        found.extend(_of_names(records))
    found.sort(key=lambda item: item[1])
    return [
        Finding(
            kind,
            number,
            lines[number],
            printable(KINDS[kind].meaning.format(*values)),
            hint_for(kind, lines[number], values),
        )
        for kind, number, values in found
        if kind in kinds
    ]


def _of_encoding(body: bytes | str, text: str) -> Iterator[_Found]:
    if isinstance(body, str):
        return
    encoding, is_marked = encoding_of(body)
    if encoding != "utf-8":
        name = encoding[: len("utf-16")]
        yield (name, 1, ()) if is_marked else ("no-mark", 1, (name.upper(),))
    elif is_marked:
        yield "byte-order-marks" if body.startswith(2 * codecs.BOM_UTF8) else "byte-order-mark", 1, ()
    if match := SURROGATE.search(text):
        yield "not-utf-8", text.count("\n", 0, match.start()), ()


def _of_lines(
    lines: list[str], records: Iterable[RawRecord], rules: Iterable[tuple[int, str]]
) -> Iterator[_Found]:
    read: set[int] = set()
    names = [name for record in records for name in record.names]
    for fields, look in ((names, _of_name), (rules, _of_path)):
        for number, value in fields:
            read.add(number)
            for kind, *values in look(value):
                yield kind, number, tuple(values)
    for number, line in enumerate(lines):
        if number not in read and (found := _of_other_field(line)):
            yield found[0], number, found[1:]


def _of_other_field(line: str) -> tuple[str, ...] | None:
    field, colon, _ = line.partition("#")[0].partition(":")
    name = field.strip(" \t").lower()
    if "\0" in field:
        return ("nul",)
    if not colon:
        return ("no-colon",) if name else None
    if name in _LATER_FIELDS:
        return ("later-field",)
    resembled = meant_field(name)
    return ("misspelt-field", resembled) if resembled else ("unknown-field",)


def _of_name(value: str) -> Iterator[tuple[str, ...]]:
    if value == "*":
        return
    name = robot_name(value)
    if not name:
        yield ("empty-name",)
        return
    if name != value:
        yield "version-in-name", name
    if "*" in name:
        yield ("star-in-name",)
    if _BLANK_INSIDE.search(name):
        yield ("several-names",)


def _of_path(value: str) -> Iterable[tuple[str, ...]]:
    is_pattern = "*" in value or value[-1:] == "$"
    if value[:1] == "/" and value != "/robots.txt" and is_normal(value):  # as most are
        return [("wildcard",)] if is_pattern else ()
    return _of_odd_path(value, is_pattern) if value else ()


def _of_odd_path(value: str, is_pattern: bool) -> Iterator[tuple[str, ...]]:
    prefix = prefix_of(value)
    if prefix is None:
        yield ("foreign-url",)
        return
    if WHOLE_URL.match(value):
        yield ("whole-url",)
    elif not value.startswith("/"):
        yield ("relative-path",)
    if is_pattern:
        yield ("wildcard",)
    if _BLANK_AND_SLASH.search(value):
        yield ("several-paths",)
    elif percent_encode(value) != value:
        yield ("unescaped",)
    if BAD_ESCAPE.search(value):
        yield ("bad-escape",)
    if is_robots_txt(prefix[1]):
        yield ("robots-txt",)


def _of_records(
    lines: list[str], records: Iterable[RawRecord], rules: Iterable[tuple[int, str]]
) -> Iterator[_Found]:
    default_line = last_line = 0
    all_rules = [line for line, _ in rules]
    first_lines: list[int] = []
    rules_in_records: set[int] = set()
    for record in records:
        first_line = record.names[0][0]
        first_lines.append(first_line)
        if last_line and all(line.strip(BLANKS) for line in lines[last_line + 1 : first_line]):
            yield "no-blank-line", first_line, ()
        last_name, below = record.texts[0]
        end = bisect_left(all_rules, last_name + below.count("\n") + 1)
        rule_lines = all_rules[bisect_left(all_rules, last_name) : end]
        last_line = rule_lines[-1] if rule_lines else record.names[-1][0]
        if not rule_lines:
            yield "no-disallow", first_line, ()
        rules_in_records.update(rule_lines)
        for number, name in record.names:
            if name == DEFAULT_NAME and default_line and default_line != first_line:
                yield "second-default", number, (default_line,)
            elif name == DEFAULT_NAME:
                default_line = first_line
    for number in sorted(set(all_rules) - rules_in_records):
        above = bisect_left(first_lines, number)
        yield "stray-disallow", number, (first_lines[above - 1] if above else 0,)


def _of_names(records: Iterable[RawRecord]) -> Iterator[_Found]:
    """Yield names to which an earlier record applies already, by the whole name or a part of it (A2, A3)."""
    taken: dict[str, int] = {}
    sizes: set[int] = set()
    for record in records:
        names = [(line, robot_name(name).casefold()) for line, name in record.names if name != DEFAULT_NAME]
        for number, name in names:
            earlier = [taken[part] for part in _parts(name, sizes) if part in taken]
            if earlier:
                yield "name-taken", number, (min(earlier), taken.get(name) == min(earlier))
        for _, name in names:
            taken.setdefault(name, record.names[0][0])
            sizes.add(len(name))


def _parts(name: str, sizes: Iterable[int], longest: int = 40) -> Iterable[str]:
    """Return the substrings of a name with some sizes; for a name longer than `longest`, only itself."""
    if len(name) > longest:
        return (name,)
    return (name[i : i + size] for size in sizes if size for i in range(len(name) - size + 1))


def rules_of(findings: Iterable[Finding], records: Iterable[Record]) -> tuple[list[int], list[int]]:
    """Return the line numbers of all lines meant as rules, and of those among them that have no effect.

    A rule has no effect if its line has an error; if all ``User-agent`` lines of its record have errors, so
    that no robot uses the record; or if a ``User-agent`` line above it in the record is misspelt, so that the
    rule applies to other robots than intended. ``Disallow:`` without a value is not a rule (U2).
    """
    faulty = {finding.line: finding.text for finding in findings if finding.severity is Severity.ERROR}
    idle = {line for line, text in faulty.items() if meant_rule(text)}
    unnamed = {line for line, text in faulty.items() if meant_name(text)}
    rules = set(idle)
    for record in records:
        own = record.rules
        lines = {rule.line for rule in own if rule.value}
        rules |= lines
        if all(user_agent.line in faulty for user_agent in record.user_agents):
            idle |= lines
        if own:
            span = range(record.line, own[-1].line)
            lost = min((line for line in span if line in unnamed), default=own[-1].line)
            idle |= {line for line in lines if line > lost}
    return sorted(rules), sorted(idle)
