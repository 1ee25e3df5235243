"""The cache in memory, its limit, and shared loads. (For cancelling, see test_middleware.)"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, ensureDeferred

from scrapy_norobots.load.loader import OriginCache, SharedLoads
from scrapy_norobots.rules.access import Access, AccessKind
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.standard import Origin

_T = TypeVar("_T")


def origin(number: int) -> Origin:
    return Origin("http", f"{number}.town.example", 80)


SNAPSHOT = Snapshot(origin(0), origin(0).robots_url, 0.0, status=404)
FINE = Access(AccessKind.OPEN, SNAPSHOT, "4xx", lifetime=600)


class World:
    """A cache with a fixed clock, and loads that end at once in a stated order."""

    def __init__(self, *outcomes: Access, **bounds: Any) -> None:
        self.now = 1000.0
        self.outcomes = list(outcomes)
        self.asked: list[tuple[Origin, str, Access | None]] = []
        self.loads: SharedLoads[Origin, Access] = SharedLoads()
        self.cache = OriginCache(
            **{"memory_max": 10**6, **bounds},
            clock=lambda: self.now,
        )

    async def load(self, origin: Origin, asker: str) -> Access:
        self.asked.append((origin, asker, self.cache.latest(origin)))
        access = self.outcomes.pop(0) if self.outcomes else FINE
        self.cache.put(origin, access)
        return access

    def ask(self, origin: Origin, asker: str = "someone") -> Access:
        """What a request does: look into the cache, and wait if there is no access."""
        return self.cache.get(origin) or finish(self.loads.join(origin, partial(self.load, origin, asker)))


def finish(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine to its end, as this version of Scrapy waits without a reactor."""

    async def run() -> _T:
        return await coroutine

    try:
        compat.waiting_for(Deferred())
    except RuntimeError:  # without event loop and reactor, it needs a running loop
        return asyncio.run(run())
    results: list[_T] = []
    ensureDeferred(run()).addCallback(results.append)
    return results[0]


def test_an_access_is_used_until_it_expires() -> None:
    world = World()
    assert world.ask(origin(1), "first") is FINE
    world.now += 599.9
    assert world.ask(origin(1), "second") is FINE
    assert world.asked == [(origin(1), "first", None)]
    world.now += 0.1
    assert world.ask(origin(1), "third") is FINE
    assert world.asked[1:] == [(origin(1), "third", FINE)]


def test_memory_max_evicts_the_least_recently_used() -> None:
    world = World(memory_max=3 * FINE.size)
    for number in (1, 2, 3):
        world.ask(origin(number))
    world.ask(origin(1))
    world.ask(origin(4))
    assert [world.cache.get(origin(number)) is FINE for number in (1, 2, 3, 4)] == [
        True,
        False,
        True,
        True,
    ]
    assert len(world.cache) == 3


def test_one_origin_is_kept_however_large_it_is() -> None:
    world = World(memory_max=1)
    world.ask(origin(1))
    assert world.cache.get(origin(1)) is FINE
