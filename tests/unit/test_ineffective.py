"""What is found in a robots.txt: lines without effect, said in a sentence, and what concerns the robot."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from scrapy import Spider
from scrapy.robotstxt import ProtegoRobotParser, RobotParser
from scrapy.utils.test import get_crawler

from scrapy_norobots.features.report.listing import NOTHING, PATTERNS, TYPOS, Examined
from scrapy_norobots.rules.access import Judge, StatusPolicy
from scrapy_norobots.rules.parser import Reader
from scrapy_norobots.rules.snapshot import Freshness, Snapshot
from scrapy_norobots.standard import Origin

TOWN = Origin("http", "town.example", 80)


def examined(
    body: bytes,
    *,
    multivalue: bool = False,
    also: Sequence[type[RobotParser]] = (),
    status: int = 200,
    parser: type[RobotParser] | None = None,
) -> Examined:
    reader = Reader(get_crawler(Spider), parser, also, multivalue=multivalue)
    judge = Judge(StatusPolicy.of("koster1996"), Freshness(0, 0, 0, 0), reader.read)
    return Examined.of(judge.judge(Snapshot(TOWN, TOWN.robots_url, 0.0, status, body=body)), "FooBot/1.0")


def test_ineffective_lines_are_the_findings_of_severity_error() -> None:
    body = (
        b"User-agent: *\nDisallow: /a\nCrawl-delay: 3\nDisalow: /attic/\n\n"
        b"Disallow: /cellar/\nDisallow: /loft/\n"
    )
    found = examined(body)
    assert found.lines == 3
    assert found.kinds == "misspelt-field (line 4), stray-disallow (line 6 and 1 more)"
    assert found.text.partition(" (")[2].startswith("line 4, 'Disalow: /attic/': The field is unknown")
    assert "; line 6 and 1 more, 'Disallow: /cellar/': The line is in no record" in found.text
    assert examined(b"User-agent: *\nDisallow: /a\nAllow: /b\nSitemap: x\n") == NOTHING
    assert examined(b"") == NOTHING


@pytest.mark.parametrize("line_end", [b"\n", b"\r", b"\r\n"])
def test_only_the_start_of_a_long_file_is_searched(line_end: bytes) -> None:
    fine = line_end.join([b"User-agent: *", *([b"Disallow: /a"] * 6_000)])
    assert len(fine) > 2 * 32 * 1024
    assert examined(fine) == NOTHING  # no line was cut in two
    assert examined(fine + line_end + b"Disalow: /b" + line_end) == NOTHING
    found = examined(b"Disalow: /b" + line_end + fine)
    assert found.lines == 1


def test_the_start_of_a_file_in_utf_16_is_text() -> None:
    found = examined(("\ufeffDisalow: /b\n" + 50_000 * "# x\n").encode("utf-16-le"))
    assert found.kinds == "misspelt-field (line 1)"


def said(body: str, *, multivalue: bool = False) -> str:
    """Return what is said of a file, up to the details."""
    return examined(body.encode(), multivalue=multivalue).text.partition(" (")[0]


ALL = "so the strict reading allows pages that the site meant to forbid"
STRAY = "User-agent: *\nDisallow: /a\n\nDisallow: /b\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (STRAY, f"1 line, {ALL}"),
        ("Disallow: /b\n", f"1 line, {ALL}"),
        (STRAY + "hello\n", f"2 lines, {ALL}"),
        ("hello\n", "1 line"),
        ("hello\nDisallow: /\n", f"2 lines, {ALL}"),
        ("hello\nthere\n", "2 lines"),
        ("User-agent: *\nDisallow: /robots.txt\n", ""),
        ("User-agent: *\nDisallow: /robots.txt\nhello\n", "1 line"),
    ],
)
def test_the_sentence_counts_lines_and_says_what_follows(body: str, expected: str) -> None:
    assert said(body) == expected


def test_a_line_with_two_findings_is_one_line() -> None:
    found = examined(b"Disallow: ftp://x/\n")
    assert found.kinds == "foreign-url (line 1), stray-disallow (line 1)"
    assert found.lines == 1
    assert found.text.startswith("1 line, so ")


def test_several_values_in_a_line_have_their_effect_where_the_setting_allows_them() -> None:
    body = "User-agent: *\nDisallow: /a /b\n"
    assert said(body) == f"1 line, {ALL}"
    assert said(body, multivalue=True) == ""


def test_a_rule_that_a_line_above_takes_from_its_robots_has_no_effect_either() -> None:
    body = b"User-agent: a\nDisallow: /a\n\nUser-agent: A\nDisallow: /b\nDisallow: /c\n"
    found = examined(body)
    assert found.lines == 3
    assert found.kinds == "name-taken (line 4)"
    assert found.text.startswith("3 lines, so ")


# What concerns the robot


@pytest.mark.parametrize(
    ("body", "is_meant"),
    [
        ("User-agent: *\nDisalow: /b\n", True),
        ("User-agent: *\nDisallow: /a\n\nDisallow: /b\n", True),
        ("User-agent: foobot\nDisallow: /a\n\nUser-agent: FooBot\nDisallow: /b\n", True),
        ("User-agnet: foobot\nDisallow: /b\n", True),
        ("User-agent: Foo*\nDisallow: /b\n", True),
        ("User-agent: *\nDisallow: /a /b\n", True),
        ("Disallow: /b\nUser-agent: *\nDisallow: /a\n", True),
        ("User-agent: *\nDisalow: cellar\n", True),
        # For another robot, or forbidden by another line.
        ("User-agent: Rex\nDisalow: /b\n", False),
        ("User-agent: Rex\nDisallow: /a\n\nUser-agent: Rex\nDisallow: /b\n", False),
        ("User-agent: foobot\nDisallow: /a\n\nUser-agent: *\nDisalow: /b\n", False),
        ("User-agent: *\nDisallow: /\nDisalow: /b\n", False),
        ("User-agent: *\nDisallow: /a\nhello\n", False),
        ("User-agent: *\nDisallow: /robots.txt\n", False),
    ],
)
def test_a_mistake_matters_if_it_may_change_a_decision_for_the_robot(body: str, is_meant: bool) -> None:
    found = examined(body.encode())
    assert (TYPOS in found.marks) is is_meant


@pytest.mark.parametrize(
    ("body", "is_pattern"),
    [
        ("User-agent: *\nDisallow: /*.pdf\n", True),
        ("User-agent: *\n\tdisallow :/a$ # the page alone\n", True),
        ("User-agent: *\nDisallow: /a # *\nAllow: /*\n", False),
        ("User-agent: Rex\nDisallow: /*\n", False),
        ("User-agent: foobot\nDisallow: /\n\nUser-agent: *\nDisallow: /*\n", False),
        ("Disallow: /*\n", False),
    ],
)
def test_a_file_is_marked_if_rules_for_the_robot_have_patterns(body: str, is_pattern: bool) -> None:
    assert (PATTERNS in examined(body.encode()).marks) is is_pattern
    assert PATTERNS not in examined(body.encode(), also=[ProtegoRobotParser]).marks
