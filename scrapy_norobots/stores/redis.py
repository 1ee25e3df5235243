"""`RedisStore`: what machines share in Redis, which is one server, Sentinel, or a cluster.

An entry expires when it can no longer be used; Redis's own setting ``maxmemory`` limits the total size. Locks
expire too. A turn is the time at which one process of a fleet may send a request of a download slot.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, RedisClusterException  # noqa: A004  # not the built-in one

from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Origin
from scrapy_norobots.standard.robotstxt import SMALL_BODY
from scrapy_norobots.stores import LARGEST_FILE, Locked, entries
from scrapy_norobots.stores.circuit_breaker import TIMEOUT

_PORTS = {"cluster": 6379, "sentinel": 26379}

# No part of the URL is shown: with special characters in a password, any may be a part of it.
_INVALID = (
    "invalid Redis URL: hosts must have names, ports and databases must be numbers (a cluster has only the "
    "database 0), the service of Sentinels comes before the database, options are those of redis-py without "
    "decode_responses, and special characters in a password must be escaped as %XX"
)
# The path of a URL: a database, or the service of Sentinels and a database.
_PATHS = {
    kind: re.compile(path, re.ASCII)
    for kind, path in (("", r"\d*"), ("cluster", "0?"), ("sentinel", r"[^/]+(?:/\d*)?"))
}
# A Sentinel that does not answer must leave time to ask the next one.
_SENTINEL_TIMEOUT = TIMEOUT / 5

# Of one process to one server: if the server is 0.2 s away, each connection makes five calls a second. As
# many calls run at once, because a pool raises an exception when it has no connection left.
_CONNECTIONS = 100

_OPTIONS: dict[str, Any] = {
    "socket_timeout": TIMEOUT,
    "socket_connect_timeout": TIMEOUT,
    "max_connections": 10 * _CONNECTIONS,  # of all servers
}

_SNAPSHOTS = "norobots:snapshots:"
_LOCK = "norobots:lock:"
_TURN = "norobots:turn:"

# Scripts, because each of them is one round trip. The keys are those of the lock and of the entry; the values
# begin with the owner of the lock. MGET returns nothing for a value of another type. A lock that never
# expires belongs to nobody, and is acquired.
_LOAD_SCRIPT = "return redis.call('MGET', KEYS[2])[1]"
_LOCK_SCRIPT = """
local is_held = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
local found = redis.call('MGET', KEYS[1], KEYS[2])
if found[1] == ARGV[1] or redis.call('PTTL', KEYS[1]) == -1 then
    is_held = redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return {is_held and 1 or 0, found[2]}
"""
_UNLOCK_SCRIPT = """
if redis.call('MGET', KEYS[1])[1] == ARGV[1] then
    redis.call('DEL', KEYS[1])
end
"""
_SAVE_SCRIPT = "redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])" + _UNLOCK_SCRIPT

# Takes the next turn of KEYS[1], by the clock of Redis, in milliseconds. ARGV: the owner, the delay, by how
# much the owner may be late, the least wait, and the limit. Returns the wait, or -1 if no turn was taken. The
# value is the earliest next turn of the owner, that of others, which counts from when the owner may be late,
# and the owner.
_TAKE_SCRIPT = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local start = now + tonumber(ARGV[4])
local found = redis.call('MGET', KEYS[1])[1]
if found then
    local own, any, owner = string.match(found, '^(%d+) (%d+) (%w+)$')
    if own and tonumber(any) <= now + tonumber(ARGV[5]) then
        start = math.max(start, tonumber(owner == ARGV[1] and own or any))
    end
end
local own = start + tonumber(ARGV[2])
local any = own + tonumber(ARGV[3])
if any > now + tonumber(ARGV[5]) then
    return -1
end
local value = string.format('%.0f %.0f %s', own, any, ARGV[1])
redis.call('SET', KEYS[1], value, 'PX', string.format('%.0f', any - now))
return start - now
"""

# Larger entries are decompressed in a thread, in bytes.
_SMALL_ENTRY = 4096


