"""What is known of each origin: the cache in memory, and one load at a time for what is not in it.

`OriginCache` is bounded by origins and by bytes; the least recently used are evicted first.
`OriginCache.get` is the hot path: a dictionary look-up. `SharedLoads` lets everyone who waits for an origin
share one load. It belongs to none of them, so that cancelling a waiter, the first one included, disturbs no
other.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from twisted.internet.defer import Deferred

from scrapy_norobots import compat
from scrapy_norobots.access import Access
from scrapy_norobots.standard import Origin

_T = TypeVar("_T")
_Key = TypeVar("_Key", bound=Hashable)


@dataclass(slots=True)
class _Entry:
    access: Access
    size: int
    expires: float
    uses: int = 0


class OriginCache:
    """What may be fetched at each origin, for the lifetime of each access.

    `origins_max` and `memory_max` (bytes) bound it. `on_leave` is called with each origin that is replaced
    or evicted, and with how often `get` returned it. `clock` returns seconds that never go back. `size` is
    about how much memory the origins take, in bytes.
    """

    def __init__(
        self,
        *,
        origins_max: int,
        memory_max: int,
        on_leave: Callable[[Origin, int], object] = lambda _origin, _uses: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._origins_max = origins_max
        self._memory_max = memory_max
        self._on_leave = on_leave
        self._clock = clock
        self._entries: OrderedDict[Origin, _Entry] = OrderedDict()
        self.size = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, origin: Origin) -> Access | None:
        """Return the access of an origin, or None if there is none that is fresh."""
        entry = self._entries.get(origin)
        if entry is None or entry.expires <= self._clock():
            return None
        self._entries.move_to_end(origin)
        entry.uses += 1
        return entry.access

    def peek(self, origin: Origin) -> Access | None:
        """Return the same as `get`, but do not count it as a use."""
        entry = self._entries.get(origin)
        return None if entry is None or entry.expires <= self._clock() else entry.access

    def latest(self, origin: Origin) -> Access | None:
        """Return the latest access of an origin, fresh or not."""
        entry = self._entries.get(origin)
        return entry.access if entry else None

    def remaining(self, origin: Origin) -> float:
        """Return for how many seconds the access of an origin is still fresh; 0 if there is none."""
        entry = self._entries.get(origin)
        return max(0.0, entry.expires - self._clock()) if entry else 0.0

    def put(self, origin: Origin, access: Access) -> None:
        """Keep an access in place of the one before, and evict what is over the bounds."""
        if origin in self._entries:
            self._remove(origin)
        entry = _Entry(access, access.size, self._clock() + access.lifetime)
        self._entries[origin] = entry
        self.size += entry.size
        while len(self._entries) > self._origins_max or (
            self.size > self._memory_max and len(self._entries) > 1
        ):
            self._remove(next(iter(self._entries)))

    def clear(self) -> None:
        """Remove all origins."""
        while self._entries:
            self._remove(next(iter(self._entries)))

    def _remove(self, origin: Origin) -> None:
        entry = self._entries.pop(origin)
        self.size -= entry.size
        self._on_leave(origin, entry.uses)


@dataclass(slots=True)
class _Load(Generic[_T]):
    waiters: list[Deferred[_T]] = field(default_factory=list)
    task: Deferred[None] | None = None


class SharedLoads(Generic[_Key, _T]):
    """The loads that are under way, at most one for each key, such as an origin."""

    def __init__(self) -> None:
        self._loads: dict[_Key, _Load[_T]] = {}

    def __len__(self) -> int:
        return len(self._loads)

    async def join(self, key: _Key, load: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Return the result of the load for a key, which starts if none is under way.

        Its exceptions propagate to every waiter.
        """
        waiter: Deferred[_T] = Deferred()
        if key in self._loads:
            self._loads[key].waiters.append(waiter)
        else:
            shared = self._loads[key] = _Load([waiter])
            shared.task = compat.spawn(self._run(key, load))
        return await compat.waiting_for(waiter)

    async def _run(self, key: _Key, load: Callable[[], Coroutine[Any, Any, _T]]) -> None:
        try:
            result = await load()
        except BaseException as exc:
            # A bug, or the event loop is being torn down. Either way nobody may be left waiting.
            for waiter in self._end(key):
                if isinstance(exc, Exception):
                    waiter.errback(exc)
                else:
                    waiter.cancel()
            if isinstance(exc, (KeyboardInterrupt, SystemExit)):
                raise  # every waiter has been called
        else:
            for waiter in self._end(key):
                waiter.callback(result)

    def _end(self, key: _Key) -> Iterator[Deferred[_T]]:
        """End a load and yield the waiters, one by one: what one does next can cancel another."""
        return (waiter for waiter in self._loads.pop(key).waiters if not waiter.called)
