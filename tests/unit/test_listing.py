"""A robots.txt as its reader saw it: marks, counts, bounds."""

from __future__ import annotations

import json
import random
from unittest.mock import MagicMock

import pytest
from scrapy.robotstxt import ProtegoRobotParser
from scrapy.settings import Settings

from scrapy_norobots.features.report import listing
from scrapy_norobots.features.report.listing import Drops, Examined, Listing, list_files
from scrapy_norobots.features.report.page import _json_block
from scrapy_norobots.rules.access import Access, Judge, StatusPolicy
from scrapy_norobots.rules.parser import Reader
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


def access(
    body: bytes, origin: Origin = TOWN, *, parser: type[ProtegoRobotParser] | None = None, also: bool = False
) -> Access:
    crawler = MagicMock(settings=Settings(), spider=None)
    reader = Reader(crawler, parser, [ProtegoRobotParser] if also else [], multivalue=False)
    judge = Judge(StatusPolicy.of("koster1996"), Freshness(600, 86_400, 60, 7 * 86_400), reader.read)
    return judge.judge(Snapshot(origin, origin.robots_url, 0.0, 200, body=body))


def listed(body: bytes, drops: Drops | None = None, robot: str = "FooBot/1", **options: bool) -> Listing:
    (made,) = list_files([access(body, **options)], robot, {str(TOWN): drops or {}})  # type: ignore[arg-type]
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
    for made in (listed(body, also=True), listed(body, {(4, "/b"): 1})):
        ((severity, kind, message, _),) = made["notes"]["4"]
        assert (severity, kind) == ("warning", "stray-disallow")
        assert message.startswith("In the strict reading: The line is in no record")
    assert listed(body)["notes"]["4"][0][0] == "error"


def test_readings_that_differ_say_where() -> None:
    body = b"User-agent: *\nDisallow: /staff/\nAllow: /staff/open # yes\nDisallow: /*.gif$\nDisallow: /a\n"
    assert listed(body, also=True)["differs"] == {
        "3": ["ProtegoRobotParser allows /staff/open"],
        "4": ["ProtegoRobotParser forbids /x.gif"],
    }
    assert listed(body)["differs"] == {}
    assert listed(b"User-agent: *\nAllow: /caf\xe9\n", also=True)["differs"] == {}


def test_readings_are_asked_a_bounded_number_of_times() -> None:
    body = b"User-agent: *\n" + b"Allow: /a\n" * 500 + b"Disallow: /\n"
    assert len(listed(body, also=True)["differs"]) == listing._QUESTIONS_MAX


def origin(number: int) -> Origin:
    return TOWN._replace(host=f"town{number}.example")


def test_no_more_files_are_listed_than_allowed() -> None:
    made = list_files((access(FILE, origin(number)) for number in range(300)), "FooBot", {})
    assert [one["origin"] for one in made] == [f"http://town{number}.example" for number in range(200)]


@pytest.mark.parametrize(
    "line", [b"Disallow: /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", b"<<<<>>>>&&&&\n", b"\xff\xfe\n", b"\n"]
)
def test_all_files_together_have_a_bounded_size_in_the_page(line: bytes) -> None:
    body = b"User-agent: *\n" + line * (200_000 // len(line))
    made = list_files((access(body, origin(number)) for number in range(30)), "FooBot", {})
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
    some = random.Random(seed)
    body = nasty._encoded(some, nasty._text(some, ["*", "foobot", "Rex"], ["/a", "/b/c", "/%7e", "/*x$"]))
    if isinstance(body, str):
        body = body.encode("utf-8", "surrogateescape")
    made = listed(body, also=True)
    assert json.dumps(made).isascii()
    assert all(line.isprintable() for line in made["lines"])
    assert all(1 <= int(line) <= max(len(made["lines"]), 1) for line in made["notes"])
    idle = sum(any("error" in note for note in notes) for notes in listed(body)["notes"].values())
    assert idle == Examined.of(access(body), "FooBot").lines
