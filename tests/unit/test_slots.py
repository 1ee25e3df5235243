"""When a download slot can send one more request."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.core.downloader import Slot
from twisted.internet.defer import Deferred

from scrapy_norobots.scrapy_api.internals import now, set_crawl_delay
from scrapy_norobots.waiting.slots import Slots

DELAY = 100.0


@pytest.fixture
def slots() -> Slots:
    crawler: Any = SimpleNamespace(engine=None)
    return Slots(crawler)


def page() -> Request:
    return Request("http://town.example/")


def slot_with(concurrency: int, delay: float = 0.0, under_way: int = 0) -> Any:
    """Return a slot that is sending some requests; a `Crawl-delay` is not varied at random, and is over."""
    slot: Any = Slot(concurrency, 0.0, 0)
    set_crawl_delay(slot, delay)
    slot.lastseen = now() - delay - 1
    for request in [page() for _ in range(under_way)]:
        slot.active.add(request)
        slot.transferring.add(request)
    return slot


def test_a_slot_without_a_delay_can_send_up_to_its_concurrency(slots: Slots) -> None:
    assert slots.seconds(slot_with(2, under_way=1), 0) == 0
    assert slots.seconds(slot_with(2, under_way=2), 0) is None


def test_requests_on_their_way_to_a_slot_count(slots: Slots) -> None:
    assert slots.seconds(slot_with(3, under_way=1), 1) == 0
    assert slots.seconds(slot_with(3, under_way=1), 2) is None
    assert slots.seconds(slot_with(3, DELAY), 0) == 0
    assert slots.seconds(slot_with(3, DELAY), 1) is None


def test_a_slot_with_a_delay_can_send_when_it_is_over(slots: Slots) -> None:
    slot = slot_with(8, DELAY, under_way=1)
    assert slots.seconds(slot, 0) == 0  # it has sent nothing lately
    slot.lastseen = now() - DELAY / 4
    assert slots.seconds(slot, 0) == pytest.approx(DELAY * 3 / 4, abs=5)
    slot.lastseen = now() - DELAY - 1
    assert slots.seconds(slot, 0) == 0


def test_the_delay_of_the_setting_counts_like_a_crawl_delay(slots: Slots) -> None:
    slot: Any = Slot(8, DELAY, 0)
    slot.lastseen = now()
    seconds = slots.seconds(slot, 0)
    assert seconds is not None
    assert DELAY / 2 - 5 < seconds <= DELAY  # an old Scrapy does not show whether it varies the delay
    assert slots.has_delay(slot)


def test_a_slot_with_a_delay_can_send_up_to_its_concurrency(slots: Slots) -> None:
    assert slots.seconds(slot_with(2, DELAY, under_way=1), 0) == 0
    assert slots.seconds(slot_with(2, DELAY, under_way=2), 0) is None


def test_a_slot_with_a_delay_and_a_queue_has_to_move_first(slots: Slots) -> None:
    slot = slot_with(8, DELAY)
    slot.queue.append((page(), Deferred()))
    assert slots.seconds(slot, 0) is None


def test_a_request_that_has_not_reached_its_queue_holds_a_slot_with_a_delay(slots: Slots) -> None:
    slot = slot_with(8, DELAY)
    slot.active.add(page())
    assert slots.seconds(slot, 0) is None


@pytest.mark.parametrize("delay", [0.0, DELAY], ids=["without a delay", "with a delay"])
def test_requests_that_wait_are_seen_by_the_queue_but_hold_nothing(slots: Slots, delay: float) -> None:
    slot, waiting = slot_with(1, delay), [page(), page()]
    for request in waiting:
        slots.enter(slot, request)
    assert slot.active == set(waiting)
    assert slots.seconds(slot, 0) == 0
    slots.leave(slot, waiting[0])
    assert slot.active == {waiting[1]}
    assert slots.seconds(slot, 0) == 0
    slots.leave(slot, waiting[1])
    assert not slot.active
    assert not slots._waiting
    slot.active.add(page())
    assert slots.seconds(slot, 0) is None


def test_without_slots_each_request_can_be_sent(slots: Slots) -> None:
    assert slots.missing
    assert slots.of(page()) is None
    slots.enter(None, page())
    assert slots.seconds(None, 1000) == 0
    slots.leave(None, page())
    assert not slots.has_delay(None)


def test_a_crawl_delay_is_a_delay(slots: Slots) -> None:
    with_delay, without = slot_with(8, DELAY), slot_with(8)
    assert slots.has_delay(with_delay)
    assert not slots.has_delay(without)
