"""`delay_values`: the delay that a file asks of a robot, and how much of it is kept."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_norobots.rules.delay_values import CrawlDelay, largest

FILE = """\
User-agent: FooBot
Crawl-delay: 2.5
Disallow: /a

User-agent: BarBot
Crawl-delay: soon # or later
Disallow:

User-agent: *
crawl delay 10
"""


def value(text: str | bytes, robot: str | bytes = "FooBot") -> Any:
    return CrawlDelay(text if isinstance(text, bytes) else text.encode()).value(robot)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], None),
        ([None], None),
        ([0], 0.0),
        ([2, None, 7.5, "3"], 7.5),
        ([86_400], 86_400.0),
        ([-1], None),
        ([math.nan], None),
        (["inf", 4], 4.0),
        ([10**400], None),
        (["so\non"], None),
        ([RuntimeError("no such luck")], None),
    ],
)
def test_the_largest_valid_value_counts(values: list[object], expected: float | None) -> None:
    assert largest(values) == expected


def test_other_records_end_no_group_and_all_groups_of_a_robot_count() -> None:
    text = "User-agent: FooBot\n\nCrawl-delay: 2\nUser-agent: *\nDisallow: /a\nCrawl-delay: 3\n"
    assert value(text) == value(text, "BarBot") == 3.0
    assert value(f"{text}User-agent: foobot\nCrawl-delay: 4\n") == 4.0
    assert value(f"{text}User-agent: Foo\nCrawl-delay: 4\n") == 3.0


@pytest.mark.parametrize(
    ("robot", "expected"),
    [
        ("FooBot", 2.5),
        (b"Mozilla/5.0 (compatible; FooBot/1.0; \xff)", 2.5),
        ("BarBot", None),
        ("QuxBot", 10.0),
    ],
)
def test_each_robot_has_the_delay_of_its_own_record(robot: str | bytes, expected: object) -> None:
    for text in (FILE, FILE.replace("\n", "\r"), FILE.replace("\n", "\r\n")):
        assert value(text, robot) == expected
    for encoding in ("utf-16", "utf-16-be", "utf-32", "utf-32-le"):
        assert value(FILE.encode(encoding), robot) == expected
    assert CrawlDelay(FILE).value(robot) == expected


@pytest.mark.parametrize("line", ["soon", "-1", "nan", "inf", "1,5", "5 seconds"])
def test_a_malformed_value_is_ignored(line: str) -> None:
    found = value(f"User-agent: FooBot\nCrawl-delay: {line}\n")
    assert largest([found]) is None
    assert value(f"User-agent: FooBot\nCrawl-delay: 3\nCrawl-delay: {line}\n") == 3.0


def test_values_are_remembered_for_a_limited_number_of_robots() -> None:
    delay = CrawlDelay(FILE.encode())
    assert not delay.is_ready("FooBot")
    assert delay.value("FooBot") == 2.5
    assert delay.is_ready("FooBot")
    assert not delay.is_ready("BarBot")
    for number in range(100):
        assert delay.value(f"QuxBot{number}") == 10.0
    assert len(delay._values) <= 64


WORDS = "User-agent: *\n|User-agent:FooBot|Crawl-delay: |crawl delay"
WORDS += "|\n|\r|\n\n|#| |\t|:|10|1e999|-1|nan|inf|0x1|1_0|٣|²|."
PIECES = st.sampled_from([*(word.encode() for word in WORDS.split("|")), b"\xff\xfe", b"\0", b"9" * 400])


@given(st.lists(st.one_of(PIECES, st.binary(max_size=5))).map(b"".join), st.binary(max_size=20))
def test_no_file_raises(noise: bytes, robot: bytes) -> None:
    for body in (noise, b"User-agent: *\nCrawl-delay: " + noise + b"\n" + noise):
        assert (largest([value(body, robot)]) or 0) >= 0


@given(
    st.lists(st.one_of(st.none(), st.floats(), st.integers(), st.text(), st.binary(), st.complex_numbers()))
)
def test_no_values_of_parsers_raise(values: list[object]) -> None:
    found = largest(values)
    assert found is None or (math.isfinite(found) and found >= 0)
    assert largest([*values, 5]) == max(found or 0, 5)
