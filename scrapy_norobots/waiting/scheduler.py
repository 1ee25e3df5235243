"""`RobotsScheduler`: the user's scheduler, in which requests wait for robots.txt.

It takes requests from the scheduler that it wraps. One goes to the engine if its robots.txt is in memory, its
site is not temporarily closed, or is given up, and its download slot can send it (see `slot_lines` for slots
with a delay). Any other is *parked* until that is so. The engine pulls, so a full, paused or closing engine
gets nothing. When the crawl closes, all parked requests go back to the wrapped scheduler, which keeps them if
it is persistent.

`NoRobotsMiddleware` decides about every request all the same.
"""

from __future__ import annotations

import logging
from time import monotonic
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy import signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.exceptions import CloseSpider, DontCloseSpider, IgnoreRequest
from scrapy.utils.misc import build_from_crawler, load_object
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from scrapy_norobots.middleware import NoRobotsMiddleware
from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.waiting.downloader import RobotsDownloader
from scrapy_norobots.waiting.parking import Parking
from scrapy_norobots.waiting.slot_lines import Slots
from scrapy_norobots.waiting.source import Source
from scrapy_norobots.waiting.states import Parked, State

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from typing_extensions import Self

logger = logging.getLogger(__name__)

# `spider_idle` is sent again after so many seconds, or when a request has gone on: a handler may add a
# request to a closed site each time.
_IDLE_AGAIN = 1.0

# How many requests go back to the wrapped scheduler in one turn of the event loop.
_AT_ONCE = 500


class RobotsScheduler(BaseScheduler):
    """A scheduler that wraps the user's own. `wrapped` is the class of the user's, or its import path.

    The add-on sets ``SCHEDULER`` to it. The attributes of the wrapped scheduler can be read from this one.
    Without `NoRobotsMiddleware`, requests pass through.
    """

    wrapped: type | str = "scrapy.core.scheduler.Scheduler"

    @classmethod
    def around(cls, wrapped: type | str) -> type[RobotsScheduler]:
        """Return a subclass that wraps another scheduler."""
        return type(cls.__name__, (cls,), {"wrapped": wrapped, "__module__": cls.__module__})

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the scheduler of a crawl, and the one that it wraps."""
        wrapped = load_object(cls.wrapped)
        # The user's own subclass is not wrapped again. (For a scheduler, `issubclass` compares only methods.)
        if RobotsScheduler in wrapped.__mro__:
            ours: Self = wrapped.from_crawler(crawler)
            return ours
        return cls(crawler, build_from_crawler(wrapped, crawler))

    def __init__(self, crawler: Crawler, scheduler: Any) -> None:
        self._crawler = crawler
        self._source = Source(crawler, scheduler)
        self._is_asking = False
        self._idle_until = 0.0
        self._closing: Deferred[None] | None = None
        self.parking: Parking | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_source" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self._source.scheduler, name)

    def __len__(self) -> int:
        scheduler = self._source.scheduler
        others = len(scheduler) if hasattr(scheduler, "__len__") else int(scheduler.has_pending_requests())
        return others + len(self.parking or ())

    def open(self, spider: Spider) -> Deferred[None] | None:
        """Open the wrapped scheduler. With the middleware, let requests wait here."""
        middleware = compat.downloader_middleware(self._crawler, NoRobotsMiddleware)
        if middleware is not None:
            self._events = middleware.events
            downloader = compat.downloader(self._crawler)
            ours = downloader if isinstance(downloader, RobotsDownloader) else None
            slots = Slots(self._crawler, ours.has_place if ours else None)
            self._warn(ours, slots.missing)
            most_loads = ours.free_max if ours else middleware.config.concurrent_fetches
            self.parking = Parking(self._crawler, middleware, self._source, slots, most_loads=most_loads)
            middleware.wait_in(self.parking)
            if ours is not None:
                ours.parking = self.parking
        return self._call("open", spider)

    def _warn(self, downloader: RobotsDownloader | None, missing: list[str]) -> None:
        extra = {"spider": self._crawler.spider}
        if downloader is None:
            logger.warning(
                "Downloads of robots.txt count against CONCURRENT_REQUESTS, so a slow host can stall the "
                "crawl of other hosts: DOWNLOADER is not scrapy_norobots.RobotsDownloader",
                extra=extra,
            )
        elif missing:
            logger.warning(
                "Requests that wait for a delay count against CONCURRENT_REQUESTS, as in Scrapy without this "
                "plugin: Scrapy %s has no %s",
                scrapy.__version__,
                ", no ".join(missing),
                extra=extra,
            )

    def has_pending_requests(self) -> bool:
        """Return whether there are requests, parked or not."""
        return bool((self.parking and not self._is_asking) or self._source.scheduler.has_pending_requests())

    def enqueue_request(self, request: Request) -> bool:
        """Give a request to the wrapped scheduler; park one that the middleware has given back."""
        if self.parking is None:
            return self._source.add(request)
        if self.parking.take_back(request):
            return True
        try:
            self._events.scheduled.send(request)
        except IgnoreRequest:
            return True  # as if a handler of `request_scheduled` had dropped it
        return self.parking.add(request)

    def next_request(self) -> Request | None:
        """Return the next request that may go to the engine; None if all must wait."""
        if self.parking is None:
            return self._source.take()
        request = self.parking.next()
        if request is not None:
            self._idle_until = 0.0
        elif self.parking.is_only_for_closed_sites and self._idle_until <= monotonic():
            self._ask_if_idle()
        return request

    def close(self, reason: str) -> Deferred[None] | None:
        """Give all parked requests back to the wrapped scheduler, and close it."""
        waiting = self.parking.clear() if self.parking is not None else []
        if not waiting:
            return self._call("close", reason)
        self._closing = compat.spawn(self._give_back(waiting, reason))
        return self._closing

    def _call(self, name: str, *args: object) -> Deferred[None] | None:
        method: Callable[..., Deferred[None] | None] | None = getattr(self._source.scheduler, name, None)
        return None if method is None else method(*args)

    async def _give_back(self, waiting: list[Parked], reason: str) -> None:
        try:
            requests = self._source.in_order([parked.request for parked in waiting])
            for start in range(0, len(requests), _AT_ONCE):
                self._source.give_back(requests[start : start + _AT_ONCE])
                await compat.sleep(0)
        finally:
            closed = self._call("close", reason)
            if closed is not None:
                await compat.waiting_for(closed)
        for parked in waiting:
            if parked.state is State.CLOSED:
                self._events.wait.send(parked.request, "left")

    def _ask_if_idle(self) -> None:
        """Send `spider_idle` if the crawl only waits for closed sites; a handler may add requests."""
        if not self._is_idle():
            return
        self._idle_until = monotonic() + _IDLE_AGAIN
        results = self._crawler.signals.send_catch_log(
            signals.spider_idle, spider=self._crawler.spider, dont_log=(DontCloseSpider, CloseSpider)
        )
        raised = [result.value for _, result in results if isinstance(result, Failure)]
        closing = [error for error in raised if isinstance(error, CloseSpider)]
        is_kept_open = any(isinstance(error, DontCloseSpider) for error in raised)
        if closing and not is_kept_open and self._is_idle():
            self._closing = compat.close_spider(self._crawler, closing[0].reason)

    def _is_idle(self) -> bool:
        """Return whether the crawl is idle, except for requests that wait here, and not closing."""
        engine = self._crawler.engine
        assert engine is not None  # it asks for requests
        self._is_asking = True
        try:
            return engine.spider_is_idle() and not compat.is_closing(self._crawler)
        finally:
            self._is_asking = False
