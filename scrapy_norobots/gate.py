"""The gate that a request passes once its origin's robots.txt is there, into what the crawl has under way.

Requests are held free of charge, so when a robots.txt comes there may be more of them than a crawl may have
under way (`CONCURRENT_REQUESTS`). They stay held until there is a place for each: those of a download slot in
the order in which they came, the slots in turns. A slot is given what it can send, with a delay one ahead, so
that what it could only queue takes no place of others.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from scrapy import signals
from twisted.internet.defer import Deferred

from scrapy_norobots import compat

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_norobots.holding import Holding

# A place becomes free when a request leaves the downloader or is answered without it, which signals tell, or
# without one: dropped by another middleware, say. So it is looked for every so many seconds too.
_LOOK_EVERY = 0.02

# What is under way may wait for what waits here, as where a middleware downloads a page for each. So one
# goes on all the same if none has for so many seconds, with nothing sent or about to be sent; or for so many
# in any case.
_STANDSTILL, _LONGEST_STANDSTILL = 1.0, 60.0


class Gate:
    """Lets requests of one crawl go on, as many as there are places for."""

    def __init__(self, crawler: Crawler, holding: Holding, own: str) -> None:
        """`own` is a key in the meta of requests that take no place: downloads of a robots.txt."""
        self._crawler = crawler
        self._holding = holding
        self._own = own
        # By download slot, in the order in which they came; the slot that was let send last is the last.
        self._waiting: dict[Any, deque[Deferred[None]]] = {}
        # By download slot that is waited for, how many it is to be given even if it can only queue them: two
        # for each that overtakes those that wait, so that they catch up.
        self._owed: Counter[Any] = Counter()
        # By download slot, those let go that it does not know of yet.
        self._going: Counter[Any] = Counter()
        # Those that have been here, and so have overtaken nobody.
        self._seen: WeakSet[Request] = WeakSet()
        # Those that have just left the downloader, which counts them as active for some time more.
        self._left: set[Request] = set()
        self._moved = 0.0
        self._is_open = False

    async def has_waited(self, request: Request) -> bool:
        """Wait until there is a place for a request, which is held meanwhile; tell whether that took time."""
        self._seen.add(request)
        slot = compat.download_slot(self._crawler, request)
        if slot not in self._waiting and self._has_use(slot) and self._places() > 0:
            return False
        waiter: Deferred[None] = Deferred()
        self._waiting.setdefault(slot, deque()).append(waiter)
        if not self._is_open:
            self._open()
        try:
            await compat.waiting_for(waiter)
        finally:
            if waiter in self._waiting.get(slot, ()):  # it was cancelled
                self._take(slot, waiter)
            else:
                self._going[slot] -= 1
                if not self._going[slot]:
                    del self._going[slot]
        return True

    def _open(self) -> None:
        """Look for places from now on, first when all who come in this turn of the event loop are there."""
        self._is_open = True
        self._moved = time.monotonic()
        for handler, signal in self._signals():
            self._crawler.signals.connect(handler, signal)
        compat.call_later(0, self._look)

    def _look(self) -> None:
        if not self._waiting:
            self._is_open = False
            self._left.clear()
            for handler, signal in self._signals():
                self._crawler.signals.disconnect(handler, signal)
            return
        compat.call_later(_LOOK_EVERY, self._look)
        self._let_go_on()
        if self._waiting and self._stands_still():
            self._next(next(iter(self._waiting)))

    def _signals(self) -> tuple[tuple[Callable[..., None], object], ...]:
        return (
            (self._comes, signals.request_reached_downloader),
            (self._leaves, signals.request_left_downloader),
            # One that was answered without the downloader has given up its place.
            (self._let_go_on, signals.response_received),
        )

    def _comes(self, request: Request) -> None:
        if self._waiting and request not in self._seen:
            slot = compat.download_slot(self._crawler, request)
            if slot in self._waiting:
                self._owed[slot] += 2

    def _leaves(self, request: Request) -> None:
        if self._own not in request.meta:
            self._left.add(request)
            self._let_go_on()
            # In this turn those that wait come before the scheduler. Later it has a place again, for as
            # long as other middlewares take over its response.
            compat.call_later(0, partial(self._left.discard, request))

    def _let_go_on(self) -> None:
        while self._places() > 0:
            for slot in self._waiting:
                if self._has_use(slot):
                    break
            else:
                return
            self._next(slot)

    def _places(self) -> int:
        """Return how many requests more may be under way.

        The downloader's limit is one higher for all that is held or downloaded for free.
        """
        downloader = compat.downloader(self._crawler)
        limit = getattr(downloader, "total_concurrency", None)
        if not isinstance(limit, int) or not limit:
            return 1  # there is no limit
        self._left &= downloader.active
        going = sum(self._going.values())
        return limit - len(downloader.active) + self._holding.counted + len(self._left) - going

    def _has_use(self, slot: Any) -> bool:
        """Whether a slot would send one more soon, or is owed one.

        Requests whose origin is in memory pass no gate, and may always fill the queue of their slot.
        """
        if slot is None or self._owed[slot]:
            return True
        # Scrapy has a request in `active` from the queue to the end of its download, and between the two in
        # neither of the slot's other sets for a turn of the event loop.
        here = (
            len(slot.active) - self._holding.in_slot[slot] - len(self._left & slot.active) + self._going[slot]
        )
        if slot.delay or slot.latercall:
            return here <= len(slot.transferring)
        return here < int(slot.concurrency)

    def _stands_still(self) -> bool:
        since = time.monotonic() - self._moved
        if since < _STANDSTILL:
            return False
        slots = getattr(compat.downloader(self._crawler), "slots", {}).values()
        return since > _LONGEST_STANDSTILL or not any(
            slot.queue or any(self._own not in one.meta for one in slot.transferring) for slot in slots
        )

    def _next(self, slot: Any) -> None:
        self._moved = time.monotonic()
        waiters = self._waiting.pop(slot)
        waiter = waiters.popleft()
        if waiters:
            self._waiting[slot] = waiters  # behind the other slots
            self._owed[slot] = max(self._owed[slot] - 1, 0)
        else:
            self._owed.pop(slot, None)
        self._going[slot] += 1
        waiter.callback(None)

    def _take(self, slot: Any, waiter: Deferred[None]) -> None:
        self._waiting[slot].remove(waiter)
        if not self._waiting[slot]:
            del self._waiting[slot]
            self._owed.pop(slot, None)
