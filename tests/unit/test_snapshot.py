"""Snapshots: plain facts of one download."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest

from scrapy_norobots.rules.snapshot import Snapshot
from tests.helpers.samples.snapshots import FOUND, LOST, ORIGIN


def test_a_snapshot_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        FOUND.status = 404  # type: ignore[misc]


@pytest.mark.parametrize(
    "change",
    [
        {"url": "http://town.example/"}, {"time": 0.0}, {"status": 404}, {"error": "x"}, {"headers": {}},
        {"body": b""}, {"failures": 1}, {"local_failure": True},
    ],
    ids=str,
)  # fmt: skip
def test_snapshots_of_other_facts_differ(change: dict[str, object]) -> None:
    assert replace(FOUND, **change) != FOUND  # type: ignore[arg-type]


@pytest.mark.parametrize("change", [{"exception": OSError("x")}, {"from_site": True}], ids=str)
def test_what_only_this_process_knows_makes_no_difference(change: dict[str, object]) -> None:
    """So a snapshot that comes from a store equals the one that was saved."""
    here = replace(LOST, **change)  # type: ignore[arg-type]
    assert here == LOST
    assert repr(here) == repr(LOST)


@pytest.mark.parametrize("value", ['"caf\xe9"', '"\u2028"', '"1\x1b"', '"1\r\nX: y"'])
def test_a_header_that_cannot_be_sent_back_as_it_came_makes_no_condition(value: str) -> None:
    date = "Thu, 30 Jun 1994 12:00:00 GMT"
    found = replace(FOUND, headers={"etag": value, "last-modified": date})
    assert found.conditions(found.url) == {"If-Modified-Since": date}
    assert replace(found, headers={"etag": value}).conditions(found.url) == {}


def test_a_new_snapshot_has_no_answer_and_shares_nothing() -> None:
    one, other = (Snapshot(ORIGIN, ORIGIN.robots_url, 0.0) for _ in range(2))
    assert (one.status, one.error, one.body, one.failures) == (None, "", b"", 0)
    assert not one.local_failure
    assert not one.from_site
    assert one.headers == {}
    assert one.headers is not other.headers
