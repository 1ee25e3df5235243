"""`Slots`: when a download slot can send one more request.

Requests that wait are registered in their slots, so that Scrapy's priority queue sees a busy slot and takes
requests of other slots first. Without the internal names of Scrapy, or with a downloader that does not say
when a request has moved, each request has the slot None, which can always send.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from scrapy_norobots.scrapy_api.internals import (
    crawl_delay_of,
    least_delay,
    missing_internals,
    now,
    seconds_to_turn,
    slot_of,
    usual_delay,
)

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler


class Slots:
    """The download slots of one crawl, whose engine exists; `are_watched` is true for those of ours."""

    def __init__(self, crawler: Crawler, *, are_watched: bool = True) -> None:
        self._crawler = crawler
        self._are_watched = are_watched
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

    @staticmethod
    def has_crawl_delay(slot: Any | None) -> bool:
        """Return whether a slot keeps a `Crawl-delay`."""
        return slot is not None and crawl_delay_of(slot) > 0

    def seconds(self, slot: Any | None, coming: int, *, is_usual: bool = False) -> float | None:
        """Return in how many seconds a slot can send a request; None: when one of its requests has moved.

        `coming` is the number of requests that are on their way to the slot. Scrapy varies a delay at random:
        the result is for the least delay that it may choose, or for the usual one if `is_usual`.
        """
        if slot is None:
            return 0.0
        delay = (usual_delay if is_usual else least_delay)(slot)
        under_way = len(slot.active) - self._waiting[slot] + coming
        if not delay:
            return 0.0 if under_way < slot.concurrency else None
        sent = len(slot.transferring)
        if slot.queue or under_way > sent or sent >= slot.concurrency:
            return None
        return max(0.0, float(slot.lastseen) + delay - now()) or seconds_to_turn(slot)
