"""Requests that wait for a robots.txt, and Scrapy's concurrency budget.

Scrapy's downloader counts each request it has been given, waiting or not, against `CONCURRENT_REQUESTS`,
so that a few slow hosts would soon fill it and stall all others. Here that limit is one higher for each
request that is held and for each robots.txt that is downloaded, and what was taken is given back whatever
happens.

Requests held for free are bounded, for each origin and in all: without that, one slow host would pull the
whole queue into memory. A held request also stands in its download slot, where Scrapy's default priority
queue counts what a host has in progress: it then leaves the slow host's other requests on the scheduler.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from scrapy import signals

from scrapy_norobots import compat

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_norobots.standard import Origin

logger = logging.getLogger(__name__)


class Holding:
    """The budget of one crawl for requests that wait.

    Free of charge are `per_origin` held requests of an origin, `total` in all, and `fetches` downloads of a
    robots.txt; what goes beyond counts against `CONCURRENT_REQUESTS` like any request, and is in `counted`.
    `in_slot` has how many requests are held in each download slot.
    """

    def __init__(self, crawler: Crawler, own: str, *, per_origin: int, total: int, fetches: int) -> None:
        """`own` is a key in the meta of downloads of a robots.txt; its value is the origin, as text."""
        self._crawler = crawler
        self._own = own
        self._per_origin = per_origin
        self._total = total
        self._fetches = fetches
        # By origin, all that are held, and those of them that count.
        self._held: Counter[Origin] = Counter()
        self._counted: Counter[Origin] = Counter()
        self._free_held = 0
        # Free downloads by origin, and whether the limit is higher for each just now.
        self._free_fetches: dict[str, bool] = {}
        self.counted = 0
        self.in_slot: Counter[Any] = Counter()
        self._has_warned = False

    @contextmanager
    def hold(self, origin: Origin, request: Request) -> Iterator[None]:
        """Hold a page request of an origin inside the ``with``."""
        slot = compat.download_slot(self._crawler, request)
        if slot is not None:
            slot.active.add(request)
            self.in_slot[slot] += 1
        self._held[origin] += 1
        if self._held[origin] - self._counted[origin] <= self._per_origin and self._free_held < self._total:
            self._free_held += 1
            self._add_room()
        else:
            self._counted[origin] += 1
            self.counted += 1
        try:
            yield
        finally:
            if slot is not None:
                slot.active.discard(request)
                self.in_slot[slot] -= 1
                if not self.in_slot[slot]:
                    del self.in_slot[slot]
            self._release(origin)

    def _release(self, origin: Origin) -> None:
        """Give back what one took that was held; one that counts is free then, of its origin if possible."""
        self._held[origin] -= 1
        if self._counted[origin]:
            self._no_longer_count(origin)
        else:
            self._free_held -= 1
            self._take_room()
            for other, number in self._counted.items():
                if self._held[other] - number < self._per_origin:
                    self._no_longer_count(other)
                    self._free_held += 1
                    self._add_room()
                    break
        if not self._held[origin]:
            del self._held[origin]

    def _no_longer_count(self, origin: Origin) -> None:
        self.counted -= 1
        self._counted[origin] -= 1
        if not self._counted[origin]:
            del self._counted[origin]

    @contextmanager
    def fetch(self, origin: Origin) -> Iterator[None]:
        """Download the robots.txt of an origin inside the ``with``; one at a time of each is free."""
        if len(self._free_fetches) >= self._fetches or str(origin) in self._free_fetches:
            self.counted += 1
            try:
                yield
            finally:
                self.counted -= 1
            return
        if not self._free_fetches:
            self._crawler.signals.connect(self._left, signals.request_left_downloader)
            self._crawler.signals.connect(self._reached, signals.request_reached_downloader)
        self._free_fetches[str(origin)] = True
        self._add_room()
        try:
            yield
        finally:
            if self._free_fetches.pop(str(origin)):
                self._take_room()
            if not self._free_fetches:
                self._crawler.signals.disconnect(self._left, signals.request_left_downloader)
                self._crawler.signals.disconnect(self._reached, signals.request_reached_downloader)

    def _left(self, request: Request) -> None:
        """Take the room away at once: by the end of the ``with`` the engine would have seen it as free."""
        origin = request.meta.get(self._own, "")
        if self._free_fetches.get(origin):
            self._free_fetches[origin] = False
            self._take_room()

    def _reached(self, request: Request) -> None:
        """Give it back to a download that is tried again, or has been redirected."""
        origin = request.meta.get(self._own, "")
        if self._free_fetches.get(origin) is False:
            self._free_fetches[origin] = True
            self._add_room()

    def _add_room(self) -> None:
        """Have the downloader take one request more, if it has a limit: 0 is none already."""
        downloader = compat.downloader(self._crawler)
        limit = getattr(downloader, "total_concurrency", None)
        if not isinstance(limit, int):
            self._warn()
        elif limit:
            downloader.total_concurrency += 1
            compat.look_for_next_request(self._crawler)

    def _take_room(self) -> None:
        downloader = compat.downloader(self._crawler)
        limit = getattr(downloader, "total_concurrency", None)
        if isinstance(limit, int) and limit:
            downloader.total_concurrency -= 1

    def _warn(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "The downloader in use has no total_concurrency: hosts that are slow to send their "
                "robots.txt can stall the crawl of others",
                extra={"spider": self._crawler.spider},
            )
