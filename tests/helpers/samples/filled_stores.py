"""Stores with four origins: one of each outcome."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Origin
from scrapy_norobots.stores.opening import open_store

HOUR = 3600
TOWN, CITY, VILLAGE = (Origin("http", f"{name}.example", 80) for name in ("town", "city", "village"))
SOCKET = Origin("https", "[::1]", 8443)
BODY = b"\xef\xbb\xbfUser-agent: *\r\nDisallow: /staff/\r\n# \xff\x1b[31m caf\xc3\xa9\n"


def snapshots(now: float) -> list[tuple[Snapshot, ...]]:
    """Return entries: rules, a site without robots.txt, one that is down, and a stale copy."""
    found = Snapshot(TOWN, TOWN.robots_url, now - 3 * HOUR, 200, headers={"etag": '"1\x1b"'}, body=BODY)
    missing = Snapshot(CITY, CITY.robots_url, now - 30 * HOUR, 404)
    down = Snapshot(SOCKET, SOCKET.robots_url, now - 3 * HOUR, error="TimeoutError: \u2026", failures=1)
    old = replace(found, origin=VILLAGE, url=VILLAGE.robots_url, time=now - 50 * HOUR, headers={})
    failed = Snapshot(VILLAGE, VILLAGE.robots_url, now - 3 * HOUR, 503, failures=2)
    return [(found,), (missing,), (down,), (old, failed)]


def fill(value: str, entries: Sequence[tuple[Snapshot, ...]]) -> None:
    async def work() -> None:
        store = open_store(value, 2**30)
        for entry in entries:
            await store.save(entry, time.time() + HOUR)
        await store.close()

    asyncio.run(work())


def age(value: str, origin: Origin, seconds: float) -> None:
    """Make the entry of an origin older, as if so much time had passed."""

    async def work() -> None:
        store = open_store(value, 2**30)
        older = tuple(replace(one, time=one.time - seconds) for one in await store.load(origin))
        await store.save(older, time.time() + HOUR)
        await store.close()

    asyncio.run(work())


# Options with which the outcomes do not change within minutes.
SLOW = ("-s", f"NOROBOTS_ERROR_TTL={10 * HOUR}")
