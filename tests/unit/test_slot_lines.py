"""`Lines` of requests that may go on: which of them goes, and when."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.core.downloader import Slot

from scrapy_norobots.scrapy_api.internals import now
from scrapy_norobots.waiting.slot_lines import Lines, Parked
from scrapy_norobots.waiting.slots import Slots

DELAY = 100.0


def lines_of(places: int, coming_soon: int = 0) -> Lines:
    crawler: Any = SimpleNamespace(engine=None)
    return Lines(Slots(crawler), places, lambda: coming_soon)


def slot_that_rests(rest: float) -> Any:
    """Return a slot that sent its last request some seconds ago. Scrapy varies its delay at random."""
    slot: Any = Slot(8, DELAY, 0.5)
    slot.lastseen = now() - rest
    return slot


def parked(slot: Any | None, number: int = 1, *, is_held_up: bool = True) -> Parked:
    request = Request(f"http://town.example/{number}")
    return Parked(request, None, slot, number, 0.0, is_held_up=is_held_up)


def test_a_request_goes_when_its_slot_may_send_it() -> None:
    lines, slow, fast = lines_of(places=3), slot_that_rests(DELAY / 4), slot_that_rests(DELAY * 3 / 4)
    lines.add(parked(slow, 1), has_place=False)
    lines.add(one := parked(fast, 2), has_place=False)
    assert lines.first(3) is one
    lines.take(one)
    assert lines.first(2) is None


@pytest.mark.parametrize("coming_soon", [0, 1], ids=["in line", "coming soon"])
def test_while_places_are_rare_a_request_goes_only_after_the_usual_delay(coming_soon: int) -> None:
    lines = lines_of(places=2, coming_soon=coming_soon)
    for number in range(2 - coming_soon):
        lines.add(parked(slot_that_rests(DELAY * 3 / 4), number), has_place=False)
    assert lines.first(2) is None
    lines.add(one := parked(slot_that_rests(DELAY + 1), 3), has_place=False)
    assert lines.first(2) is one


def test_a_request_that_only_joined_takes_a_place_that_is_left_over() -> None:
    lines, slot = lines_of(places=2), slot_that_rests(0)
    lines.add(one := parked(slot, is_held_up=False), has_place=False)
    assert lines.first(1) is one
    lines.add(other := parked(slot_that_rests(0), 2), has_place=False)
    assert lines.first(1) is None  # the other one needs it soon
    assert lines.first(2) is one
    lines.add(parked(slot, 3), has_place=False)  # and its line has a request that robots.txt made wait
    assert lines.first(2) is None
    assert set(lines.clear()) > {one, other}


def test_without_slots_nothing_waits_for_requests_that_have_gone() -> None:
    lines = lines_of(places=1)
    for number in range(20):
        lines.add(one := parked(None, number), has_place=False)
        assert lines.first() is one
        lines.take(one)
    assert lines.is_idle