class RedisStore:
    """What is in the Redis database or cluster at `url`, in one of the forms of `open_client`.

    A turn expires after one delay, so a process that is killed delays the others by one delay at most. Raises
    `ValueError` if the URL is invalid.
    """

    def __init__(self, url: str, maxsize: int = LARGEST_FILE) -> None:
        try:
            self._redis = open_client(url)
        except (ValueError, TypeError, RedisClusterException):
            raise ValueError(_INVALID) from None
        limit = parse_qs(urlsplit(url).query).get("max_connections", [_CONNECTIONS])[0]
        self._connections = asyncio.Semaphore(min(max(int(limit), 1), _CONNECTIONS))
        self._owner = uuid4().hex
        self._is_cluster = isinstance(self._redis, RedisCluster)
        self._maxsize = maxsize

    async def _run(self, script: str, keys: Sequence[str], *values: bytes | int) -> Any:
        async with self._connections:
            # Find the servers of a cluster before the first call. Else redis-py sends calls to any of them,
            # and closes connections that others use when it learns more.
            await self._redis.initialize()
            return await self._redis.eval(script, len(keys), *keys, self._owner, *values)

    async def close(self) -> None:
        await self._redis.aclose()
        pool = getattr(self._redis, "connection_pool", None)
        if isinstance(pool, SentinelConnectionPool):
            for sentinel in pool.sentinel_manager.sentinels:
                await sentinel.aclose()

    async def load(self, origin: Origin) -> tuple[Snapshot, ...]:
        return await self._decode(await self._run(_LOAD_SCRIPT, self._keys(origin)), origin)

    async def lock(self, origin: Origin, seconds: float) -> Locked:
        is_held, entry = await self._run(_LOCK_SCRIPT, self._keys(origin), int(seconds * 1000))
        return Locked(bool(is_held), await self._decode(entry, origin))

    async def save(self, snapshots: Sequence[Snapshot], until: float) -> None:
        milliseconds = max(1, int((until - time.time()) * 1000))
        encode = partial(entries.encode, snapshots)
        is_small = sum(len(snapshot.body) for snapshot in snapshots) <= SMALL_BODY
        entry = encode() if is_small else await asyncio.to_thread(encode)
        await self._run(_SAVE_SCRIPT, self._keys(snapshots[0].origin), entry, milliseconds)

    async def unlock(self, origin: Origin) -> None:
        await self._run(_UNLOCK_SCRIPT, self._keys(origin))

    async def items(self) -> AsyncIterator[tuple[Origin, tuple[Snapshot, ...]]]:
        """Yield each origin and its snapshots. The order is that of SCAN, so they are not sorted."""
        await self._redis.initialize()
        # Each step looks at so many keys, including those of other programs.
        keys: Any = self._redis.scan_iter(match=f"{_SNAPSHOTS}*", count=100)
        async for key in keys:
            name = key.decode("utf-8", "replace").removeprefix(_SNAPSHOTS)
            origin = entries.origin_of(name[1:-1] if self._is_cluster else name)
            if origin is not None:
                (entry,) = await self._redis.mget(key)
                if entry is not None:  # it has not expired meanwhile
                    yield origin, await self._decode(entry, origin)

    async def delete(self, origin: Origin) -> bool:
        await self._redis.initialize()
        return bool(await self._redis.delete(self._keys(origin)[1]))

    async def take(
        self, site: str, delay: float, tolerance: float, least: float, longest: float
    ) -> float | None:
        """Take the next turn of a site; return in how many seconds it begins, at least `least`.

        If turns are taken for the next `longest` seconds, take none, and return None. A turn that is farther
        ahead (a clock was wrong, or another program has written it) is ignored.

        The request must be sent at most `tolerance` seconds after that. The turn of another process begins
        `delay` seconds after the last moment, and the next one of this process `delay` seconds after the
        beginning.
        """
        values = (round(1000 * seconds) for seconds in (delay, tolerance, least, longest))
        milliseconds = await self._run(_TAKE_SCRIPT, (f"{_TURN}{site}",), *values)
        return None if milliseconds < 0 else float(milliseconds) / 1000

    def _keys(self, origin: Origin) -> tuple[str, str]:
        """Return the keys of the lock and of the entry of an origin. In a cluster, they share a slot."""
        name = f"{{{origin}}}" if self._is_cluster else str(origin)
        return f"{_LOCK}{name}", f"{_SNAPSHOTS}{name}"

    async def _decode(self, entry: Any, origin: Origin) -> tuple[Snapshot, ...]:
        if entry is None:
            return ()
        decode = partial(entries.decode, entry, origin, self._maxsize)
        return decode() if len(entry) <= _SMALL_ENTRY else await asyncio.to_thread(decode)


def open_client(url: str) -> Redis | RedisCluster:
    """Return the client of redis-py for a URL of one server, of Sentinels, or of a cluster.

    The forms are those of ``redis.Redis.from_url``, and those that other libraries use for several servers:
    ``redis+sentinel://host:port,host:port/service/db`` and ``redis+cluster://host:port,host:port``; with
    ``rediss`` instead of ``redis``, the connections use TLS. Nothing is connected yet. Raises one of several
    exceptions, whose messages may have a password, if the URL is invalid.
    """
    scheme, _, kind = url.partition("://")[0].partition("+")
    authority = re.split("[/?#]", url.partition("://")[2], maxsplit=1)[0]
    user, at, hosts = authority.rpartition("@")
    # With several hosts, newer Pythons split no URL that has an IPv6 address.
    parts = urlsplit(url.replace(f"//{authority}", f"//{user}{at}localhost", 1))
    options: dict[str, Any] = dict(parse_url(f"{scheme}://{parts.netloc}?{parts.query}"))
    path = parts.path.strip("/")
    is_end_of_password = "@" in parts.query + parts.fragment
    is_path = scheme == "unix" or _PATHS[kind].fullmatch(path)
    if is_end_of_password or options.get("decode_responses") or not is_path:
        raise ValueError
    # After a restart of the server, or a failover, all open connections are dead: each is opened once again.
    more: dict[str, Any] = {**_OPTIONS, "retry_on_error": [ConnectionError]}
    if not kind:
        return Redis.from_url(url, **more)
    del options["host"]
    options["ssl"] = options.pop("connection_class", None) is SSLConnection
    servers = [urlsplit(f"//{one}") for one in hosts.split(",")]
    addresses = [(server.hostname or "", server.port or _PORTS[kind]) for server in servers]
    if not all(host for host, _ in addresses):
        raise ValueError
    if kind == "cluster":
        return RedisCluster(startup_nodes=[ClusterNode(*one) for one in addresses], **_OPTIONS | options)
    # Options of the Sentinels begin with "sentinel_"; those of TLS are for them too.
    own = {name: value for name, value in options.items() if not name.startswith("sentinel_")}
    of_sentinels = {
        **_OPTIONS,
        **dict.fromkeys(("socket_timeout", "socket_connect_timeout"), _SENTINEL_TIMEOUT),
        "retry": Retry(NoBackoff(), 0),  # the next Sentinel is asked at once
        **{name: value for name, value in options.items() if name.startswith("ssl")},
        **{name[9:]: value for name, value in options.items() if name.startswith("sentinel_")},
    }
    service, _, database = path.partition("/")
    sentinel = Sentinel(addresses, sentinel_kwargs=of_sentinels)  # type: ignore[no-untyped-call]
    client: Redis = sentinel.master_for(service, db=int(database or 0), **more | own)
    return client
