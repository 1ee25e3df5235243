"""`SetAside`: keep requests of origins that are closed for now, and retry them later.

An origin is closed for now if its robots.txt could not be downloaded because of a temporary failure, and the
policy denies that outcome. A request that is set aside has left the downloader: it takes no place and no
download slot. After the back-off, robots.txt is downloaded again, once for all requests that wait for it. If
the origin is no longer closed, they go back to the scheduler, with their priority and in their order. If it
is, they continue to wait; those without a retry left go back too, and are dropped.

When the crawl closes, all requests go back to the scheduler, which keeps them if it is persistent. Until
then, `Journal` keeps them on disk, in case a job is killed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from scrapy import signals
from scrapy.core.scheduler import Scheduler
from scrapy.exceptions import DontCloseSpider
from scrapy.utils.misc import load_object
from twisted.internet.defer import Deferred, DeferredSemaphore

from scrapy_norobots import compat
from scrapy_norobots.journal import Journal

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from scrapy_norobots.access import Access
    from scrapy_norobots.downloader import RobotsDownloader
    from scrapy_norobots.loader import RobotsLoader
    from scrapy_norobots.report import CrawlReport
    from scrapy_norobots.settings import Config
    from scrapy_norobots.snapshot import Snapshot
    from scrapy_norobots.standard import Origin
    from scrapy_norobots.waiting_room import NoWaitingRoom

logger = logging.getLogger(__name__)

# The meta key of a request that was set aside: how many times robots.txt was downloaded again since.
RETRY_TIMES = "norobots_retry_times"

# The meta key of a request that got `dont_filter`, so that it could go back to the scheduler.
FILTERED = "norobots_filtered"

# How many retries a host gets whose name did not resolve: there may be no such host.
_UNKNOWN_HOST_TRIES = 1

# How much too early a timer may fire, in seconds.
_CLOCK_RESOLUTION = 0.01

# How many requests go back in one turn of the event loop; with a queue in memory, they take 0.1 s.
_AT_ONCE = 1000

_JOURNAL = "robots-waiting.sqlite"


class _Waiting(NamedTuple):
    """A request that waits, and the access that closed its origin; the engine gets the waiter's result."""

    request: Request
    waiter: Deferred[Request]
    access: Access


@dataclass(slots=True)
class _Closed:
    """An origin that is closed for now: the requests that wait, in order, and the task that retries it."""

    waiting: list[_Waiting] = field(default_factory=list)
    task: Deferred[None] | None = None


