"""Snapshots: plain facts of one download."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.helpers.samples.snapshots import FOUND, LOST


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
