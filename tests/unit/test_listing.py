"""A robots.txt as its reader saw it: marks, counts, bounds."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import MagicMock

import pytest
from scrapy.robotstxt import ProtegoRobotParser, RobotParser
from scrapy.settings import Settings

from scrapy_norobots.features.report import listing
from scrapy_norobots.features.report.listing import (
    PATTERNS,
    TYPOS,
    Drops,
    Examined,
    Listing,
    list_files,
)
from scrapy_norobots.features.report.page import _json_block
from scrapy_norobots.rules.access import Access, Judge, StatusPolicy
from scrapy_norobots.rules.parser import StrictRobotParser, reader_of
from scrapy_norobots.rules.snapshot import Freshness, Snapshot
from scrapy_norobots.standard import Origin
from tests.helpers.worlds import nasty

TOWN = Origin("http", "town.example", 80)
FILE = b"""\
User-agent: foobot
User-agent: Rex
Disallow: /staff/
# a comment
Disallow: /attic/

User-agent: *
Disallow: /

Disalow: /cellar/
User-agnet: foobot
Disallow: /dungeon/
"""


ALSO = [ProtegoRobotParser]


def access(
    body: bytes, origin: Origin = TOWN, *, also: Sequence[type[RobotParser]] = (), multivalue: bool = False
) -> Access:
    crawler = MagicMock(settings=Settings(), spider=None)
    read = reader_of(crawler, StrictRobotParser, also, multivalue=multivalue)
    judge = Judge(StatusPolicy.of("koster1996"), Freshness(600, 86_400, 60, 7 * 86_400), read)
    return judge.judge(Snapshot(origin, origin.robots_url, 0.0, 200, body=body))


def examined(body: bytes, **options: Any) -> Examined:
    return Examined.of(access(body, **options), "FooBot/1.0")


def listed(body: bytes, drops: Drops | None = None, **options: Any) -> Listing:
    (made,) = list_files([access(body, **options)], "FooBot/1", {str(TOWN): drops or {}})
    return made


def test_all_parts_of_the_default_record_apply() -> None:
    body = b"User-agent: *\nDisallow: /a\n\nUser-agent: Rex\nDisallow: /b\n\nUser-agent: *\nDisallow: /c\n"
    made = listed(body)
    assert made["applies"] == [[1, 2], [7, 8]]
    assert made["drops"] == {"2": 0, "8": 0}


def test_a_line_that_a_misspelt_name_takes_from_its_robot_has_a_note() -> None:
    notes = listed(b"User-agent: Rex\nUser-agnet: foobot\nDisallow: /a\n")["notes"]
    assert notes["3"] == [("error", "misplaced-rule", listing.MISPLACED_MEANING, "")]


def test_counts_of_lines_that_a_newer_file_does_not_have_are_left_out() -> None:
    """And lines of other records have their counts where they belong, whichever reading obeys them."""
    made = listed(FILE, {(3, "/old/"): 7, (8, "/"): 4, (99, "/"): 1, (12, "/dungeon/"): 2})
    assert made["drops"] == {"3": 0, "5": 0, "8": 4, "12": 2}


def test_a_line_that_another_reading_obeys_has_an_effect() -> None:
    body = b"User-agent: *\nDisallow: /a\n\nDisallow: /b\n"
    for made in (listed(body, also=ALSO), listed(body, {(4, "/b"): 1})):
        ((severity, kind, message, _),) = made["notes"]["4"]
        assert (severity, kind) == ("warning", "stray-disallow")
        assert message.startswith("In the strict reading: The line is in no record")
    assert listed(body)["notes"]["4"][0][0] == "error"


def test_readings_that_differ_say_where() -> None:
    body = b"User-agent: *\nDisallow: /staff/\nAllow: /staff/open # yes\nDisallow: /*.gif$\nDisallow: /a\n"
    assert listed(body, also=ALSO)["differs"] == {
        "3": ["ProtegoRobotParser allows /staff/open"],
        "4": ["ProtegoRobotParser forbids /x.gif"],
    }
    assert listed(body)["differs"] == {}
    assert listed(b"User-agent: *\nAllow: /caf\xe9\n", also=ALSO)["differs"] == {}


def test_readings_are_asked_a_bounded_number_of_times() -> None:
    body = b"User-agent: *\n" + b"Allow: /a\n" * 500 + b"Disallow: /\n"
    assert len(listed(body, also=ALSO)["differs"]) == listing._QUESTIONS_MAX


def origin(number: int) -> Origin:
    return TOWN._replace(host=f"town{number}.example")


def test_no_more_files_are_listed_than_allowed() -> None:
    made = list_files((access(FILE, origin(number)) for number in range(300)), "FooBot", {})
    assert [one["origin"] for one in made] == [f"http://town{number}.example" for number in range(200)]


@pytest.mark.parametrize(
    "line", [b"Disallow: /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", b"<<<<>>>>&&&&\n", b"\xff\xfe\n", b"\n"]
)
def test_all_files_together_have_a_bounded_size_in_the_page(line: bytes) -> None:
    same = access(b"User-agent: *\n" + line * (200_000 // len(line)))
    many = (replace(same, snapshot=replace(same.snapshot, origin=origin(number))) for number in range(30))
    made = list_files(many, "FooBot", {})
    assert made
    assert len(_json_block(made)) <= listing.TEXT_MAX + 1_000
    assert all(len(one["lines"]) <= listing._LINES_MAX for one in made)


def test_a_long_file_is_cut_and_says_so() -> None:
    body = b"User-agent: *\n" + b"Disallow: /some/long/path/of/a/town\n" * 20_000
    made = listed(body)
    assert made["more"] > 0
    assert len(made["lines"]) + made["more"] == 20_001


@pytest.mark.parametrize("seed", range(50))
def test_any_file_can_be_listed(seed: int) -> None:
    body = nasty.body(random.Random(seed), ["*", "foobot", "Rex"], ["/a", "/b/c", "/%7e", "/*x$"])
    made = listed(body, also=ALSO)
    assert json.dumps(made).isascii()
    assert all(line.isprintable() for line in made["lines"])
    assert all(1 <= int(line) <= max(len(made["lines"]), 1) for line in made["notes"])
    idle = sum(any("error" in note for note in notes) for notes in listed(body)["notes"].values())
    assert idle == examined(body).lines


# `Examined`: lines without effect, said in a sentence, and what concerns the robot.


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
    assert examined(b"User-agent: *\nDisallow: /a\nAllow: /b\nSitemap: x\n") == Examined()
    assert examined(b"") == Examined()


@pytest.mark.parametrize("line_end", [b"\n", b"\r", b"\r\n"])
def test_only_the_start_of_a_long_file_is_searched(line_end: bytes) -> None:
    fine = line_end.join([b"User-agent: *", *([b"Disallow: /a"] * 6_000)])
    assert len(fine) > 2 * 32 * 1024
    assert examined(fine) == Examined()  # no line was cut in two
    assert examined(fine + line_end + b"Disalow: /b" + line_end) == Examined()
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
        ("User-agent: foobot\nUser-agent: Rex\nDisalow: /b\n", True),
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
    assert PATTERNS not in examined(body.encode(), also=ALSO).marks
