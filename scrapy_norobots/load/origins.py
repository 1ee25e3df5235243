"""The cache of origins in memory, and one load at a time for each origin that is not in it.

`OriginCache` has a limit of bytes, and evicts the least recently used first. `OriginCache.get`
is the hot path: a dictionary look-up. With `SharedLoads`, all requests that wait for an origin share one
load. No waiter owns the load, so to cancel one, even the first, does not affect the others.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from scrapy_norobots.rules.access import Access
from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.standard import Origin

_T = TypeVar("_T")
_Key = TypeVar("_Key", bound=Hashable)


@dataclass(slots=True)
class _Entry:
    access: Access
    size: int
    expires: float


class OriginCache:
    """The accesses of origins, each until its lifetime ends.

    `memory_max` (bytes) limits the cache. `clock` returns seconds that never go back. The attribute `size` is
    the approximate memory use, in bytes.
    """

    def __init__(self, *, memory_max: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._memory_max = memory_max
        self._clock = clock
        self._entries: OrderedDict[Origin, _Entry] = OrderedDict()
        self.size = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, origin: Origin) -> Access | None:
        """Return the access of an origin; None if there is none, or if it has expired."""
        access = self.peek(origin)
        if access is not None:
            self._entries.move_to_end(origin)
        return access

    def peek(self, origin: Origin) -> Access | None:
        """Return the same as `get`, without marking the origin as used."""
        entry = self._entries.get(origin)
        return None if entry is None or entry.expires <= self._clock() else entry.access

    def latest(self, origin: Origin) -> Access | None:
        """Return the access of an origin, expired or not; None if there is none."""
        entry = self._entries.get(origin)
        return entry.access if entry else None

    def remaining(self, origin: Origin) -> float:
        """Return for how many seconds the access of an origin remains valid; 0 if it is not."""
        entry = self._entries.get(origin)
        return max(0.0, entry.expires - self._clock()) if entry else 0.0

    def put(self, origin: Origin, access: Access) -> None:
        """Store an access, replacing the previous one, and evict origins while the limit is exceeded."""
        if origin in self._entries:
            self._remove(origin)
        entry = _Entry(access, access.size, self._clock() + access.lifetime)
        self._entries[origin] = entry
        self.size += entry.size
        while self.size > self._memory_max and len(self._entries) > 1:
            self._remove(next(iter(self._entries)))

    def _remove(self, origin: Origin) -> None:
        self.size -= self._entries.pop(origin).size


@dataclass(slots=True)
class _Load(Generic[_T]):
    waiters: list[Deferred[_T]] = field(default_factory=list)
    task: Deferred[None] | None = None


class SharedLoads(Generic[_Key, _T]):
    """The running loads, at most one for each key, such as an origin."""

    def __init__(self) -> None:
        self._loads: dict[_Key, _Load[_T]] = {}

    def __len__(self) -> int:
        return len(self._loads)

    async def join(self, key: _Key, load: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Return the result of the load for a key; start `load` if none is running.

        Exceptions of the load propagate to every waiter.
        """
        waiter: Deferred[_T] = Deferred()
        if key in self._loads:
            self._loads[key].waiters.append(waiter)
        else:
            shared = self._loads[key] = _Load([waiter])
            shared.task = compat.spawn(self._run(key, load))
        return await compat.waiting_for(waiter)

    async def _run(self, key: _Key, load: Callable[[], Coroutine[Any, Any, _T]]) -> None:
        result: _T | Failure
        try:
            result = await load()
        except BaseException:  # a bug, or the event loop is being torn down: every waiter must be called
            result = Failure()  # type: ignore[no-untyped-call]
        for waiter in self._loads.pop(key).waiters:
            if not waiter.called:  # resuming one may cancel another
                waiter.callback(result)
