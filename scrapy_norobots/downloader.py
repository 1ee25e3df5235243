"""`RobotsDownloader`: Scrapy's downloader, in which waiting for a robots.txt takes no place of the crawl.

Each request in Scrapy's downloader takes one of the `CONCURRENT_REQUESTS` places of the crawl, whether it is
being sent or waits. Here three kinds of requests take none, within the bounds of `WaitingConfig`: downloads
of a robots.txt; requests that are *held* until one has come; and requests that then stand *in line* until
their download slot can send them and the crawl has a place for them. Neither the limit nor the delays that
Scrapy keeps are ever changed.

`waiting_room` returns a crawl's downloader, or `NoWaitingRoom` if that is another one, or if Scrapy lacks one
of the `INTERNALS`. Requests that wait then take places, as with Scrapy's own robots.txt middleware.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import scrapy
from scrapy import signals
from scrapy.core.downloader import Downloader
from twisted.internet.defer import Deferred

from scrapy_norobots import compat
from scrapy_norobots.internals import least_delay, missing_internals, now, slot_of, widen_pool
from scrapy_norobots.settings import WaitingConfig

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_norobots.standard import Origin

logger = logging.getLogger(__name__)

# In the meta of a download of robots.txt, which tells it from other requests: the origin.
ROBOTS_DOWNLOAD = "norobots_download"

# A request that has a place may still wait for one in line, in a way that nothing here can see. So if nothing
# has moved or been sent for this many seconds, one goes on without a place.
_STANDSTILL = 1.0

# Whether what runs now does so on behalf of a request in the downloader, as its middlewares do.
_is_nested: ContextVar[bool] = ContextVar("norobots_is_nested", default=False)


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
        self._stop_watching: Callable[[], object] | None = None
        self._moved = 0.0
        self._is_admitting = False
        self._widened: set[str] = set()
        crawler.signals.connect(self._reach, signals.request_reached_downloader)
        super().__init__(crawler)

    def needs_backout(self) -> bool:
        """Whether the engine should send no more requests for now; without a limit it always may.

        For each request in line that goes on, the engine may send one for which there is no place yet. If its
        origin is new, its robots.txt is not asked for too late; if not, it stands in line too.
        """
        if not self.is_in_use:
            return super().needs_backout()
        _is_nested.set(False)  # what the engine sends next, it sends from the scheduler
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
            self._make_room_for_connections(urlsplit(request.url).scheme)
        elif _is_nested.get():
            self._nested.add(request)
        elif self.is_in_use and not self._has_place():
            self._ahead = 0
        token = _is_nested.set(True)  # for all that is done on behalf of this request
        try:
            done: Deferred[Any] = super().fetch(request, *args)
        finally:
            _is_nested.reset(token)
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
            if is_robots and least_delay(slot):
                self._lines.setdefault(slot, deque())
            self._look_at(slot)
            self._admit()
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
        if self._stop_watching:
            self._stop_watching()
        super().close()

    def _make_room_for_connections(self, scheme: str) -> None:
        """See that a robots.txt does not wait for a connection, in which time it would time out.

        Some download handlers open `CONCURRENT_REQUESTS` connections at most.
        """
        if scheme not in self._widened:
            self._widened.add(scheme)
            widen_pool(self, scheme, self._config.concurrent_fetches)

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

    def line_up(self, slot: Any) -> None:
        """Have requests of a slot stand in line until its delay, which is longer now, is over."""
        self._lines.setdefault(slot, deque())
        self._look_at(slot)

    def _has_place(self) -> bool:
        return not 0 < self.total_concurrency <= self.under_way()

    def _seconds_until_free(self, slot: Any) -> float | None:
        """Return when a slot can send one more request; None if that is when one of its requests has left."""
        if not least_delay(slot):
            return 0 if len(slot.active) - self._held_in[slot] < slot.concurrency else None
        if len(slot.transferring) >= slot.concurrency:
            return None
        # What is in Scrapy's queue goes first.
        last = now() if slot.queue else max(slot.lastseen, self._last_turns.get(slot, 0.0))
        seconds: float = last + least_delay(slot) - now()
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
        self._last_turns[slot] = now()
        self._ready.pop(slot, None)  # behind the other slots
        held = self._lines[slot].popleft()
        self._count(held, is_counted=False)
        self._ahead = 1
        assert held.waiter is not None  # it is in line
        held.waiter.callback(None)
        self._look_at(slot)

    def _watch(self) -> None:
        if self._stop_watching is None:
            self._moved = monotonic()
            self._stop_watching = compat.call_later(_STANDSTILL, self._look_at_all)

    def _look_at_all(self) -> None:
        """End a standstill; and see what nobody has said, such as a limit that a user's code has changed."""
        if not any(self._lines.values()):
            self._stop_watching = None
            return
        self._stop_watching = compat.call_later(_STANDSTILL, self._look_at_all)
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

    def line_up(self, slot: Any) -> None:
        """Do nothing."""

    @contextmanager
    def hold(self, origin: Origin | None, request: Request) -> Iterator[NoWaitingRoom]:
        """Do nothing."""
        yield self

    async def turn(self) -> bool:
        """Return False at once: the request goes on."""
        return False


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
