"""Decisions as lines of JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_norobots.features.evidence.decisions import DecisionLines, Made
from scrapy_norobots.features.evidence.fields import LINE_MAX, TEXT_MAX
from tests.helpers.samples.made_up import TIME, TOWN, access, made


def test_decisions_of_a_crawl_are_a_line_each() -> None:
    verdict, line = DecisionLines(dry_run=False).line(made(f"{TOWN}/back/", access()))
    assert verdict == "forbidden"
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:21.000000Z",
        "url": "http://town.example/back/",
        "verdict": "forbidden",
        "robot": "FooBot",
        "origin": "http://town.example",
        "reason": "rule",
        "line": 2,
        "rule": "/back/",
        "robots_digest": "sha256:d07ffccdc3e50562aa4b05075f73bcb4f92053afe8742e7deecd4ffa651a4209",
        "robots_time": "2023-11-14T22:13:20.000000Z",
        "parser": "StrictRobotParser",
    }


def test_a_decision_is_not_older_than_its_file_whatever_a_clock_says() -> None:
    """A clock was set back, or that of another process which shares the store is ahead."""
    _, line = DecisionLines(dry_run=False).line(made(f"{TOWN}/", access(when=TIME + 60), TIME))
    facts = json.loads(line)
    assert facts["time"] == facts["robots_time"]


def test_only_so_many_judgements_are_remembered() -> None:
    lines = DecisionLines(dry_run=False, remembered=100)
    for number in range(250):
        lines.line(made("http://town.example/", access(when=TIME + number)))
    assert len(lines._judgements) == 50


ANY_TEXT = st.text(st.characters(codec=None))


@given(ANY_TEXT, ANY_TEXT | st.binary(), ANY_TEXT)
def test_any_url_and_robot_are_in_one_line(url: str, robot: str | bytes, requested: str) -> None:
    """A URL with credentials loses them."""
    for by in (None, access()):
        _, line = DecisionLines(dry_run=False).line(Made(TIME, f"{TOWN}/{url}", robot, requested, by))
        assert line.count(b"\n") == 1
        facts = json.loads(line)
        assert facts["verdict"] in ("overridden", "allowed")
        assert facts["robot"] == (
            robot if isinstance(robot, str) else robot.decode("utf-8", "surrogateescape")
        )
        assert facts["url"] == f"{TOWN}/{url}"


@pytest.mark.parametrize("name", ["url", "requested", "robot"])
def test_a_long_text_is_cut_and_the_line_says_so(name: str) -> None:
    long = f"{TOWN}/" + 5_000_000 * "\U0001f600"
    texts = {"url": f"{TOWN}/", "requested": f"{TOWN}/", "robot": b"FooBot", name: long}
    _, line = DecisionLines(dry_run=False).line(Made(TIME, access=access(), **texts))  # type: ignore[arg-type]
    facts = json.loads(line)
    assert facts["cut"] is True
    assert facts[name] == long[:TEXT_MAX]
    assert len(line) < LINE_MAX
