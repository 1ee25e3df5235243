"""`RedisStore`: snapshots in Redis, which a fleet of machines shares.

An entry expires by itself when it cannot matter any more; Redis's own ``maxmemory`` bounds them in all. A
claim is redis-py's lock: it has an expiry too, and only who holds it can release it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.lock import Lock
from redis.exceptions import LockError

from scrapy_norobots.stores import entries
from scrapy_norobots.stores.guard import PATIENCE

if TYPE_CHECKING:
    from scrapy_norobots.snapshot import Snapshot
    from scrapy_norobots.standard import Origin

_SNAPSHOTS = "norobots:snapshots:"
_CLAIM = "norobots:claim:"

# How many connections a crawl opens at most: enough for any rate at which robots.txt files come.
_CONNECTIONS = 16


class RedisStore:
    """Snapshots in the Redis database that `url` names, as `redis.Redis.from_url` reads it.

    Raises `ValueError` for a URL that makes no sense.
    """

    def __init__(self, url: str) -> None:
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=_CONNECTIONS,
            timeout=PATIENCE,
            socket_timeout=PATIENCE,
            socket_connect_timeout=PATIENCE,
        )
        self._redis = Redis(connection_pool=pool)
        self._claims: dict[Origin, Lock] = {}

    async def load(self, origin: Origin) -> tuple[Snapshot, ...]:
        """Return the snapshots of an origin, oldest first."""
        entry = await self._redis.get(f"{_SNAPSHOTS}{origin}")
        return entries.decode(entry, origin) if isinstance(entry, bytes) else ()

    async def save(self, snapshots: Sequence[Snapshot], until: float) -> None:
        """Keep snapshots of one origin."""
        milliseconds = int((until - time.time()) * 1000)
        if milliseconds > 0:
            key = f"{_SNAPSHOTS}{snapshots[0].origin}"
            await self._redis.set(key, entries.encode(snapshots), px=milliseconds)

    async def claim(self, origin: Origin, seconds: float) -> bool:
        """Whether an origin's robots.txt may be downloaded here."""
        lock = Lock(self._redis, f"{_CLAIM}{origin}", timeout=seconds, blocking=False, thread_local=False)
        if not await lock.acquire():
            return False
        self._claims[origin] = lock
        return True

    async def release(self, origin: Origin) -> None:
        """End a claim."""
        lock = self._claims.pop(origin, None)
        if lock is None:
            return
        with suppress(LockError):  # it has expired, and may be another's
            await lock.release()

    async def close(self) -> None:
        """Close all connections."""
        await self._redis.aclose()
        await self._redis.connection_pool.disconnect()
