"""`RobotsDownloader`: Scrapy's downloader, but requests that wait for robots.txt are not counted.

In Scrapy, each request in the downloader counts against `CONCURRENT_REQUESTS`, whether it is being sent or
waits: it takes one of the *places* of the crawl. Here, within the limits of `WaitingConfig`, three kinds of
requests take none: downloads of robots.txt; requests that are *held* until a robots.txt has arrived; and
requests that are then *queued* until their download slot can send them and the crawl has a free place. The
limit itself and Scrapy's delays are never changed.

The module `waiting_room` finds out whether a crawl has this downloader.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.core.downloader import Downloader
from scrapy.exceptions import IgnoreRequest
from scrapy.http.request import NO_CALLBACK
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from scrapy_norobots import compat
from scrapy_norobots.internals import least_delay, now, slot_of, widen_pool
from scrapy_norobots.settings import WaitingConfig

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_norobots.standard import Origin

# The meta key that marks a download of robots.txt; its value is the origin.
ROBOTS_DOWNLOAD = "norobots_download"

# A request with a place may wait for a queued one, in a way that this module cannot see: a middleware may
# download a page for each page. So if for this many seconds nothing has moved, and no page is being sent, one
# queued request continues without a place.
_STANDSTILL = 1.0

# The request on behalf of which the current code runs: the code of its middlewares while it is in the
# downloader, and of its callback later.
_parent: ContextVar[Request | None] = ContextVar("norobots_parent", default=None)


class _IsSetAside(IgnoreRequest):
    """Code that called the middleware ignored its result: a request that is set aside must not be sent."""


# Waits until a held request can be sent, and gives it a place; returns whether it had to wait.
Turn = Callable[[], Coroutine[Any, Any, bool]]


async def no_turn() -> bool:
    """Return False at once: the request continues."""
    return False


@dataclass(slots=True, eq=False)
class _Held:
    """A request that waits, first for its rules, and then in the line of its slot."""

    origin: Origin | None
    slot: Any
    is_nested: bool
    is_counted: bool = False
    waiter: Deferred[None] | None = None


@dataclass(slots=True, eq=False)
class _Line:
    """The queue of a slot. A slot also has one while its delay after a robots.txt lasts."""

    waiting: deque[_Held] = field(default_factory=deque)
    cancel_timer: Callable[[], object] | None = None  # for the end of a delay; the line stays until then
    last_turn: float = 0.0  # when the slot last admitted a request from its line, by `now`


class RobotsDownloader(Downloader):
    """Scrapy's downloader, in which waiting for a robots.txt does not count against ``CONCURRENT_REQUESTS``.

    The add-on sets ``DOWNLOADER = "scrapy_norobots.RobotsDownloader"``. Without `NoRobotsMiddleware` it does
    what Scrapy's downloader does. Raises `ValueError` if a setting is invalid.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler  # Scrapy sets it from 2.14 on
        # Whether requests wait here. `waiting_room` sets it, unless an internal name is missing.
        self.is_in_use = False
        self._config = WaitingConfig.from_settings(crawler.settings)
        self._robots_downloads = 0
        # Held requests in total, by origin and by slot; and how many the limit per origin does not count.
        self._held_in_all = 0
        self._held: Counter[Origin | None] = Counter()
        self._held_in: Counter[Any] = Counter()
        self._free = 0
        # The slot of each request that has been held, until the request leaves.
        self._slots_of: dict[Request, Any] = {}
        # Requests that a middleware downloads on behalf of another request, which waits for them.
        self._nested: set[Request] = set()
        # Other requests whose responses other code waits for, such as a callback.
        self._awaited: set[Request] = set()
        # The lines of slots, and the slots that can send the first request of their line, in turns.
        self._lines: dict[Any, _Line] = {}
        self._ready: dict[Any, None] = {}
        # How many requests the engine may send above its limit.
        self._ahead = 0
        self._stop_watching: Callable[[], object] | None = None
        self._moved = 0.0
        self._is_admitting = False
        self._widened: set[str] = set()
        # Requests that the middleware sets aside, with what the engine waits for when they have left.
        self._set_aside: dict[Request, Deferred[Request]] = {}
        crawler.signals.connect(self._reach, signals.request_reached_downloader)
        super().__init__(crawler)

    def needs_backout(self) -> bool:
        """Return True if the engine should send no more requests for now. Without a limit, return False.

        For each queued request that continues, the engine may take one more from the scheduler before there
        is a place. If that one is of a new origin, its robots.txt is downloaded meanwhile; else it is queued.
        """
        _parent.set(None)  # the next request comes from the scheduler
        if not self.is_in_use:
            return super().needs_backout()
        counted = self._held_in_all - min(self._free, self._config.held_max)
        ahead = self._ahead if self._lines else 0
        return 0 < self.total_concurrency <= self.under_way() + counted - ahead

    def under_way(self) -> int:
        """Return how many requests have a place: all but free downloads of robots.txt and held requests."""
        free_downloads = min(self._robots_downloads, self._config.concurrent_fetches)
        return len(self.active) - free_downloads - self._held_in_all

    def fetch(self, request: Request, *args: Any) -> Deferred[Any]:
        """Download a request like Scrapy's downloader. Until Scrapy 2.13, `args` has the spider."""
        is_robots = self.is_in_use and ROBOTS_DOWNLOAD in request.meta
        self._robots_downloads += is_robots
        if is_robots:
            self._make_room_for_connections(request.url.partition(":")[0])
        elif (parent := _parent.get()) in self.active:
            self._nested.add(request)
        elif parent is not None:
            self._awaited.add(request)
        if not is_robots and request not in self._nested and self.is_in_use and not self._has_place():
            self._ahead = 0
        token = _parent.set(request)  # for all code that runs on behalf of this request
        try:
            done: Deferred[Any] = super().fetch(request, *args)
        finally:
            _parent.reset(token)
        return done.addBoth(self._leave, request, is_robots)

    def _leave(self, result: Any, request: Request, is_robots: bool) -> Any:
        """Admit queued requests after a request has left. The engine uses a free place only after this."""
        self._robots_downloads -= is_robots
        self._nested.discard(request)
        self._awaited.discard(request)
        self._moved = monotonic()
        slot = self._slots_of.pop(request, None)
        if slot is not None:
            slot.active.discard(request)
        if is_robots or self._lines:
            slot = slot or slot_of(self, request, self.crawler.spider)
            if is_robots and least_delay(slot):
                self._lines.setdefault(slot, _Line())
            self._look_at(slot)
            self._admit()
        waiter = self._set_aside.pop(request, None)
        if waiter is None or (isinstance(result, Failure) and not isinstance(result.value, _IsSetAside)):
            return result
        compat.look_for_next_request(self.crawler)  # the engine does not know that it has left
        return waiter

    def _enqueue_request(self, request: Request, *args: Any, **kwargs: Any) -> Any:
        """Send a request, unless it is set aside."""
        if request in self._set_aside:
            raise _IsSetAside("the request waits until robots.txt is downloaded again")
        return super()._enqueue_request(request, *args, **kwargs)

    def _reach(self, request: Request) -> None:
        """Update the slot of a held request that a middleware has moved to another slot."""
        before = self._slots_of.get(request)
        if before is not None and before is not (slot := slot_of(self, request, self.crawler.spider)):
            self._slots_of[request] = slot
            before.active.discard(request)
            # Nothing was sent in that slot, so its next request need not wait.
            if line := self._lines.get(before):
                line.last_turn = 0.0
                if line.cancel_timer:
                    line.cancel_timer()
                    line.cancel_timer = None
            self._look_at(before)
            self._admit()

    def close(self) -> None:
        """Close the downloader."""
        for line in self._lines.values():
            if line.cancel_timer:
                line.cancel_timer()
        if self._stop_watching:
            self._stop_watching()
        super().close()

    def _make_room_for_connections(self, scheme: str) -> None:
        """Let a download handler open more connections, so that no robots.txt waits for one and times out.

        Some download handlers open at most `CONCURRENT_REQUESTS` connections.
        """
        if scheme not in self._widened:
            self._widened.add(scheme)
            widen_pool(self, scheme, self._config.concurrent_fetches)

    def set_aside(self, request: Request) -> Deferred[Request] | None:
        """Let a request that the middleware returns leave the downloader, but not reach the engine yet.

        Returns a deferred; the engine gets what the deferred is called with. Returns None if the request
        cannot be set aside: it is not in the downloader, or another request there waits for it.
        """
        if request not in self.active or request in self._nested:
            return None
        waiter: Deferred[Request] = Deferred()
        self._set_aside[request] = waiter
        return waiter

    def is_scheduled(self, request: Request) -> bool:
        """Return whether a request came from the scheduler; if not, other code waits for it."""
        return request not in self._awaited and request.callback is not NO_CALLBACK

    # Requests that are held

    @contextmanager
    def hold(self, origin: Origin | None, request: Request) -> Iterator[Turn]:
        """Hold a request of an origin inside the ``with``: it takes no place until its `Turn` is over."""
        if request not in self.active:  # the caller only asks the middleware, and downloads nothing
            yield no_turn
            return
        slot = self._slots_of.get(request) or slot_of(self, request, self.crawler.spider)
        # Scrapy's priority queue sees a busy slot, and leaves its other requests on the scheduler.
        slot.active.add(request)
        self._slots_of[request] = slot
        held = _Held(origin, slot, is_nested=request in self._nested)
        self._count(held, is_counted=True)
        self._admit()
        compat.look_for_next_request(self.crawler)
        try:
            yield partial(self._turn, held)
        finally:
            self._count(held, is_counted=False)

    def _count(self, held: _Held, *, is_counted: bool) -> None:
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

    # Queued requests

    def must_wait(self, request: Request) -> bool:
        """Return whether a request must wait although its rules are known.

        It must if its slot has a queue, so that it overtakes none; while the delay of the slot after a
        download of robots.txt lasts; and if the engine took it from the scheduler before there was a place.
        """
        if not self._lines or request in self._nested:
            return False
        return (
            0 < self.total_concurrency < self.under_way()
            or slot_of(self, request, self.crawler.spider) in self._lines
        )

    async def _turn(self, held: _Held) -> bool:
        """Wait until a held request can be sent, and give it a place. Return whether it had to wait."""
        slot = held.slot
        is_free = slot not in self._lines and self._has_place() and self._seconds_until_free(slot) == 0
        if held.is_nested or is_free:
            self._count(held, is_counted=False)
            if is_free and least_delay(slot):  # it may be sent only later; the next one must not pass too
                self._lines[slot] = _Line(last_turn=now())
                self._look_at(slot)
            return False
        line = self._lines.setdefault(slot, _Line())
        held.waiter = Deferred()
        line.waiting.append(held)
        self._look_at(slot)
        if self._stop_watching is None:
            self._moved = monotonic()
            self._stop_watching = compat.call_later(_STANDSTILL, self._look_at_all)
        try:
            await compat.waiting_for(held.waiter)
        finally:
            if held in line.waiting:  # the wait was cancelled
                line.waiting.remove(held)
                self._look_at(slot)
        return True

    def line_up(self, slot: Any) -> None:
        """Give a slot a queue until its delay, which has become longer, is over."""
        self._lines.setdefault(slot, _Line())
        self._look_at(slot)

    def _has_place(self) -> bool:
        return not 0 < self.total_concurrency <= self.under_way()

    def _seconds_until_free(self, slot: Any) -> float | None:
        """Return in how many seconds a slot can send a request; None: when one of its requests has left."""
        if not least_delay(slot):
            return 0 if len(slot.active) - self._held_in[slot] < slot.concurrency else None
        if len(slot.transferring) >= slot.concurrency:
            return None
        # Requests in Scrapy's own queue go first.
        line = self._lines.get(slot)
        last: float = now() if slot.queue else max(slot.lastseen, line.last_turn if line else 0.0)
        return max(0.0, last + least_delay(slot) - now())

    def _look_at(self, slot: Any) -> None:
        """Check whether a slot can send the first request of its queue; if not yet, check again later."""
        line = self._lines.get(slot)
        if line is None or line.cancel_timer is not None:
            return
        seconds = self._seconds_until_free(slot)
        if seconds == 0 and line.waiting:
            self._ready.setdefault(slot)
            return
        self._ready.pop(slot, None)
        if seconds:
            line.cancel_timer = compat.call_later(seconds, partial(self._delay_is_over, slot))
        elif not line.waiting:
            del self._lines[slot]

    def _delay_is_over(self, slot: Any) -> None:
        self._lines[slot].cancel_timer = None
        self._look_at(slot)
        self._admit()

    def _admit(self) -> None:
        """Let queued requests continue while there are free places; the slots take turns."""
        if self._is_admitting:
            return  # a request that continues may leave at once; the loop below handles that
        self._is_admitting = True
        try:
            while self._ready and self._has_place():
                slot = next(iter(self._ready))
                self._look_at(slot)  # other requests may have made it busy meanwhile
                if slot in self._ready:
                    self._go_on(slot)
        finally:
            self._is_admitting = False

    def _go_on(self, slot: Any) -> None:
        self._moved = monotonic()
        self._ready.pop(slot, None)  # behind the other slots
        line = self._lines[slot]
        line.last_turn = now()
        held = line.waiting.popleft()
        self._count(held, is_counted=False)
        self._ahead = 1
        assert held.waiter is not None  # it is queued
        held.waiter.callback(None)
        self._look_at(slot)

    def _look_at_all(self) -> None:
        """End a standstill, and notice changes without an event, such as a limit changed by a user's code."""
        if not any(line.waiting for line in self._lines.values()):
            self._stop_watching = None
            return
        self._stop_watching = compat.call_later(_STANDSTILL, self._look_at_all)
        for slot in tuple(self._lines):
            self._look_at(slot)
        self._admit()
        if monotonic() - self._moved < _STANDSTILL or self._is_sending():
            return
        for slot, line in self._lines.items():
            if line.waiting and line.cancel_timer is None:
                self._go_on(slot)
                return

    def _is_sending(self) -> bool:
        """Return whether a page is being downloaded, or is about to be."""
        return any(
            slot.queue or any(ROBOTS_DOWNLOAD not in one.meta for one in slot.transferring)
            for slot in self.slots.values()
        )
