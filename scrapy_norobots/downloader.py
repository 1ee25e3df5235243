"""`RobotsDownloader`: Scrapy's downloader, in which waiting for a robots.txt takes no place of the crawl.

Each request in Scrapy's downloader takes one of the `CONCURRENT_REQUESTS` places of the crawl, whether it is
being sent or waits. Here three kinds of requests take none, within the bounds of `WaitingConfig`: downloads
of a robots.txt; requests that are *held* until one has come; and requests that then stand *in line* until
their download slot can send them and the crawl has a place for them. Neither the limit nor the delays that
Scrapy keeps are ever changed.

`INTERNALS` lists what the plugin uses of Scrapy's internals. `waiting_room` returns a crawl's downloader, or
`NoWaitingRoom` if that is another one or lacks a name of the list. Requests that wait then take places, as
with Scrapy's own robots.txt middleware.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from inspect import Parameter, signature
from operator import attrgetter
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import scrapy
from scrapy import signals
from scrapy.core import downloader as scrapy_downloader
from scrapy.core.downloader import Downloader
from twisted.internet.defer import Deferred

from scrapy_norobots import compat
from scrapy_norobots.settings import WaitingConfig

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler

    from scrapy_norobots.standard import Origin

logger = logging.getLogger(__name__)

# In the meta of a download of robots.txt, which tells it from other requests: the origin.
ROBOTS_DOWNLOAD = "norobots_download"

# What this plugin uses of Scrapy without Scrapy's promise to keep it, by owner. If one of these is missing,
# requests that wait take places.
INTERNALS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "engine": (
            "downloader",
            "_slot.closing",  # `slot` before Scrapy 2.13
            "_slot.nextcall.schedule",
        ),
        "downloader": (
            "active",  # requests that have entered and not left
            "handlers._get_handler",
            "needs_backout",  # whether the engine should send no more requests for now
            "slots",
            "total_concurrency",
            "_get_slot",
        ),
        "slot": (
            "active",  # requests that DownloaderAwarePriorityQueue counts as in progress
            "concurrency",
            "delay",  # seconds
            "lastseen",  # when the slot last sent a request, on the clock of Scrapy's downloader
            "queue",
            "transferring",
        ),
    }
)

# Where download handlers that need no reactor keep their limit of connections. Others have none.
POOLS = (
    ("_session.connector", "_limit"),  # aiohttp
    ("_client._transport._pool", "_max_connections"),  # httpx, until Scrapy 2.17
    ("_default_client._transport._pool", "_max_connections"),
)

# The clock of `Slot.lastseen`: until Scrapy 2.15 the time of day.
_now: Callable[[], float] = getattr(scrapy_downloader, "time", monotonic)

# A request that has a place may still wait for one in line, in a way that nothing here can see. So if nothing
# has moved or been sent for this many seconds, one goes on without a place.
_STANDSTILL = 1.0

# The request on whose behalf runs what runs now: its middlewares while it is in the downloader, its callback
# later.
_parent: ContextVar[Request | None] = ContextVar("norobots_parent", default=None)


class Held:
    """A request that waits in a `RobotsDownloader`: for its rules, and then for its turn."""

    __slots__ = ("_downloader", "is_counted", "is_nested", "origin", "slot", "waiter")

    def __init__(
        self, downloader: RobotsDownloader, origin: Origin | None, slot: Any, *, is_nested: bool
    ) -> None:
        self._downloader = downloader
        self.origin = origin
        self.slot = slot
        self.is_counted = False
        self.is_nested = is_nested
        self.waiter: Deferred[None] | None = None

    async def turn(self) -> bool:
        """Wait until the request can be sent, and give it a place; return whether it had to wait."""
        return await self._downloader.turn(self)


class RobotsDownloader(Downloader):
    """Downloader for ``DOWNLOADER = "scrapy_norobots.RobotsDownloader"``, which the add-on sets.

    Without the middleware it does what Scrapy's downloader does. Raises `ValueError` for a bad setting.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler  # Scrapy sets it from 2.14 on
        # Whether requests wait here. `waiting_room` says so, unless something is missing.
        self.is_in_use = False
        self._config = WaitingConfig.from_settings(crawler.settings)
        self._robots_downloads = 0
        # Held requests: all, by origin, by slot; and how many of them are free by the bound of their origin.
        self._held_in_all = 0
        self._held: Counter[Origin | None] = Counter()
        self._held_in: Counter[Any] = Counter()
        self._free = 0
        # The slot in which each request stands that has been held, until it leaves.
        self._slots_of: dict[Request, Any] = {}
        # Requests that are downloaded on behalf of another, by a middleware: that one waits for them.
        self._nested: set[Request] = set()
        # Requests in line, by slot. A slot has a line too while its delay after a robots.txt is not over.
        self._lines: dict[Any, deque[Held]] = {}
        # Slots that can send the first of their line, in turns; slots that can do so after a known time.
        self._ready: dict[Any, None] = {}
        self._delayed: dict[Any, Callable[[], object]] = {}
        # When the line of a slot last let a request go on.
        self._last_turns: dict[Any, float] = {}
        # How many requests the engine may send beyond its limit.
        self._ahead = 0
        self._is_watching = False
        self._moved = 0.0
        self._is_admitting = False
        self._widened: set[str] = set()
        # Requests that the middleware sets aside: what is waited for when they have left.
        self._set_aside: dict[Request, Deferred[Request]] = {}
        crawler.signals.connect(self._reach, signals.request_reached_downloader)
        super().__init__(crawler)

    def needs_backout(self) -> bool:
        """Whether the engine should send no more requests for now; without a limit it always may.

        For each request in line that goes on, the engine may send one for which there is no place yet. If its
        origin is new, its robots.txt is not asked for too late; if not, it stands in line too.
        """
        if not self.is_in_use:
            return super().needs_backout()
        _parent.set(None)  # what the engine sends next, it sends from the scheduler
        counted = self._held_in_all - min(self._free, self._config.held_max)
        ahead = self._ahead if self._lines else 0
        return 0 < self.total_concurrency <= self.under_way() + counted - ahead

    def under_way(self) -> int:
        """Return how many requests have a place: all but free downloads of robots.txt and what is held."""
        free_downloads = min(self._robots_downloads, self._config.concurrent_fetches)
        return len(self.active) - free_downloads - self._held_in_all

    def fetch(self, request: Request, *args: Any) -> Deferred[Any]:
        """Download a request, as Scrapy's downloader does. Until Scrapy 2.13 the spider comes with it."""
        is_robots = self.is_in_use and ROBOTS_DOWNLOAD in request.meta
        self._robots_downloads += is_robots
        if is_robots:
            self._widen_pool(urlsplit(request.url).scheme)
        elif _parent.get() in self.active:
            self._nested.add(request)
        elif self.is_in_use and not self._has_place():
            self._ahead = 0
        token = _parent.set(request)
        try:
            done: Deferred[Any] = super().fetch(request, *args)
        finally:
            _parent.reset(token)
        return done.addBoth(self._leave, request, is_robots)

    def _leave(self, result: Any, request: Request, is_robots: bool) -> Any:
        """See who can go on when a request has left. The engine looks for a place only after this."""
        self._robots_downloads -= is_robots
        self._nested.discard(request)
        self._moved = monotonic()
        slot = self._slots_of.pop(request, None)
        if slot is not None:
            slot.active.discard(request)
        if is_robots or self._lines:
            slot = slot or slot_of(self, request, self.crawler.spider)
            if is_robots and slot.delay:
                self._lines.setdefault(slot, deque())
            self._look_at(slot)
            self._admit()
        if request in self._set_aside:
            compat.look_for_next_request(self.crawler)  # for the engine, it has not left
            return self._set_aside.pop(request)
        return result

    def _reach(self, request: Request) -> None:
        """See that a request is sent in the slot in which it is, which a middleware may have changed."""
        before = self._slots_of.get(request)
        if before is not None and before is not (slot := slot_of(self, request, self.crawler.spider)):
            self._slots_of[request] = slot
            before.active.discard(request)
            # Nothing was sent there, so the next one need not wait.
            self._last_turns.pop(before, None)
            if before in self._delayed:
                self._delayed.pop(before)()
            self._look_at(before)
            self._admit()

    def close(self) -> None:
        """Close the downloader."""
        for cancel in self._delayed.values():
            cancel()
        super().close()

    def _widen_pool(self, scheme: str) -> None:
        """Have the download handler of a scheme open more connections, if it has a limit of its own.

        That limit is `CONCURRENT_REQUESTS`. A robots.txt that waits for a connection would time out.
        """
        if scheme in self._widened:
            return
        self._widened.add(scheme)
        handler = self.handlers._get_handler(scheme)  # noqa: SLF001
        for path, name in POOLS:
            try:
                pool = attrgetter(path)(handler)
                limit = getattr(pool, name)
            except Exception:  # noqa: S112  # another handler
                continue
            if isinstance(limit, int) and limit > 0:
                setattr(pool, name, limit + self._config.concurrent_fetches)

    def set_aside(self, request: Request) -> Deferred[Request] | None:
        """Keep a request that the middleware gives back out of the downloader and from the engine.

        The engine gets what the deferred is called with. It is None, and the request cannot be set aside, if
        it is not in the downloader, or is there on behalf of another, which would wait in its place.
        """
        if request not in self.active or request in self._nested:
            return None
        waiter: Deferred[Request] = Deferred()
        self._set_aside[request] = waiter
        return waiter

    # Requests that are held

    @contextmanager
    def hold(self, origin: Origin | None, request: Request) -> Iterator[Held | NoWaitingRoom]:
        """Hold a request of an origin inside the ``with``: it takes no place until it has had its turn."""
        if request not in self.active:  # somebody asks the middleware, and downloads nothing
            yield _NO_WAITING_ROOM
            return
        slot = self._slots_of.get(request) or slot_of(self, request, self.crawler.spider)
        # Scrapy's queue sees that the slot is busy, and leaves its other requests on the scheduler.
        slot.active.add(request)
        self._slots_of[request] = slot
        held = Held(self, origin, slot, is_nested=request in self._nested)
        self._count(held, is_counted=True)
        self._admit()
        compat.look_for_next_request(self.crawler)
        try:
            yield held
        finally:
            self._count(held, is_counted=False)

    def _count(self, held: Held, *, is_counted: bool) -> None:
        if held.is_counted is is_counted:
            return
        held.is_counted = is_counted
        by = 1 if is_counted else -1
        self._held_in_all += by
        self._free -= self._free_of(held.origin)
        for counter, key in ((self._held, held.origin), (self._held_in, held.slot)):
            counter[key] += by
            if not counter[key]:
                del counter[key]
        self._free += self._free_of(held.origin)

    def _free_of(self, origin: Origin | None) -> int:
        return min(self._held[origin], self._config.held_per_origin)

    # Requests in line

    def must_wait(self, request: Request) -> bool:
        """Whether a request has to wait for its turn although its rules are known.

        That is so while its slot has a line, so that none overtakes, or has not yet kept its delay after the
        download of a robots.txt; and if the engine has sent it ahead, before there is a place.
        """
        if not self._lines or request in self._nested:
            return False
        return (
            0 < self.total_concurrency < self.under_way()
            or slot_of(self, request, self.crawler.spider) in self._lines
        )

    async def turn(self, held: Held) -> bool:
        """Wait until a held request can be sent, and give it a place; return whether it had to wait."""
        slot = held.slot
        if held.is_nested:
            self._count(held, is_counted=False)
            return False
        if slot not in self._lines:
            if self._has_place() and self._seconds_until_free(slot) == 0:
                self._count(held, is_counted=False)
                return False
            self._lines[slot] = deque()
        held.waiter = Deferred()
        self._lines[slot].append(held)
        self._look_at(slot)
        self._watch()
        try:
            await compat.waiting_for(held.waiter)
        finally:
            if held in self._lines.get(slot, ()):  # the wait was cancelled
                self._lines[slot].remove(held)
                self._look_at(slot)
        return True

    def _has_place(self) -> bool:
        return not 0 < self.total_concurrency <= self.under_way()

    def _seconds_until_free(self, slot: Any) -> float | None:
        """Return when a slot can send one more request; None if that is when one of its requests has left."""
        if not slot.delay:
            return 0 if len(slot.active) - self._held_in[slot] < slot.concurrency else None
        if len(slot.transferring) >= slot.concurrency:
            return None
        # Scrapy waits for half to one and a half times the delay. What is in its queue goes first.
        last = _now() if slot.queue else max(slot.lastseen, self._last_turns.get(slot, 0.0))
        seconds: float = last + slot.delay / 2 - _now()
        return max(0.0, seconds)

    def _look_at(self, slot: Any) -> None:
        """Find out whether a slot can send what is first in its line; if not yet, look again then."""
        if slot not in self._lines or slot in self._delayed:
            return
        seconds = self._seconds_until_free(slot)
        if seconds:
            self._ready.pop(slot, None)
            self._delayed[slot] = compat.call_later(seconds, partial(self._delay_is_over, slot))
        elif not self._lines[slot]:
            self._ready.pop(slot, None)
            self._last_turns.pop(slot, None)
            del self._lines[slot]
        elif seconds is None:
            self._ready.pop(slot, None)
        else:
            self._ready.setdefault(slot)

    def _delay_is_over(self, slot: Any) -> None:
        del self._delayed[slot]
        self._look_at(slot)
        self._admit()

    def _admit(self) -> None:
        """Let requests in line go on, the slots in turns, as far as there are places."""
        if self._is_admitting:
            return  # one that goes on may leave at once; the loop below sees to what comes then
        self._is_admitting = True
        try:
            while self._ready and self._has_place():
                slot = next(iter(self._ready))
                self._look_at(slot)  # what overtook it may have made it busy
                if slot in self._ready:
                    self._go_on(slot)
        finally:
            self._is_admitting = False

    def _go_on(self, slot: Any) -> None:
        self._moved = monotonic()
        self._last_turns[slot] = _now()
        self._ready.pop(slot, None)  # behind the other slots
        held = self._lines[slot].popleft()
        self._count(held, is_counted=False)
        self._ahead = 1
        assert held.waiter is not None  # it is in line
        held.waiter.callback(None)
        self._look_at(slot)

    def _watch(self) -> None:
        if not self._is_watching:
            self._is_watching = True
            self._moved = monotonic()
            compat.call_later(_STANDSTILL, self._look_at_all)

    def _look_at_all(self) -> None:
        """End a standstill; and see what nobody has said, such as a limit that a user's code has changed."""
        if not any(self._lines.values()):
            self._is_watching = False
            return
        compat.call_later(_STANDSTILL, self._look_at_all)
        for slot in tuple(self._lines):
            self._look_at(slot)
        self._admit()
        if monotonic() - self._moved < _STANDSTILL or self._is_sending():
            return
        for slot, line in self._lines.items():
            if line and slot not in self._delayed:
                self._go_on(slot)
                return

    def _is_sending(self) -> bool:
        """Whether a page is being downloaded, or about to be."""
        return any(
            slot.queue or any(ROBOTS_DOWNLOAD not in one.meta for one in slot.transferring)
            for slot in self.slots.values()
        )


