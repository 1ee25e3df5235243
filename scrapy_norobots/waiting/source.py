"""`Source`: the user's scheduler, from which requests are taken, and to which they go back in order."""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from itertools import filterfalse
from typing import TYPE_CHECKING, Any

from scrapy.core.scheduler import Scheduler
from scrapy.utils.misc import load_object

from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.scrapy_api.log import Named
from scrapy_norobots.standard.decision import without_userinfo

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

# The meta key of a request that got `dont_filter`, so that it could go back to its scheduler.
FILTERED = "norobots_filtered"

_ENQUEUED, _DEQUEUED = "scheduler/enqueued", "scheduler/dequeued"
_UNSERIALIZABLE = "scheduler/unserializable"


class Source:
    """A scheduler from which requests are taken, and to which they go back when the crawl closes.

    `is_scrapys` is true if it is Scrapy's, or derived from it. Any other may share its requests.
    """

    def __init__(self, crawler: Crawler, scheduler: Any) -> None:
        self.scheduler = scheduler
        self.is_scrapys = Scheduler in type(scheduler).__mro__  # `isinstance` would compare only methods
        self._stats = compat.stats(crawler)
        self._gives_last_first = {
            is_start: self.is_scrapys and _gives_last_first(crawler.settings, is_start)
            for is_start in (True, False)
        }
        self._lost = Named()
        # How many of the requests that it got from here it has, by priority. It may have others, too.
        self._priorities: dict[int, int] = defaultdict(int)

    @property
    def highest_priority(self) -> float:
        """The highest priority of its requests, as far as that is known."""
        return max(self._priorities, default=-math.inf)

    def add(self, request: Request) -> bool:
        """Give it a request; return whether it has accepted it."""
        is_accepted: bool = self.scheduler.enqueue_request(request)
        if is_accepted:
            self._priorities[request.priority] += 1
        return is_accepted

    def take(self) -> Request | None:
        """Take its next request; None if it gives none for now."""
        request: Request | None = self.scheduler.next_request()
        if request is None:
            return None
        self._priorities[request.priority] -= 1
        if self._priorities[request.priority] <= 0:  # it may have had others
            del self._priorities[request.priority]
        if request.meta.pop(FILTERED, False):  # filters apply to what is derived from it, such as redirects
            request.dont_filter = False
        return request

    def in_order(self, requests: list[Request]) -> list[Request]:
        """Return requests, which come in the order in which they were taken, as they must go back."""

        def is_last_first(request: Request) -> bool:
            return self._gives_last_first[bool(request.meta.get("is_start_request"))]

        return [*filterfalse(is_last_first, requests), *filter(is_last_first, reversed(requests))]

    def give_back(self, requests: list[Request]) -> None:
        """Give it requests that it has had; its stats count each of them once."""
        before = self._counts(_ENQUEUED)
        for request in requests:
            if not request.dont_filter:  # the duplicate filter knows it already
                request.dont_filter = request.meta[FILTERED] = True
            unserializable, error = self._stats.get_value(_UNSERIALIZABLE), None
            try:
                is_kept = self.scheduler.enqueue_request(request)
            except Exception as exc:  # a scheduler of the user may raise anything
                is_kept, error = False, exc
            # Scrapy's scheduler says that it accepts what is lost at the end, as it cannot be serialized.
            if is_kept is False or self._stats.get_value(_UNSERIALIZABLE) != unserializable:
                level = self._lost.level(request, logging.ERROR)
                text = without_userinfo(str(request))
                logger.log(level, "The scheduler does not take back %s, which is lost", text, exc_info=error)
        for name, count in self._counts(_ENQUEUED).items():
            again = count - before.get(name, 0)
            self._stats.inc_value(name, -again)
            self._stats.inc_value(name.replace(_ENQUEUED, _DEQUEUED), -again)

    def _counts(self, start: str) -> dict[str, int]:
        return {name: count for name, count in self._stats.get_stats().items() if name.startswith(start)}


def _gives_last_first(settings: BaseSettings, is_start: bool) -> bool:
    """Return whether Scrapy's scheduler returns its last request first, as it does by default.

    Since Scrapy 2.13, start requests have a queue of their own.
    """
    kind = "DISK" if settings.get("JOBDIR") else "MEMORY"
    queue = (is_start and settings.get(f"SCHEDULER_START_{kind}_QUEUE")) or settings[
        f"SCHEDULER_{kind}_QUEUE"
    ]
    return any("Lifo" in cls.__name__ for cls in load_object(queue).__mro__)
