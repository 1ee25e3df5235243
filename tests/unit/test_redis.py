"""The Redis store with a restarted server, without one, and without redis-py; turns of processes."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from scrapy_norobots.standard import Origin
from scrapy_norobots.stores.opening import open_store, open_turns
from tests.helpers.running.redisserver import RedisCluster, RedisServer
from tests.helpers.samples.snapshots import FOUND, MAX_BYTES, ORIGIN, later

pytest.importorskip("redis")

# Long enough that a busy machine does not matter.
DELAY, TOLERANCE, LONGEST = 1000.0, 100.0, 10_000.0


async def test_a_restart_of_redis_does_not_fail_a_call(redis_server: RedisServer) -> None:
    """After a restart, all open connections are dead."""
    store = open_store(redis_server.url, MAX_BYTES)
    origins = [Origin("http", f"{number}.town.example", 80) for number in range(40)]
    await asyncio.gather(*(store.load(origin) for origin in origins))
    redis_server.stop()
    redis_server.start()
    for _ in range(2):
        assert await asyncio.gather(*(store.load(origin) for origin in origins)) == [()] * 40
    assert (await store.lock(ORIGIN, 60)).is_held
    await store.close()


@pytest.mark.parametrize("kind", ["redis_server", "redis_cluster", "redis_sentinel"])
async def test_as_many_calls_run_at_once_as_the_url_allows_connections(
    kind: str, request: pytest.FixtureRequest
) -> None:
    """The pools of several servers raise an exception if no connection is left."""
    store = open_store(f"{request.getfixturevalue(kind).url}?max_connections=3", MAX_BYTES)
    await asyncio.gather(*(store.lock(ORIGIN, 30) for _ in range(50)))
    await store.close()


async def test_a_value_of_another_type_is_a_miss(redis_server: RedisServer) -> None:
    redis = pytest.importorskip("redis")
    key = f"norobots:snapshots:{ORIGIN}"
    with redis.Redis.from_url(redis_server.url) as client:
        client.rpush(key, "a list")
        client.set(b"norobots:snapshots:\xff", "a key that is not UTF-8")
    store = open_store(redis_server.url, MAX_BYTES)
    assert await store.load(ORIGIN) == ()
    assert [item async for item in store.items()] == []
    await store.save((FOUND,), later())
    assert await store.load(ORIGIN) == (FOUND,)
    await store.close()


def test_without_redis_py_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    monkeypatch.delitem(sys.modules, "scrapy_norobots.stores.redis", raising=False)
    with pytest.raises(ImportError, match=r"^needs redis-py: pip install 'scrapy-norobots\[redis\]'"):
        open_store("redis://127.0.0.1/0", MAX_BYTES)


async def test_each_turn_begins_one_delay_after_the_last_one_up_to_the_limit(
    redis_server: RedisServer,
) -> None:
    first, second = open_turns(redis_server.url), open_turns(redis_server.url)
    waits = [
        await first.take("town", DELAY, TOLERANCE, 0, LONGEST),
        await second.take("town", DELAY, TOLERANCE, 0, LONGEST),  # the first may be late
        await second.take("town", DELAY, TOLERANCE, 0, LONGEST),
        await first.take("town", DELAY, TOLERANCE, 0, LONGEST),
        await first.take("city", DELAY, TOLERANCE, 50, LONGEST),
    ]
    assert waits == pytest.approx([0, 1100, 2100, 3200, 50], abs=40)
    limited = [await one.take("village", DELAY, 0, 0, 2.5 * DELAY) for one in (first, second, first, second)]
    assert limited == [0, pytest.approx(DELAY, abs=40), None, None]
    await first.close()
    await second.close()


async def test_a_process_that_dies_leaves_no_debt_but_its_turn(redis_server: RedisServer) -> None:
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


async def test_turns_in_a_cluster(redis_cluster: RedisCluster) -> None:
    turns = open_turns(f"{redis_cluster.url}?max_connections=3")
    sites = [f"{number}.town" for number in range(50)]
    assert await asyncio.gather(*(turns.take(site, DELAY, 0, 0, LONGEST) for site in sites)) == [0] * 50
    waits = await asyncio.gather(*(turns.take(site, DELAY, 0, 0, LONGEST) for site in sites))
    assert min(wait or 0 for wait in waits) > 900
    await turns.close()


def client_of(url: str) -> Any:
    from scrapy_norobots.stores.redis import open_client

    return open_client(url)


def test_a_sentinel_url_has_several_hosts_a_service_and_a_database() -> None:
    pool = client_of("redis+sentinel://me:s%40cret@one,two:7,[::1]:8/town/3").connection_pool
    assert pool.service_name == "town"
    assert (pool.connection_kwargs["db"], pool.connection_kwargs["username"]) == (3, "me")
    assert pool.connection_kwargs["password"] == "s@cret"
    sentinels = [one.connection_pool.connection_kwargs for one in pool.sentinel_manager.sentinels]
    assert [(one["host"], one["port"]) for one in sentinels] == [("one", 26379), ("two", 7), ("::1", 8)]
    assert all(one.get("password") is None for one in sentinels)


def options_of(url: str) -> tuple[Any, Any]:
    """Return the options for the master and those for its Sentinels."""
    pool = client_of(url).connection_pool
    return pool.connection_kwargs, pool.sentinel_manager.sentinels[0].connection_pool.connection_kwargs


def test_sentinels_may_have_options_of_their_own_beside_those_of_tls() -> None:
    master, sentinel = options_of("redis+sentinel://one/town?sentinel_password=other&health_check_interval=2")
    assert (master.get("password"), sentinel["password"]) == (None, "other")
    assert master["health_check_interval"] == 2
    tls = "ssl_ca_certs=/ours.pem&sentinel_ssl_certfile=/mine.pem"
    master, sentinel = options_of(f"rediss+sentinel://one/town?{tls}")
    assert (master["ssl_ca_certs"], master.get("ssl_certfile")) == ("/ours.pem", None)
    assert (sentinel["ssl_ca_certs"], sentinel["ssl_certfile"]) == ("/ours.pem", "/mine.pem")


def test_a_cluster_url_has_several_hosts() -> None:
    client = client_of("redis+cluster://:secret@one,two:7000/0")
    nodes = client.nodes_manager.startup_nodes.values()
    assert sorted((node.host, int(node.port)) for node in nodes) == [("one", 6379), ("two", 7000)]
    assert {node.connection_kwargs["password"] for node in nodes} == {"secret"}


@pytest.mark.parametrize("scheme", ["redis", "rediss"])
def test_rediss_uses_tls(scheme: str) -> None:
    pool = client_of(f"{scheme}+sentinel://one/town").connection_pool
    of_sentinel = pool.sentinel_manager.sentinels[0].connection_pool
    [node] = client_of(f"{scheme}+cluster://one").nodes_manager.startup_nodes.values()
    classes = [pool.connection_class, of_sentinel.connection_class, node.connection_class]
    from redis.asyncio import SSLConnection

    assert {issubclass(one, SSLConnection) for one in classes} == {scheme == "rediss"}
