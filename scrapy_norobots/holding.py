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
from typing import TYPE_CHECKING

from scrapy_norobots import compat

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_norobots.standard import Origin

logger = logging.getLogger(__name__)


class Holding:
    """The budget of one crawl for requests that wait.

    Free of charge are `per_origin` held requests of an origin, `total` in all, and `fetches` downloads of a
    robots.txt; what goes beyond counts against `CONCURRENT_REQUESTS` like any request.
    """

    def __init__(self, crawler: Crawler, *, per_origin: int, total: int, fetches: int) -> None:
        self._crawler = crawler
        self._per_origin = per_origin
        self._total = total
        self._fetches = fetches
        self._held: Counter[Origin] = Counter()
        self._free_held = 0
        self._free_fetches = 0
        self.counted = 0  # what waits, or downloads a robots.txt, and is not free
        self._has_warned = False

    @contextmanager
    def hold(self, origin: Origin, request: Request) -> Iterator[None]:
        """Hold a page request of an origin inside the ``with``."""
        slot = compat.download_slot(self._crawler, request)
        is_free = self._held[origin] < self._per_origin and self._free_held < self._total
        self._held[origin] += 1
        self._free_held += is_free
        if slot is not None:
            slot.active.add(request)
        try:
            with self._room(is_free):
                yield
        finally:
            if slot is not None:
                slot.active.discard(request)
            self._free_held -= is_free
            self._held[origin] -= 1
            if not self._held[origin]:
                del self._held[origin]

    @contextmanager
    def fetch(self) -> Iterator[None]:
        """Download a robots.txt inside the ``with``."""
        is_free = self._free_fetches < self._fetches
        self._free_fetches += is_free
        try:
            with self._room(is_free):
                yield
        finally:
            self._free_fetches -= is_free

    @contextmanager
    def _room(self, is_free: bool) -> Iterator[None]:
        """Have the downloader take one request more, if that is free and it has a limit at all."""
        downloader = compat.downloader(self._crawler)
        limit = getattr(downloader, "total_concurrency", None)
        if not isinstance(limit, int):
            self._warn()
        if not is_free:
            self.counted += 1
            try:
                yield
            finally:
                self.counted -= 1
            return
        if not limit:  # 0 is "no limit" already
            yield
            return
        downloader.total_concurrency += 1
        compat.look_for_next_request(self._crawler)
        try:
            yield
        finally:
            downloader.total_concurrency -= 1

    def _warn(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "The downloader in use has no total_concurrency: hosts that are slow to send their "
                "robots.txt can stall the crawl of others",
                extra={"spider": self._crawler.spider},
            )
