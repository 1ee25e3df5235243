"""Lines of decisions, dates, settings and names of parsers, as evidence files have them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_norobots.features.evidence.fields import (
    LINE_MAX,
    TEXT_MAX,
    Made,
    date_of,
    decision_line,
    time_of,
)
from tests.helpers.samples.made_up import TIME, TOWN, access, made


@pytest.mark.parametrize(
    ("time", "date"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (1_700_000_000.25, "2023-11-14T22:13:20.250000Z"),
        (1_700_000_000.000001, "2023-11-14T22:13:20.000001Z"),
        (5e9 + 1e-6, "2128-06-11T08:53:20.000001Z"),
        (1e11 + 0.123, "5138-11-16T09:46:40.123001Z"),
        (-1e300, "1970-01-01T00:00:00.000000Z"),
        (1e300, "9999-12-31T23:59:59.000000Z"),
        (float("inf"), "9999-12-31T23:59:59.000000Z"),
    ],
)
def test_a_date_has_microseconds_and_is_read_as_it_was_written(time: float, date: str) -> None:
    assert date_of(time) == date_of(time_of(date)) == date


def test_a_decision_is_not_older_than_its_file_whatever_a_clock_says() -> None:
    """A clock was set back, or that of another process which shares the store is ahead."""
    line = decision_line(made(f"{TOWN}/", access(when=TIME + 60), TIME))
    facts = json.loads(line)
    assert facts["time"] == facts["robots_time"]


ANY_TEXT = st.text(st.characters(codec=None))


@given(ANY_TEXT, ANY_TEXT | st.binary(), ANY_TEXT)
def test_any_url_and_robot_are_in_one_line(url: str, robot: str | bytes, requested: str) -> None:
    """A URL with credentials loses them."""
    for by in (None, access()):
        line = decision_line(Made(TIME, f"{TOWN}/{url}", robot, requested, by))
        assert line.count(b"\n") == 1
        facts = json.loads(line)
        assert facts["verdict"] in ("overridden", "allowed")
        assert facts["robot"] == (
            robot if isinstance(robot, str) else robot.decode("utf-8", "surrogateescape")
        )
        assert facts["url"] == f"{TOWN}/{url}"


@pytest.mark.parametrize("name", ["url", "requested", "robot"])
def test_a_long_text_is_cut(name: str) -> None:
    long = f"{TOWN}/" + 5_000_000 * "\U0001f600"
    texts = {"url": f"{TOWN}/", "requested": f"{TOWN}/", "robot": b"FooBot", name: long}
    line = decision_line(Made(TIME, access=access(), **texts))  # type: ignore[arg-type]
    facts = json.loads(line)
    assert facts[name] == long[:TEXT_MAX]
    assert len(line) < LINE_MAX
