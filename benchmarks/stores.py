"""``stores``: loads and saves per second of each store, one at a time and many at a time."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from benchmarks.report import progress, table
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Origin
from scrapy_norobots.stores import Store
from scrapy_norobots.stores.circuit_breaker import CircuitBreaker
from scrapy_norobots.stores.opening import open_store
from tests.helpers.running.redisserver import NoRedisError, RedisServer

ENTRIES = 5_000
AT_ONCE = 100
BODY = b"User-agent: *\n" + b"".join(b"Disallow: /a/place/%d\n" % number for number in range(180))


@contextmanager
def values() -> Iterator[dict[str, str]]:
    """Return the values of `NOROBOTS_STORE` to measure."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        found = {"SQLite": f"sqlite:///{folder}/robots.sqlite"}
        try:
            found["Redis"] = stack.enter_context(RedisServer(folder)).url
        except NoRedisError as exc:
            progress(f"Redis is omitted: {exc}")
        yield found


async def rate(work: Callable[[int], Awaitable[object]], at_once: int) -> float:
    """Call `work` for each entry, a number of them at a time, and return the calls per second."""
    numbers = iter(range(ENTRIES))

    async def worker() -> None:
        for number in numbers:
            await work(number)

    start = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(at_once)))
    return ENTRIES / (time.perf_counter() - start)


async def measure(value: str) -> dict[str, float]:
    """Return the entries per second for each operation."""
    failures: list[None] = []
    store = CircuitBreaker(open_store(value, 2**30), value, lambda: failures.append(None))
    origins = [Origin("http", f"{number}.town.example", 80) for number in range(ENTRIES)]
    snapshots = [Snapshot(origin, origin.robots_url, time.time(), 200, body=BODY) for origin in origins]
    until = time.time() + 3600

    async def once_for_all(number: int, store: Store = store) -> None:
        """Do what the load of a new origin does: load; lock and load again; save and unlock."""
        origin = origins[number]
        await store.load(origin)
        await store.lock(origin, 60)
        await store.save((snapshots[number],), until)

    works: dict[str, Callable[[int], Awaitable[object]]] = {
        "new origins": once_for_all,
        "look-ups": lambda number: store.load(origins[number]),
        "writes": lambda number: store.save((snapshots[number],), until),
    }
    try:
        rates = {}
        for name, work in works.items():
            for at_once in (1, AT_ONCE):
                rates[f"{name}, {at_once} at a time"] = await rate(work, at_once)
        assert not failures
        return rates
    finally:
        await store.close()


def run(rounds: int) -> None:
    """Measure and print the table."""
    seen: dict[str, list[dict[str, float]]] = {}
    for number in range(1, rounds + 1):
        with values() as found:
            for name, value in found.items():
                progress(f"round {number} of {rounds}: {name}")
                seen.setdefault(name, []).append(asyncio.run(measure(value)))
    rows = [
        [what, *(f"{median(one[what] for one in seen[name]):,.0f}" for name in seen)]
        for what in next(iter(seen.values()))[0]
    ]
    table(
        f"stores: a second, with files of {len(BODY):,} bytes; medians of {rounds} rounds",
        ["", *seen],
        rows,
    )
