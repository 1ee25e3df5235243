"""`RedisTurns`: in Redis, when any process of a fleet may send its next request to a site.

For each site, Redis keeps the turn that was taken last. It expires after one delay, so a process that is
killed delays the others by one delay at most. A turn beyond a limit is not taken, and one that is found there
(a clock was wrong, or another program has written it) is ignored.
"""

from __future__ import annotations

import asyncio
from uuid import uuid4

from scrapy_norobots.stores.redis_urls import close_client, connections_of, find_servers, open_client

_KEY = "norobots:turn:"

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


class RedisTurns:
    """The turns of one process, in the Redis database or cluster at `url`.

    Raises `ValueError` if the URL is invalid. All methods may raise any exception of redis-py.
    """

    def __init__(self, url: str) -> None:
        self._redis = open_client(url)
        self._connections = asyncio.Semaphore(connections_of(url))
        self._owner = uuid4().hex

    async def take(
        self, site: str, delay: float, tolerance: float, least: float, longest: float
    ) -> float | None:
        """Take the next turn of a site; return in how many seconds it begins, at least `least`.

        If turns are taken for the next `longest` seconds, take none, and return None.

        The request must be sent at most `tolerance` seconds after that. The turn of another process begins
        `delay` seconds after the last moment, and the next one of this process `delay` seconds after the
        beginning.
        """
        await find_servers(self._redis)
        values = (round(1000 * seconds) for seconds in (delay, tolerance, least, longest))
        async with self._connections:
            milliseconds = await self._redis.eval(_TAKE_SCRIPT, 1, f"{_KEY}{site}", self._owner, *values)
        return None if milliseconds < 0 else float(milliseconds) / 1000

    async def close(self) -> None:
        await close_client(self._redis)
