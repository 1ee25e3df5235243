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
    assert lines.clear() == []


def test_without_slots_nothing_waits_for_requests_that_have_gone() -> None:
    lines = lines_of(places=1)
    for number in range(20):
        lines.add(one := parked(None, number), has_place=False)
        assert lines.first() is one
        lines.take(one)
    assert lines.is_idle


def test_a_request_with_a_high_priority_moves_its_line_to_the_front() -> None:
    lines, first, second = lines_of(places=8), slot_that_rests(DELAY * 2), slot_that_rests(DELAY * 2)
    lines.add(one := parked(first, 1), has_place=False)
    lines.add(parked(second, 2), has_place=False)
    assert lines.first() is one
    urgent = parked(second, 3)
    urgent.request.priority = 5
    lines.add(urgent, has_place=False)
    assert lines.first() is urgent


def test_after_the_requests_that_robots_txt_made_wait_the_others_take_free_places() -> None:
    """Their slot cannot send yet, so they wait in the downloader, as they would without the plugin."""
    lines, slot = lines_of(places=2), slot_that_rests(DELAY + 1)
    lines.add(one := parked(slot, 1), has_place=False)
    lines.add(joined := parked(slot, 2, is_held_up=False), has_place=False)
    assert lines.first(2) is one
    lines.take(one)
    slot.lastseen = now()
    lines.moved(one.request, slot)
    assert lines.first(2) is joined


def test_a_slot_that_can_send_again_is_looked_at_again() -> None:
    lines, slot = lines_of(places=8), Slot(1, 0.0, 0)
    for number in range(2):
        lines.add(parked(slot, number), has_place=False)
    one = lines.first()
    assert one is not None
    lines.take(one)
    slot.active.add(one.request)
    assert lines.first() is None
    slot.active.clear()
    lines.moved(one.request, slot)
    assert lines.first() is not None
