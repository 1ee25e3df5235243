"""Requests that keep their place for a moment."""

from __future__ import annotations

from time import monotonic

from scrapy import Request

from scrapy_norobots.waiting.recent import PATIENCE, Recent
from scrapy_norobots.waiting.slot_lines import Parked


def parked(number: int, since: float) -> Parked:
    return Parked(Request(f"http://town.example/{number}"), None, None, number, since)


def test_places_are_counted_until_a_request_is_forgotten() -> None:
    recent = Recent()
    first, second = parked(1, monotonic()), parked(2, monotonic())
    recent.add(first, has_place=True)
    recent.add(second, has_place=False)
    assert (len(recent), recent.places, recent.without_place) == (2, 1, 1)
    assert recent.has_place(first)
    assert not recent.has_place(second)
    recent.forget(first)
    recent.forget(first)
    assert (len(recent), recent.places, recent.without_place) == (1, 0, 1)


def test_old_requests_are_forgotten_in_their_order() -> None:
    recent = Recent()
    old, new = parked(1, monotonic() - PATIENCE), parked(2, monotonic() + 60)
    recent.add(old, has_place=True)
    recent.add(new, has_place=True)
    assert recent.ends == old.since + PATIENCE
    assert not recent.has_place(old)
    assert recent.has_place(new)
    assert recent.ends == new.since + PATIENCE
    recent.forget(new)
    recent.forget_old()
    assert not recent
    assert Recent().ends is None
