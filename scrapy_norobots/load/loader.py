"""`RobotsLoader`: load the access to an origin from memory, the store or the network, in that order.

Requests for the same origin share one load. Processes that share a store share one download: the first
process that acquires the lock of an origin downloads its robots.txt and saves the outcome, also a failure of
the site; the others poll the store, but no longer than such a download can take. A failed download is an
`Access` too, so only bugs raise exceptions.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from scrapy import signals
from scrapy.exceptions import IgnoreRequest
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from scrapy_norobots.events import Events, Load
from scrapy_norobots.load.fetch import Fetcher
from scrapy_norobots.rules.access import Access, Judge, OriginCache
from scrapy_norobots.rules.parser import as_parser, reader_of
from scrapy_norobots.rules.snapshot import LONGEST_BACK_OFF, ClosingError
from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.settings import error
from scrapy_norobots.standard.robotstxt import SMALL_BODY
from scrapy_norobots.stores import LOCK_SECONDS, MEMORY, Store, without_password
from scrapy_norobots.stores.circuit_breaker import TIMEOUT, CircuitBreaker
from scrapy_norobots.stores.opening import open_store

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_norobots.rules.snapshot import Snapshot
    from scrapy_norobots.settings import Config
    from scrapy_norobots.standard import Origin

_T = TypeVar("_T")

logger = logging.getLogger(__name__)

# While another process downloads a file: the first and the longest pause between two looks, in seconds.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0

# How long the end of a crawl waits for loads in flight, in seconds: two calls of a store that is slow.
_CLOSING_MAX = 2 * TIMEOUT


@dataclass(slots=True)
class _Load:
    waiters: list[Deferred[Access]]
    task: Deferred[None] | None = None


async def read_bodies(thread: Executor, snapshots: Sequence[Snapshot], work: Callable[[], _T]) -> _T:
    """Run `work`, which reads the bodies of `snapshots`; in a thread if they are large."""
    if sum(len(snapshot.body) for snapshot in snapshots) <= SMALL_BODY:
        return work()
    return await compat.in_thread(thread, work)


class RobotsLoader:
    """Loads the robots.txt of origins, for one crawler. `origins` is the cache in memory."""

    def __init__(self, crawler: Crawler, config: Config, events: Events) -> None:
        """Open the store. Raises `ValueError` if the store or a parser cannot be used."""
        self._crawler = crawler
        self._stats = compat.stats(crawler)
        self.config = config
        self.events = events
        read = reader_of(
            crawler,
            config.parser,
            config.also_obey,
            multivalue=config.multivalue,
            crawl_delay=bool(config.crawl_delay_max),
            also_robots=config.also_robots,
            statements=events.statements.ask(),
        )
        self.judge = Judge(config.status_policy, config.freshness, read)
        self._fetcher = Fetcher(crawler, config, events)
        self.proxy_of, self.is_own = self._fetcher.proxy_of, self._fetcher.is_own
        self._store = self._open_store()
        self.origins = OriginCache(memory_max=config.memory_max)
        self.loads: dict[Origin, _Load] = {}
        # While its signal is handled, an access may expire, and the handlers may send requests to its origin.
        self._announced: dict[Origin, Access] = {}
        self._thread = ThreadPoolExecutor(1, "norobots-reader")
        crawler.signals.connect(self._close, signals.spider_closed)

    async def load(self, origin: Origin, request: Request, robot: str | bytes) -> Access:
        """Return the access to an origin, ready to answer questions about `robot`.

        A download uses the proxy, the User-Agent and the like of `request`.
        """
        access, proxy = self.origins.get(origin) or self._announced.get(origin), self.proxy_of(request)
        is_known = access is not None and access.applies_to(proxy)
        while access is None or not is_known:
            access = await self._join(origin, request, robot)
            is_known = access.snapshot.proxy in ("", proxy)  # else another proxy has failed
        while not access.is_ready(robot):
            await self.prepare(access, robot)
        return access

    async def prepare(self, access: Access, robot: str | bytes) -> None:
        """Do the work that the first question about `robot` needs."""
        bodies = access.snapshots * (1 + len(self.config.also_robots))  # they are read for each robot
        await read_bodies(self._thread, bodies, partial(access.prepare, robot))

    async def _close(self) -> None:
        """Let the loads in flight give back their locks, and close the store."""
        if self._store is not None:
            waited = 0.0
            while self.loads and waited < _CLOSING_MAX:
                await compat.sleep(_FIRST_PAUSE)
                waited += _FIRST_PAUSE
            await self._store.close()

    async def _join(self, origin: Origin, request: Request, robot: str | bytes) -> Access:
        """Return the result of the load of an origin, which is started if none is running.

        No waiter owns the load, so to cancel one, even the first, does not affect the others.
        """
        waiter: Deferred[Access] = Deferred()
        if origin in self.loads:
            self.loads[origin].waiters.append(waiter)
        else:
            load = self.loads[origin] = _Load([waiter])
            load.task = compat.spawn(self._run(origin, request, robot))
        return await compat.waiting_for(waiter)

    async def _run(self, origin: Origin, request: Request, robot: str | bytes) -> None:
        try:
            result: Access | Failure = await self._load(origin, request, robot)
        except BaseException as exc:  # a bug, or the end of the event loop: every waiter must be called
            # A waiter would take asyncio's `CancelledError` for its own.
            told = exc if isinstance(exc, Exception) else RuntimeError(repr(exc))
            result = Failure(told)  # type: ignore[no-untyped-call]
        for waiter in self.loads.pop(origin).waiters:
            if not waiter.called:  # resuming one may cancel another
                waiter.callback(result)

    async def _load(self, origin: Origin, request: Request, robot: str | bytes) -> Access:
        """Load an origin that is not in memory, and cache it."""
        started = monotonic()
        previous = self.origins.latest(origin)
        if self._store is None:
            access, source = await self._download(origin, request, previous), "network"
        else:
            access, source = await self._load_shared(self._store, origin, request, previous)
            self._stats.inc_value("norobots/store/hits" if source == "store" else "norobots/store/misses")
        seconds = monotonic() - started
        await self.prepare(access, robot)  # before the cache asks for its size, which includes the rules
        if not isinstance(access.snapshots[-1].exception, ClosingError):
            await self.events.loaded.tell(Load(access, previous, source, seconds, request, robot))
        self.origins.put(origin, access)
        if access.rules is not None and (previous is None or access.rules is not previous.rules):
            self._announced[origin] = access
            try:
                await compat.send_robots_parsed(self._crawler, as_parser(access.rules), request)
            finally:
                del self._announced[origin]
        return access

    async def _load_shared(
        self, store: Store, origin: Origin, request: Request, previous: Access | None
    ) -> tuple[Access, str]:
        """Return the access, and its source: the store or the network, for all processes that share it."""
        stored = await self.recall(await store.load(origin), previous)
        if stored is not None and stored.lifetime > 0:
            return stored, "store"
        waited, pause = 0.0, _FIRST_PAUSE
        seconds = max(LOCK_SECONDS, self.config.timeout * (1 + self.config.retry_times))
        while waited < self.config.longest_download and not compat.is_closing(self._crawler):
            previous = stored or previous
            is_held, snapshots = await store.lock(origin, seconds)
            # Another process may have saved it after the look into the store and before the lock. What it
            # saved during the wait is used even if it has expired since.
            stored = await self.recall(snapshots, previous)
            if stored is not None and (stored.lifetime > 0 or waited):
                await store.unlock(origin)
                return stored, "store"
            if is_held:
                break
            await compat.sleep(pause)
            waited += pause
            pause = min(2 * pause, _LONGEST_PAUSE)
        return await self._download(origin, request, stored or previous), "network"

    async def recall(self, snapshots: Sequence[Snapshot], previous: Access | None = None) -> Access | None:
        """Return the access for what a store has, if it is newer than `previous`; else None."""
        last = previous.snapshots[-1].time if previous else 0.0
        # A time in the future is that of a wrong clock: what was saved since then is newer.
        if not snapshots or snapshots[-1].time == last or snapshots[-1].time < last <= time.time():
            return None
        if snapshots[-1].failures and snapshots[-1].time < self.events.started.timestamp():
            # This crawl has its own retries, and does not wait for those of earlier ones, which grow longer.
            snapshots = (*snapshots[:-1], replace(snapshots[-1], failures=1))
        access = await read_bodies(
            self._thread, snapshots, partial(self.judge.recall, snapshots, time.time())
        )
        self.events.recalled.send(access.snapshots)  # as judged: a parser may have failed on them
        return access

    async def _download(self, origin: Origin, request: Request, previous: Access | None) -> Access:
        """Download and judge a robots.txt; save it in the store, if there is one, which releases its lock."""
        self._stats.inc_value("robotstxt/request_count")
        earlier = previous.snapshot if previous is not None and previous.rules is not None else None
        snapshot = await self._fetcher.fetch(origin, request, earlier)
        if snapshot.status is not None:
            self._stats.inc_value("robotstxt/response_count")
            self._stats.inc_value(f"robotstxt/response_status_count/{snapshot.status}")
        elif not isinstance(snapshot.exception, IgnoreRequest):
            self._stats.inc_value(f"robotstxt/exception_count/{type(snapshot.exception)}")
        access = await read_bodies(self._thread, [snapshot], partial(self.judge.judge, snapshot, previous))
        judged = access.snapshots[-1]
        self.events.downloaded.send(judged)
        if self._store is not None and judged.local_failure:
            await self._store.unlock(origin)
        elif self._store is not None:
            # It is used while it is fresh, then as a stale copy, and for its number of failures in a row.
            longest = max(self.config.freshness.stale_ttl, LONGEST_BACK_OFF)
            await self._store.save(access.snapshots, judged.time + access.lifetime + longest)
        return access

    def _open_store(self) -> Store | None:
        value = self.config.store
        if value == MEMORY:
            return None
        shown = without_password(value)
        try:
            store = open_store(
                value,
                self.config.store_max,
                self.config.maxsize,
                has_asyncio=compat.has_asyncio(self._crawler),
            )
        except (ImportError, ValueError) as exc:
            raise error("NOROBOTS_STORE", value, str(exc)) from None
        logger.info("Storing robots.txt files in %s (NOROBOTS_STORE)", shown)
        return CircuitBreaker(
            store, f"NOROBOTS_STORE {shown}", lambda: self._stats.inc_value("norobots/store/failures")
        )
