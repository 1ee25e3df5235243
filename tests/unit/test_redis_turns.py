"""`RedisTurns`: turns of several processes, in a real Redis."""

from __future__ import annotations

import asyncio

import pytest

from scrapy_norobots.stores.opening import open_turns
from tests.helpers.running.redisserver import RedisCluster, RedisServer

pytest.importorskip("redis")

# Long enough that a busy machine does not matter.
DELAY, TOLERANCE, LONGEST = 1000.0, 100.0, 10_000.0


def test_each_turn_begins_one_delay_after_the_last_one(redis_server: RedisServer) -> None:
    async def work() -> None:
        first, second = open_turns(redis_server.url), open_turns(redis_server.url)
        waits = [
            await first.take("town", DELAY, TOLERANCE, 0, LONGEST),
            await second.take("town", DELAY, TOLERANCE, 0, LONGEST),  # the first may be late
            await second.take("town", DELAY, TOLERANCE, 0, LONGEST),
            await first.take("town", DELAY, TOLERANCE, 0, LONGEST),
            await first.take("city", DELAY, TOLERANCE, 50, LONGEST),
        ]
        assert waits == pytest.approx([0, 1100, 2100, 3200, 50], abs=40)
        await first.close()
        await second.close()

    asyncio.run(work())


def test_a_process_that_dies_leaves_no_debt_but_its_turn(redis_server: RedisServer) -> None:
    async def work() -> None:
        first, second = open_turns(redis_server.url), open_turns(redis_server.url)
        await first.take("town", 0.2, 0.1, 0, LONGEST)
        await first.close()
        import redis.asyncio

        async with redis.asyncio.Redis.from_url(redis_server.url) as client:
            ends_in = await client.pttl("norobots:turn:town")
            assert ends_in == -2 or 0 < ends_in <= 300  # -2: it has ended; -1: it never will
            while await client.exists("norobots:turn:town"):
                await asyncio.sleep(0.02)
            await client.rpush("norobots:turn:city", "of another program")
        assert await second.take("town", 1, 0, 0, LONGEST) == 0
        assert await second.take("city", 1, 0, 0, LONGEST) == 0
        await second.close()

    asyncio.run(work())


def test_no_turn_is_taken_beyond_the_limit(redis_server: RedisServer) -> None:
    async def work() -> None:
        first, second = open_turns(redis_server.url), open_turns(redis_server.url)
        waits = [await one.take("town", DELAY, 0, 0, 2.5 * DELAY) for one in (first, second, first, second)]
        assert waits == [0, pytest.approx(DELAY, abs=40), None, None]
        await first.close()
        await second.close()

    asyncio.run(work())


def test_turns_in_a_cluster(redis_cluster: RedisCluster) -> None:
    async def work() -> None:
        turns = open_turns(f"{redis_cluster.url}?max_connections=3")
        sites = [f"{number}.town" for number in range(50)]
        assert await asyncio.gather(*(turns.take(site, DELAY, 0, 0, LONGEST) for site in sites)) == [0] * 50
        waits = await asyncio.gather(*(turns.take(site, DELAY, 0, 0, LONGEST) for site in sites))
        assert min(wait or 0 for wait in waits) > 900
        await turns.close()

    asyncio.run(work())