class NoWaitingRoom:
    """Stands in for a `RobotsDownloader` where there is none: requests wait in their places."""

    def must_wait(self, request: Request) -> bool:
        """Return False: whose rules are known never waits."""
        return False

    @contextmanager
    def hold(self, origin: Origin | None, request: Request) -> Iterator[NoWaitingRoom]:
        """Do nothing."""
        yield self

    async def turn(self) -> bool:
        """Return False at once: the request goes on."""
        return False

    def set_aside(self, request: Request) -> None:
        """Return None: it would wait in its place."""


_NO_WAITING_ROOM = NoWaitingRoom()


def waiting_room(crawler: Crawler) -> RobotsDownloader | NoWaitingRoom:
    """Return where the requests of a running crawl wait; if they take places there, log a WARNING."""
    downloader = getattr(crawler.engine, "downloader", None)
    if not isinstance(downloader, RobotsDownloader):
        problem = "DOWNLOADER is not scrapy_norobots.RobotsDownloader"
    elif missing := missing_internals(crawler):
        problem = f"Scrapy {scrapy.__version__} has no {', no '.join(missing)}"
    else:
        downloader.is_in_use = True
        return downloader
    logger.warning(
        "Requests that wait for a robots.txt count against CONCURRENT_REQUESTS, so a slow host can stall the "
        "crawl of others: %s",
        problem,
        extra={"spider": crawler.spider},
    )
    return _NO_WAITING_ROOM