class SetAside:
    """The requests of one crawl that are set aside, at most `NOROBOTS_RETRY_CLOSED_MAX`.

    Without retries, none is set aside, but requests that an earlier run of the job left are scheduled.
    """

    def __init__(self, crawler: Crawler, config: Config, loader: RobotsLoader, report: CrawlReport) -> None:
        self._crawler = crawler
        # The user of a command that fetches one page, such as `scrapy fetch`, waits for the result.
        is_own_crawl = compat.is_own_crawl(crawler)
        self._tries = config.retry_closed if is_own_crawl and not config.dry_run else 0
        self._max = config.retry_closed_max
        self._loader = loader
        self._report = report
        self._closed: dict[Origin, _Closed] = {}
        self._count = 0
        self._awaits_closing = False
        # Half of the downloads that take no place remain for origins that are new.
        self._may_ask = DeferredSemaphore(max(1, config.waiting.concurrent_fetches // 2))
        self._given_back: set[Request] = set()
        job = crawler.settings.get("JOBDIR")
        self._journal = Journal(Path(job) / _JOURNAL, crawler) if job and is_own_crawl else None
        self._gives_last_first = {
            is_start: _gives_last_first(crawler.settings, is_start) for is_start in (True, False)
        }
        crawler.signals.connect(self._spider_idle, signals.spider_idle)
        if self._journal is not None:  # it may have requests of an earlier run
            crawler.signals.connect(self._spider_opened, signals.spider_opened)
            crawler.signals.connect(self._spider_closed, signals.spider_closed)

    def take(
        self,
        room: RobotsDownloader | NoWaitingRoom,
        request: Request,
        access: Access,
        robot: str | bytes,
    ) -> bool:
        """Set aside a request to a closed origin; return False if the caller must drop it instead.

        If True, the caller must return the request to Scrapy at once. While the crawl is closing, the request
        does not wait, but goes back to the scheduler, once, even without a retry left.
        """
        if not access.is_closed_for_now or not self._tries:
            return False
        is_closing = compat.is_closing(self._crawler)
        if is_closing:
            if request in self._given_back:
                return False  # the engine sent it again, because other code waits for its response
        elif not self._may_wait(request, access):
            return False
        elif self._count >= self._max:
            self._report.no_room_to_wait(self._max)
            return False
        waiter = room.set_aside(request)
        if waiter is None:
            return False
        if is_closing:
            self._return(request, waiter)
        else:
            if self._journal is not None and room.is_scheduled(request):
                self._journal.add(request)
            self._add(_Waiting(request, waiter, access), robot)
        return True

    def _add(self, one: _Waiting, robot: str | bytes) -> None:
        origin = one.access.snapshot.origin
        seconds = self._seconds_left(origin, one.access)
        closed = self._closed.get(origin)
        is_new = RETRY_TIMES not in one.request.meta
        self._report.set_aside(one.request, origin, seconds, is_new=is_new, is_first=closed is None)
        if closed is None:
            closed = self._closed[origin] = _Closed()
            closed.task = compat.spawn(self._retry(origin, closed, robot, seconds))
        closed.waiting.append(one)
        self._count += 1
        if not self._awaits_closing:
            self._awaits_closing = True
            compat.call_when_closing(self._crawler, self._give_all_back)

    def _may_wait(self, request: Request, access: Access) -> bool:
        """Return whether a request is retried: neither it nor its origin has used up its retries.

        An origin that stays closed does not make each new request wait, or a crawl with dead hosts would
        never end.
        """
        if not access.is_closed_for_now:
            return False
        last = access.snapshots[-1]
        tries = min(self._tries, _UNKNOWN_HOST_TRIES) if last.is_unknown_host else self._tries
        return self._failures(last) <= tries and request.meta.get(RETRY_TIMES, 0) < tries

    def _failures(self, last: Snapshot) -> int:
        """Return how many downloads in a row have failed, not counting those before this crawl.

        A store keeps failures, but a site that was down in the last crawl must not lose its requests in this
        one.
        """
        earlier = self._loader.earlier_failures.get(last.origin, 0)
        return last.failures - earlier if last.failures >= earlier else last.failures

    def _seconds_left(self, origin: Origin, access: Access) -> float:
        """Return the seconds until robots.txt may be downloaded again, even if it was evicted from memory."""
        origins = self._loader.origins
        return origins.remaining(origin) if origins.latest(origin) is access else access.lifetime

    async def _retry(self, origin: Origin, closed: _Closed, robot: str | bytes, seconds: float) -> None:
        """Download the robots.txt of an origin again, until no request waits for it."""
        while True:
            await compat.sleep(max(0.0, seconds) + _CLOCK_RESOLUTION)
            try:
                access = await self._load(origin, closed.waiting[0].request, robot)
            except Exception:
                self._closed.pop(origin, None)
                self._give_back(closed.waiting)  # each of them will raise the same error
                raise
            done = self._take_done(closed, access)
            if not closed.waiting:
                break
            seconds = self._seconds_left(origin, access)
            self._report.still_closed(access, seconds)
            self._give_back(done)
        self._closed.pop(origin, None)
        if access.is_closed_for_now and not compat.is_closing(self._crawler):
            self._report.no_longer_retried(access)
        self._give_back(done)

    async def _load(self, origin: Origin, request: Request, robot: str | bytes) -> Access:
        await compat.waiting_for(self._may_ask.acquire())
        try:
            return (await self._loader.load(origin, request, robot)).access
        finally:
            self._may_ask.release()

    def _take_done(self, closed: _Closed, access: Access) -> list[_Waiting]:
        """Remove the requests that need not wait any longer from those of an origin, and return them."""
        waiting, closed.waiting = closed.waiting, []
        done = []
        for one in waiting:
            if access is not one.access:
                one.request.meta[RETRY_TIMES] = one.request.meta.get(RETRY_TIMES, 0) + 1
            if self._may_wait(one.request, access):
                closed.waiting.append(one._replace(access=access))
            else:
                done.append(one)
        return done

    def _give_back(self, waiting: Sequence[_Waiting]) -> None:
        """Give requests back to the engine, so that the scheduler returns them in this order."""
        first_first: list[_Waiting] = []
        last_first: list[_Waiting] = []
        for one in waiting:
            is_start = bool(one.request.meta.get("is_start_request"))
            (last_first if self._gives_last_first[is_start] else first_first).append(one)
        self._give_back_ordered([*first_first, *reversed(last_first)])

    def _give_back_ordered(self, waiting: Sequence[_Waiting]) -> None:
        now, later = waiting[:_AT_ONCE], waiting[_AT_ONCE:]
        if later:
            compat.call_later(0, partial(self._give_back_ordered, later))
        self._count -= len(now)
        # Scrapy saves its queue only at the end of the crawl. Until then, the journal keeps the requests.
        if self._journal is not None and not compat.is_closing(self._crawler):
            self._journal.remove([one.request for one in now])
        for one in now:
            self._return(one.request, one.waiter)

    def _return(self, request: Request, waiter: Deferred[Request]) -> None:
        if compat.is_closing(self._crawler):
            self._given_back.add(request)
            self._report.left_waiting()
            request.meta.pop(RETRY_TIMES, None)  # the next run has all retries
        _skip_filter(request)
        waiter.callback(request)

    def _give_all_back(self) -> None:
        """Give all requests back, because the crawl is closing."""
        all_closed, self._closed = self._closed, {}
        for closed in all_closed.values():
            waiting, closed.waiting = closed.waiting, []
            if closed.task is not None:
                compat.cancel(closed.task)
            self._give_back(waiting)

    async def _spider_opened(self) -> None:
        """Schedule the requests that waited when a job was killed."""
        assert self._journal is not None  # this is connected only then
        requests = await self._journal.recover()
        if requests:
            logger.info(
                "Requests that waited for closed sites when this job was killed are scheduled again: %d",
                len(requests),
                extra={"spider": self._crawler.spider},
            )
        assert self._crawler.engine is not None  # it has opened the spider
        for request in requests:
            _skip_filter(request)
            try:
                self._crawler.engine.crawl(request)
            except Exception:  # the kill may have left a queue that Scrapy cannot read
                logger.error(
                    "Could not schedule %s, which waited when this job was killed: it is kept for the next "
                    "run",
                    request,
                    exc_info=True,
                    extra={"spider": self._crawler.spider},
                )
                self._journal.keep(request)

    def _spider_idle(self) -> None:
        if self._count:
            raise DontCloseSpider

    async def _spider_closed(self) -> None:
        assert self._journal is not None  # this is connected only then
        await self._journal.close()


def _skip_filter(request: Request) -> None:
    """Let a request that goes back pass the duplicate filter, which knows it already."""
    if not request.dont_filter:
        request.dont_filter = request.meta[FILTERED] = True


def restore_filter(request: Request) -> None:
    """Undo `_skip_filter`, so that filters apply to what is derived from the request, such as redirects."""
    if request.meta.pop(FILTERED, False):
        request.dont_filter = False


def _gives_last_first(settings: BaseSettings, is_start: bool) -> bool:
    """Return whether the scheduler returns its last request first, as Scrapy's does by default.

    Since Scrapy 2.13, start requests have a queue of their own.
    """
    if not issubclass(load_object(settings["SCHEDULER"]), Scheduler):
        return False
    kind = "DISK" if settings.get("JOBDIR") else "MEMORY"
    queue = (is_start and settings.get(f"SCHEDULER_START_{kind}_QUEUE")) or settings[
        f"SCHEDULER_{kind}_QUEUE"
    ]
    return any("Lifo" in cls.__name__ for cls in load_object(queue).__mro__)
