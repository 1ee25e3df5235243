"""The gate that a request passes once its origin's robots.txt is there, into what the crawl has under way.

Requests are held free of charge, so when a robots.txt comes there may be more of them than a crawl may have
under way (`CONCURRENT_REQUESTS`). They stand at the gate, in the order in which they came, until there is a
place for each. At the gate they count against that limit, so that the engine takes no others from the
scheduler before them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from scrapy import signals
from twisted.internet.defer import Deferred

from scrapy_norobots import compat

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_norobots.holding import Holding

# A place becomes free when a request leaves the downloader, which a signal tells, or without one: answered
# from a cache, say, or dropped by another middleware. So it is looked for every so many seconds too.
_LOOK_EVERY = 0.05

# If nothing leaves for so many seconds, one goes on all the same: what is under way may wait for just that
# one, as where a middleware downloads another page for each.
_LONGEST_STANDSTILL = 10.0


class Gate:
    """Lets requests of one crawl go on, as many as there are places for."""

    def __init__(self, crawler: Crawler, holding: Holding, own: str) -> None:
        """`own` is a key in the meta of requests that take no place: downloads of a robots.txt."""
        self._crawler = crawler
        self._holding = holding
        self._own = own
        # In the order in which they came; the values say nothing.
        self._waiting: dict[Deferred[None], None] = {}
        self._moved = 0.0
        self._stop_looking: Callable[[], object] = lambda: None

    async def has_waited(self) -> bool:
        """Wait until there is a place for a request of the downloader; tell whether that took time."""
        # This one is among the active, and takes its place with that.
        if not self._waiting and self._places() >= 0:
            return False
        waiter: Deferred[None] = Deferred()
        if not self._waiting:
            self._open()
        self._waiting[waiter] = None
        try:
            await compat.waiting_for(waiter)
        finally:
            if waiter in self._waiting:  # it was cancelled
                self._take(waiter)
        return True

    def _places(self) -> int:
        """Return how many requests more may be under way; negative if there are too many.

        The downloader's limit is one higher for all that is held or downloaded for free.
        """
        downloader = compat.downloader(self._crawler)
        limit = getattr(downloader, "total_concurrency", None)
        if not isinstance(limit, int) or not limit:
            return 1  # there is no limit
        return limit - (len(downloader.active) - len(self._waiting) - self._holding.counted)

    def _open(self) -> None:
        """Look for places from now on; while nobody waits, the gate costs nothing."""
        self._moved = time.monotonic()
        self._crawler.signals.connect(self._left, signals.request_left_downloader)
        self._stop_looking = compat.call_later(_LOOK_EVERY, self._look)

    def _look(self) -> None:
        self._stop_looking = compat.call_later(_LOOK_EVERY, self._look)
        self._let_go_on()
        if self._waiting and time.monotonic() - self._moved > _LONGEST_STANDSTILL:
            self._next()

    def _left(self, request: Request) -> None:
        """Let the next go on in the place of a request that has left, and is about to be no longer active."""
        if self._own not in request.meta:
            self._moved = time.monotonic()
            self._let_go_on(leaving=1)

    def _let_go_on(self, leaving: int = 0) -> None:
        while self._waiting and self._places() + leaving > 0:
            self._next()

    def _next(self) -> None:
        self._moved = time.monotonic()
        waiter = next(iter(self._waiting))
        self._take(waiter)
        waiter.callback(None)

    def _take(self, waiter: Deferred[None]) -> None:
        del self._waiting[waiter]
        if not self._waiting:
            self._stop_looking()
            self._crawler.signals.disconnect(self._left, signals.request_left_downloader)
