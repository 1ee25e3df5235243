"""The origin registry: what is known of each origin, and one download at a time for what is not.

`get` is the hot path: a dictionary look-up. `wait` is for an origin that `get` does not know: the first to
come starts a *flight*, everyone waits for it, and the flight belongs to none of them, so that cancelling a
waiter, the first one included, disturbs no other. Memory is bounded by origins and by bytes; the least
recently used go first.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from twisted.internet.defer import Deferred

from scrapy_norobots import compat
from scrapy_norobots.access import Access
from scrapy_norobots.standard import Origin

_Asker = TypeVar("_Asker")


@dataclass(slots=True)
class _Entry:
    access: Access
    size: int
    expires: float
    uses: int = 0


@dataclass(slots=True)
class _Flight:
    # In the order in which they came; the values say nothing.
    waiters: dict[Deferred[Access], None] = field(default_factory=dict)
    task: Deferred[None] | None = None


class OriginRegistry(Generic[_Asker]):
    """What may be fetched at each origin.

    `load` gets the access of an origin, on behalf of whoever asked first, and is told what was known of
    it if that is no longer fresh; what it raises, all who wait get. An access counts for its lifetime.
    `origins_max` and `memory_max` (bytes) bound what is kept. `on_leave` is told of each origin whose access
    is replaced or let go, and how often `get` returned that. `clock` tells seconds that never go back.
    """

    def __init__(
        self,
        load: Callable[[Origin, _Asker, Access | None], Awaitable[Access]],
        *,
        origins_max: int,
        memory_max: int,
        on_leave: Callable[[Origin, int], object] = lambda _origin, _uses: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._load = load
        self._origins_max = origins_max
        self._memory_max = memory_max
        self._on_leave = on_leave
        self._clock = clock
        self._entries: OrderedDict[Origin, _Entry] = OrderedDict()
        self._flights: dict[Origin, _Flight] = {}
        self._size = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size(self) -> int:
        """About how much memory the origins take, in bytes."""
        return self._size

    def get(self, origin: Origin) -> Access | None:
        """Return the access of an origin, or None if it must be waited for."""
        entry = self._entries.get(origin)
        if entry is None or entry.expires <= self._clock():
            return None
        self._entries.move_to_end(origin)
        entry.uses += 1
        return entry.access

    def peek(self, origin: Origin) -> Access | None:
        """Return what `get` does, without counting as a use."""
        entry = self._entries.get(origin)
        return None if entry is None or entry.expires <= self._clock() else entry.access

    def remaining(self, origin: Origin) -> float:
        """Return for how many seconds what is known of an origin still counts; 0 if nothing is known."""
        entry = self._entries.get(origin)
        return max(0.0, entry.expires - self._clock()) if entry else 0.0

    def clear(self) -> None:
        """Let all origins go."""
        while self._entries:
            self._let_go(next(iter(self._entries)))

    async def wait(self, origin: Origin, asker: _Asker) -> Access:
        """Return the access of an origin, once the one download that is under way for all has ended."""
        flight = self._flights.get(origin)
        waiter: Deferred[Access] = Deferred()
        if flight is not None:
            flight.waiters[waiter] = None
        else:
            flight = self._flights[origin] = _Flight({waiter: None})
            flight.task = compat.spawn(self._fly(flight, origin, asker))
        try:
            return await compat.waiting_for(waiter)
        finally:
            flight.waiters.pop(waiter, None)

    async def _fly(self, flight: _Flight, origin: Origin, asker: _Asker) -> None:
        try:
            known = self._entries.get(origin)
            access = await self._load(origin, asker, known.access if known else None)
            self._keep(origin, access)
        except BaseException as exc:
            # A bug, or the event loop is being torn down. Either way nobody may be left waiting.
            for waiter in self._land(flight, origin):
                if isinstance(exc, Exception):
                    waiter.errback(exc)
                else:
                    waiter.cancel()
            if isinstance(exc, (KeyboardInterrupt, SystemExit)):
                raise  # whoever else waits for this task has been told
        else:
            for waiter in self._land(flight, origin):
                waiter.callback(access)

    def _land(self, flight: _Flight, origin: Origin) -> Iterator[Deferred[Access]]:
        """End a flight and yield who still waits: what one waiter does next can cancel another."""
        del self._flights[origin]
        for waiter in tuple(flight.waiters):
            if not waiter.called:
                yield waiter

    def _keep(self, origin: Origin, access: Access) -> None:
        known = self._entries.get(origin)
        if known is not None:
            self._let_go(origin)
        entry = _Entry(access, access.size, self._clock() + access.lifetime)
        self._entries[origin] = entry
        self._size += entry.size
        while len(self._entries) > self._origins_max or (
            self._size > self._memory_max and len(self._entries) > 1
        ):
            self._let_go(next(iter(self._entries)))

    def _let_go(self, origin: Origin) -> None:
        entry = self._entries.pop(origin)
        self._size -= entry.size
        self._on_leave(origin, entry.uses)
