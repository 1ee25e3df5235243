"""`Slots`: when a download slot can send one more request.

Requests that wait are registered in their slots, so that Scrapy's priority queue sees a busy slot and takes
requests of other slots first. Without the internal names of Scrapy, or with a downloader that does not say
when a request has moved, each request has the slot None, which can always send.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from scrapy_norobots.scrapy_api.internals import (
    least_delay,
    missing_internals,
    now,
    seconds_to_turn,
    slot_of,
)

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler


class Slots:
    """The download slots of one crawl, whose engine exists.

    `places_left` returns how many more requests the downloader may send; None if there is no limit, or none
    is known. Without it, the downloader does not say when a request has moved.
    """

    def __init__(self, crawler: Crawler, places_left: Callable[[], int | None] | None = None) -> None:
        self._crawler = crawler
        self._are_watched = places_left is not None
        self.places_left = places_left or (lambda: None)
        self.missing = missing_internals(crawler)
        self._waiting: Counter[Any] = Counter()

    def of(self, request: Request) -> Any | None:
        """Return the slot in which a request will be sent, unless a middleware changes that."""
        if self.missing or not self._are_watched:
            return None
        assert self._crawler.engine is not None  # it has made the scheduler
        try:
            return slot_of(self._crawler.engine.downloader, request, self._crawler.spider)
        except Exception:  # the URL or the slot in the meta is invalid, so Scrapy cannot send it
            return None

    def enter(self, slot: Any | None, request: Request) -> None:
        """Register a request that begins to wait."""
        if slot is not None:
            slot.active.add(request)
            self._waiting[slot] += 1

    def leave(self, slot: Any | None, request: Request) -> None:
        """Undo `enter`."""
        if slot is not None:
            slot.active.discard(request)
            self._waiting[slot] -= 1
            if not self._waiting[slot]:
                del self._waiting[slot]

    @staticmethod
    def has_delay(slot: Any | None) -> bool:
        """Return whether requests of a slot are sent at intervals."""
        return slot is not None and least_delay(slot) > 0

    def seconds(self, slot: Any | None, coming: int) -> float | None:
        """Return in how many seconds a slot can send a request; None: when one of its requests has moved.

        `coming` is the number of requests that are on their way to the slot. Scrapy varies a delay at random:
        the result is for the least delay that it may choose.
        """
        if slot is None:
            return 0.0
        delay = least_delay(slot)
        under_way = len(slot.active) - self._waiting[slot] + coming
        if not delay:
            return 0.0 if under_way < slot.concurrency else None
        sent = len(slot.transferring)
        if slot.queue or under_way > sent or sent >= slot.concurrency:
            return None
        return max(0.0, float(slot.lastseen) + delay - now()) or seconds_to_turn(slot)
