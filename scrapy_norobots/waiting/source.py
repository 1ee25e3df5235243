"""`Source`: the scheduler that the user has chosen, what is known of its content, and queues behind it.

A site whose robots.txt is being loaded may have more requests at the head of the scheduler than can wait in
memory. They are put *aside*, in a queue of their own, so that those of other sites can be taken.
"""

from __future__ import annotations

import logging
import math
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.core.scheduler import Scheduler
from scrapy.pqueues import ScrapyPriorityQueue
from scrapy.squeues import FifoMemoryQueue, PickleFifoDiskQueue
from scrapy.utils.job import job_dir
from scrapy.utils.misc import build_from_crawler, load_object

from scrapy_norobots.standard.decision import without_userinfo

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings
    from scrapy.statscollectors import StatsCollector

    from scrapy_norobots.standard import Origin

logger = logging.getLogger(__name__)

# The meta key of a request that got `dont_filter`, so that it could go back to its scheduler.
FILTERED = "norobots_filtered"

# The folder in `JOBDIR` with the requests that are aside. What a killed process has left there is lost.
_FOLDER = "norobots.aside"

_ENQUEUED, _DEQUEUED = "scheduler/enqueued", "scheduler/dequeued"


class Source:
    """A scheduler from which requests are taken, and to which they go back when the crawl closes.

    `is_busy` returns whether no more requests of a site, in a slot, can be used for now.
    """

    def __init__(self, crawler: Crawler, scheduler: Any) -> None:
        assert crawler.stats is not None  # made before the scheduler
        self.scheduler = scheduler
        self.is_busy: Callable[[Origin, Any], bool] = lambda _origin, _slot: False
        self._crawler = crawler
        # By site, with the slot of the first one. They come by priority, and then as they were taken.
        self._aside: dict[Origin, tuple[Any, ScrapyPriorityQueue]] = {}
        self._asides = 0
        self._stats: StatsCollector = crawler.stats
        self._gives_last_first = {
            is_start: _gives_last_first(crawler.settings, scheduler, is_start) for is_start in (True, False)
        }
        # How many of the requests that it got from here it has, by priority. It may have others, too.
        self._priorities: dict[int, int] = defaultdict(int)
        self.may_have_more = True

    @property
    def highest_priority(self) -> float:
        """The highest priority of its requests, as far as that is known."""
        return max(chain(self._priorities, (priority for priority, _ in self._ready())), default=-math.inf)

    def __len__(self) -> int:
        return sum(len(queue) for _, queue in self._aside.values())

    def has_aside(self, origin: Origin) -> bool:
        """Return whether requests of a site are aside."""
        return origin in self._aside

    def put_aside(self, origin: Origin, slot: Any, request: Request) -> bool:
        """Put a request aside that was taken; return whether it is, which only Scrapy's scheduler allows.

        Another one may share its queue with other processes.
        """
        if Scheduler not in type(self.scheduler).__mro__:
            return False
        aside = self._aside.get(origin) or (slot, self._new_queue())
        try:
            aside[1].push(request)
        except Exception:  # of any kind: it cannot be serialized, or the disk is full
            if origin not in self._aside:
                aside[1].close()
            return False
        self._aside[origin] = aside
        return True

    def _new_queue(self) -> ScrapyPriorityQueue:
        if folder := job_dir(self._crawler.settings):
            folder = str(Path(folder, _FOLDER))
            if not self._asides:
                shutil.rmtree(folder, ignore_errors=True)
        self._asides += 1
        cls = PickleFifoDiskQueue if folder else FifoMemoryQueue
        return build_from_crawler(
            ScrapyPriorityQueue, self._crawler, downstream_queue_cls=cls, key=f"{folder}/{self._asides}"
        )

    def _ready(self) -> Iterator[tuple[int, Origin]]:
        """Yield those sites with requests aside that may be taken, with the highest priority of each."""
        for origin, (slot, queue) in self._aside.items():
            if queue.curprio is not None and not self.is_busy(origin, slot):
                yield -queue.curprio, origin

    def add(self, request: Request) -> bool:
        """Give it a request; return whether it has accepted it."""
        is_accepted: bool = self.scheduler.enqueue_request(request)
        if is_accepted:
            self._priorities[request.priority] += 1
            self.may_have_more = True
        return is_accepted

    def take_aside(self) -> Request | None:
        """Take the next request of those that are aside, if it comes before those of the scheduler."""
        ready = max(self._ready(), key=itemgetter(0), default=None) if self._aside else None
        if ready is None or ready[0] < max(self._priorities, default=-math.inf):
            return None
        _, queue = self._aside[ready[1]]
        request = queue.pop()
        if queue.curprio is None:
            del self._aside[ready[1]]
        return request

    def take(self) -> Request | None:
        """Take its next request; None if it gives none for now."""
        request: Request | None = self.scheduler.next_request()
        self.may_have_more = request is not None
        if request is None:
            return None
        if self._priorities[request.priority] <= 1:
            del self._priorities[request.priority]
        else:
            self._priorities[request.priority] -= 1
        if request.meta.pop(FILTERED, False):  # filters apply to what is derived from it, such as redirects
            request.dont_filter = False
        return request

    def in_order(self, requests: list[Request]) -> Iterator[Request]:
        """Yield requests, and those that are aside, in the order in which they must go back.

        They come in this order then, except those that are aside if the scheduler returns its last request
        first: all of them need not have room in memory.
        """
        first_first: list[Request] = []
        last_first: list[Request] = []
        for request in requests:
            is_start = bool(request.meta.get("is_start_request"))
            (last_first if self._gives_last_first[is_start] else first_first).append(request)
        yield from first_first
        for _, queue in self._aside.values():
            while (aside := queue.pop()) is not None:
                yield aside
        self._aside.clear()
        yield from reversed(last_first)

    def give_back(self, requests: list[Request]) -> None:
        """Give it requests that it has had; its stats count each of them once."""
        before = self._counts(_ENQUEUED)
        for request in requests:
            if not request.dont_filter:  # the duplicate filter knows it already
                request.dont_filter = request.meta[FILTERED] = True
            try:
                self.scheduler.enqueue_request(request)
            except Exception:  # of any kind, for example if it cannot be serialized
                text = without_userinfo(str(request))
                logger.exception("The scheduler does not take back %s, which is lost", text)
        for name, count in self._counts(_ENQUEUED).items():
            again = count - before.get(name, 0)
            self._stats.inc_value(name, -again)
            self._stats.inc_value(name.replace(_ENQUEUED, _DEQUEUED), -again)

    def _counts(self, start: str) -> dict[str, int]:
        stats = self._stats.get_stats()
        return {name: count for name, count in stats.items() if name.startswith(start)}


def _gives_last_first(settings: BaseSettings, scheduler: object, is_start: bool) -> bool:
    """Return whether a scheduler returns its last request first, as Scrapy's does by default.

    Since Scrapy 2.13, start requests have a queue of their own.
    """
    if Scheduler not in type(scheduler).__mro__:  # `isinstance` would compare only methods
        return False
    kind = "DISK" if settings.get("JOBDIR") else "MEMORY"
    queue = (is_start and settings.get(f"SCHEDULER_START_{kind}_QUEUE")) or settings[
        f"SCHEDULER_{kind}_QUEUE"
    ]
    return any("Lifo" in cls.__name__ for cls in load_object(queue).__mro__)