def missing_internals(crawler: Crawler) -> list[str]:
    """Return which names of `INTERNALS` a running crawl does not have, each with its owner."""
    engine = crawler.engine
    downloader = getattr(engine, "downloader", None)
    owners = {
        "engine": engine,
        "downloader": downloader if isinstance(downloader, Downloader) else None,
        "slot": _any_slot(),
    }
    missing = []
    for owner, names in INTERNALS.items():
        for name in names:
            path = name if owner != "engine" or hasattr(engine, "_slot") else name.replace("_slot", "slot")
            try:
                attrgetter(path)(owners[owner])
            except AttributeError:
                missing.append(f"{owner}.{name}")
    return missing


def _any_slot() -> Any:
    try:
        return scrapy_downloader.Slot(1, 0.0, 0)
    except (AttributeError, TypeError):
        return None


def being_sent(crawler: Crawler, request: Request) -> Request | None:
    """Return the download of robots.txt that is being sent for a request, None if none is.

    A middleware may have put another request for the same URL in its place.
    """
    sent = slot_of(compat.downloader(crawler), request, crawler.spider).transferring
    return next((one for one in sent if ROBOTS_DOWNLOAD in one.meta and one.url == request.url), None)


def slot_of(downloader: Downloader, request: Request, spider: Spider | None) -> Any:
    """Return the download slot of a request."""
    find = downloader._get_slot  # noqa: SLF001
    needs_spider = _needs_spider(getattr(find, "__func__", find))
    return (find(request, spider) if needs_spider else find(request))[1]


@cache
def _needs_spider(find: Callable[..., object]) -> bool:
    """Whether a function must be given the spider, as before Scrapy 2.14."""
    spider = signature(find).parameters.get("spider")
    return spider is not None and spider.default is Parameter.empty
