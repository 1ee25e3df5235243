"""`Alarm`: a timer that wakes the engine of a crawl, so that it asks the scheduler for a request."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from scrapy_norobots.scrapy_api import compat

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler


class Alarm:
    """Wakes the engine once, at the earliest of the times that were set."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._next: tuple[float, Callable[[], object]] | None = None  # its time, and what cancels it

    def set(self, when: float) -> None:
        """Wake the engine at a time, in monotonic seconds, or earlier."""
        if self._next is not None:
            if self._next[0] <= when:
                return
            self.cancel()
        self._next = when, compat.call_later(max(0.0, when - monotonic()), self._ring)

    def cancel(self) -> None:
        """Forget the times that were set."""
        if self._next is not None:
            self._next[1]()
            self._next = None

    def _ring(self) -> None:
        self._next = None
        compat.look_for_next_request(self._crawler)
