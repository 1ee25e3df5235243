"""Hints: what the author of a line probably meant, and what to write instead."""

from __future__ import annotations

import re

import pytest

from scrapy_norobots.standard import RobotsTxt
from scrapy_norobots.standard.hints import hint_for, meant_name

# What is found: what was probably meant. Kinds that are not here have one hint, or none.
CASES: dict[str, tuple[str, str]] = {
    "misspelt-field": ("dissalow : /x y#z", "Write 'Disallow: /x y'."),
    "misspelt-field, name": ("User Agent:*", "Write 'User-agent: *'."),
    "no-colon": ("Disallow /x", "Write 'Disallow: /x'."),
    "no-colon, equals": ("user_agent = FooBot # or Bar", "Write 'User-agent: FooBot'."),
    "no-colon, alone": ("Disallow", "Write 'Disallow: '."),
    "no-colon, sentence": ("Disallowed for everybody", ""),
    "no-colon, text": ("hm", ""),
    "no-colon, the opposite": ("Allow /x", ""),
    "stray-disallow, no record": (
        "Disallow: /",
        "Write 'User-agent: *' above this line if it is meant for all robots.",
    ),
    "stray-disallow": (
        "User-agent: a\nDisallow: /\n\nDisallow: /b\n\nUser-agent: c\nDisallow: /",
        "Remove the blank line above if this line belongs to the record of line 1.",
    ),
    "second-default": (
        "User-agent: *\nDisallow: /a\n\nUser-agent: *\nDisallow: /b",
        "Move its rules into the record of line 1.",
    ),
    "version-in-name": ("User-agent: Tam/1.0 (x)\nDisallow: /", "Write 'User-agent: Tam'."),
    "name-taken, same": (
        "User-agent: Tam\nDisallow: /\n\nUser-agent: tam\nDisallow: /a",
        "Move its rules into the record of line 1.",
    ),
    "name-taken, part": (
        "User-agent: tam\nDisallow: /\n\nUser-agent: Tamarin\nDisallow: /a",
        "Move this record above the record of line 1.",
    ),
    "star-in-name": ("User-agent: tam*\nDisallow: /", "Write 'User-agent: tam'."),
    "star-in-name, within": ("User-agent: t*m\nDisallow: /", ""),
    "star-in-name, only": ("User-agent: **\nDisallow: /", ""),
    "several-names": (
        "User-agent: a, b;c  d\nDisallow: /",
        "Write one line for each: 'User-agent: a', 'User-agent: b', 'User-agent: c', 'User-agent: d'.",
    ),
    "several-names, many": (
        "User-agent: a b c d e f\nDisallow: /",
        (
            "Write one line for each: 'User-agent: a', 'User-agent: b', 'User-agent: c', 'User-agent: d', "
            "'User-agent: e', …."
        ),
    ),
    "wildcard, end": (
        "User-agent: *\nDisallow: /a*",
        "Write 'Disallow: /a': a rule applies to every path that starts with it.",
    ),
    "wildcard": ("User-agent: *\nDisallow: /*.gif$", ""),
    "whole-url": ("User-agent: *\nDisallow: http://garden.example:80/a?b", "Write 'Disallow: /a?b'."),
    "whole-url, no path": ("User-agent: *\nDisallow: http://garden.example", ""),
    "foreign-url": ("User-agent: *\nDisallow: ftp://garden.example/a", "Write 'Disallow: /a'."),
    "foreign-url, no host": ("User-agent: *\nDisallow: mailto:tam@garden.example", ""),
    "relative-path": ("User-agent: *\nDisallow: nest/ # eggs", "Write 'Disallow: /nest/'."),
    "unescaped": ("User-agent: *\nDisallow: /é b", "Write 'Disallow: /%C3%A9%20b'."),
    "bad-escape": ("User-agent: *\nDisallow: /50%/%41", "Write 'Disallow: /50%25/%41'."),
    "several-paths": (
        "User-agent: *\nDisallow: /a b, /c\t/d",
        "Write one line for each: 'Disallow: /a b', 'Disallow: /c', 'Disallow: /d'.",
    ),
    "several-paths, terminal": (
        "User-agent: *\nDisallow: /\x1b[2J /b",
        "Write one line for each: 'Disallow: /\\x1b[2J', 'Disallow: /b'.",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_hint_says_what_to_write(case: str) -> None:
    text, hint = CASES[case]
    kind = case.partition(",")[0]
    (finding,) = (finding for finding in RobotsTxt.parse(text.encode()).findings if finding.kind == kind)
    assert finding.hint == hint


def test_the_lines_of_a_hint_are_read_as_intended() -> None:
    asked = 0
    for text, hint in CASES.values():
        for line in re.findall(r"'((?:User-agent|Disallow): [^']*)'", hint):
            asked += 1
            alone = RobotsTxt.parse(
                f"User-agent: z\n{line}" if line.startswith("D") else f"{line}\nDisallow: /"
            )
            kinds = {finding.kind for finding in alone.findings} - {
                "unescaped",
                "bad-escape",
                "no-blank-line",
            }
            assert not kinds, (text, line)
    assert asked > 20


def test_a_line_without_a_colon_and_a_misspelt_one_may_be_meant_to_name_a_robot() -> None:
    assert all(map(meant_name, ("User-agent FooBot", "Useragent: FooBot")))


def test_a_long_line_gets_no_hint_and_a_long_comment_takes_none_away() -> None:
    def hint(line: str) -> str:
        return hint_for("misspelt-field", line, ("Disallow",))

    longest = "Dissallow: /".ljust(500, "x")
    assert hint(longest).startswith("Write 'Disallow: /xxx")
    assert hint(f"{longest}x") == ""
    assert hint(f"Dissallow: /a # {longest}") == "Write 'Disallow: /a'."
