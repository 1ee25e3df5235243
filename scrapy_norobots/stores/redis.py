"""`RedisStore`: snapshots in Redis, shared by any number of machines: one server, Sentinel, or a cluster.

An entry expires when it can no longer be used; Redis's own setting ``maxmemory`` limits the total size. Locks
expire too, and only the holder can release one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any
from uuid import uuid4

from redis.asyncio import RedisCluster

from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Origin
from scrapy_norobots.standard.robotstxt import SMALL_BODY
from scrapy_norobots.stores import LARGEST_FILE, Locked, entries
from scrapy_norobots.stores.redis_urls import close_client, connections_of, find_servers, open_client

_SNAPSHOTS = "norobots:snapshots:"
_LOCK = "norobots:lock:"

# Scripts, because each of them is one round trip. The keys are those of the lock and of the entry; the values
# begin with the owner of the lock. MGET returns nothing for a value of another type.
_LOCK_SCRIPT = """
local is_held = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
local found = redis.call('MGET', KEYS[1], KEYS[2])
if found[1] == ARGV[1] then
    is_held = redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return {is_held and 1 or 0, found[2]}
"""
_UNLOCK_SCRIPT = """
if redis.call('MGET', KEYS[1])[1] == ARGV[1] then
    redis.call('DEL', KEYS[1])
end
"""
_SAVE_SCRIPT = "redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])" + _UNLOCK_SCRIPT

# Larger entries are decompressed in a thread, in bytes.
_SMALL_ENTRY = 4096

# How many keys a step of SCAN looks at, including those of other programs; its entries are read at once.
_PAGE = 100


class RedisStore:
    """Snapshots in the Redis database or cluster at `url`, in one of the forms of `open_client`.

    Raises `ValueError` if the URL is invalid.
    """

    def __init__(self, url: str, maxsize: int = LARGEST_FILE) -> None:
        self._redis = open_client(url)
        self._connections = connections_of(url)
        self._is_cluster = isinstance(self._redis, RedisCluster)
        self._maxsize = maxsize
        self._owner = uuid4().hex.encode()

    @property
    def concurrent_calls(self) -> int:
        """How many calls may run at once: as many as there are connections."""
        return self._connections

    async def load(self, origin: Origin) -> tuple[Snapshot, ...]:
        # Another program may have stored a value that is not a string: GET would raise an error.
        await find_servers(self._redis)
        (entry,) = await self._redis.mget(self._keys(origin)[1])
        return await self._decode(entry, origin)

    async def lock(self, origin: Origin, seconds: float) -> Locked:
        is_held, entry = await self._run(_LOCK_SCRIPT, origin, int(seconds * 1000))
        return Locked(bool(is_held), await self._decode(entry, origin))

    async def save(self, snapshots: Sequence[Snapshot], until: float) -> None:
        milliseconds = int((until - time.time()) * 1000)
        if milliseconds <= 0:
            await self.unlock(snapshots[0].origin)
        else:
            await self._run(_SAVE_SCRIPT, snapshots[0].origin, await _encode(snapshots), milliseconds)

    async def unlock(self, origin: Origin) -> None:
        await self._run(_UNLOCK_SCRIPT, origin)

    async def items(self) -> AsyncIterator[tuple[Origin, tuple[Snapshot, ...]]]:
        """Yield each origin and its snapshots. The order is that of SCAN, so they are not sorted."""
        async for page in self._pages():
            for key, entry in page:
                name = key.decode("utf-8", "replace").removeprefix(_SNAPSHOTS)
                origin = entries.origin_of(name[1:-1] if self._is_cluster else name)
                if origin is not None and isinstance(entry, bytes):  # else it has expired
                    yield origin, await self._decode(entry, origin)

    async def delete(self, origin: Origin) -> bool:
        await find_servers(self._redis)
        return bool(await self._redis.delete(self._keys(origin)[1]))

    async def close(self) -> None:
        await close_client(self._redis)

    async def _run(self, script: str, origin: Origin, *values: bytes | int) -> Any:
        """Run a script with the keys of an origin, whose lock this object owns."""
        await find_servers(self._redis)
        return await self._redis.eval(script, 2, *self._keys(origin), self._owner, *values)

    def _keys(self, origin: Origin) -> tuple[str, str]:
        """Return the keys of the lock and of the entry of an origin. In a cluster, they share a slot."""
        name = f"{{{origin}}}" if self._is_cluster else str(origin)
        return f"{_LOCK}{name}", f"{_SNAPSHOTS}{name}"

    async def _pages(self) -> AsyncIterator[Iterable[tuple[Any, Any]]]:
        """Yield the keys of entries with their values; each SCAN reads from one server."""
        if not isinstance(self._redis, RedisCluster):
            cursor = None
            while cursor != 0:
                cursor, keys = await self._redis.scan(cursor or 0, match=f"{_SNAPSHOTS}*", count=_PAGE)
                yield zip(keys, await self._redis.mget(keys) if keys else (), strict=True)
            return
        await find_servers(self._redis)
        for node in self._redis.get_primaries():
            cursor = None
            while cursor != 0:
                answer: Any = await self._redis.scan(
                    cursor or 0, match=f"{_SNAPSHOTS}*", count=_PAGE, target_nodes=node
                )
                cursors, keys = answer
                [cursor] = cursors.values()
                yield zip(keys, await self._redis.mget_nonatomic(keys) if keys else (), strict=True)

    async def _decode(self, entry: object, origin: Origin) -> tuple[Snapshot, ...]:
        if not isinstance(entry, bytes):
            return ()
        if len(entry) <= _SMALL_ENTRY:
            return entries.decode(entry, origin, self._maxsize)
        return await asyncio.to_thread(entries.decode, entry, origin, self._maxsize)


async def _encode(snapshots: Sequence[Snapshot]) -> bytes:
    if sum(len(snapshot.body) for snapshot in snapshots) <= SMALL_BODY:
        return entries.encode(snapshots)
    return await asyncio.to_thread(entries.encode, snapshots)
