"""The URLs of one Redis server, of Sentinels, and of a cluster: which clients they lead to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from redis.asyncio import Redis, RedisCluster

pytest.importorskip("redis")


def client_of(url: str) -> Redis | RedisCluster:
    from scrapy_norobots.stores.redis_urls import open_client

    return open_client(url)


def pool_of(url: str) -> Any:
    from redis.asyncio import Redis
    from redis.asyncio.sentinel import SentinelConnectionPool

    client = client_of(url)
    assert isinstance(client, Redis)
    assert isinstance(client.connection_pool, SentinelConnectionPool)
    return client.connection_pool


def test_a_sentinel_url_has_several_hosts_a_service_and_a_database() -> None:
    pool = pool_of("redis+sentinel://me:s%40cret@one,two:7,[::1]:8/town/3")
    assert pool.service_name == "town"
    assert (pool.connection_kwargs["db"], pool.connection_kwargs["username"]) == (3, "me")
    assert pool.connection_kwargs["password"] == "s@cret"
    sentinels = [one.connection_pool.connection_kwargs for one in pool.sentinel_manager.sentinels]
    assert [(one["host"], one["port"]) for one in sentinels] == [("one", 26379), ("two", 7), ("::1", 8)]
    assert all(one.get("password") is None for one in sentinels)


def test_sentinels_may_have_a_password_of_their_own() -> None:
    pool = pool_of("redis+sentinel://one/town?sentinel_password=other&health_check_interval=2")
    assert pool.connection_kwargs.get("password") is None
    assert pool.connection_kwargs["health_check_interval"] == 2
    assert pool.sentinel_manager.sentinels[0].connection_pool.connection_kwargs["password"] == "other"


def test_the_options_of_tls_are_those_of_the_sentinels_too() -> None:
    pool = pool_of("rediss+sentinel://one/town?ssl_ca_certs=/ours.pem&sentinel_ssl_certfile=/mine.pem")
    assert pool.connection_kwargs["ssl_ca_certs"] == "/ours.pem"
    assert pool.connection_kwargs.get("ssl_certfile") is None
    of_sentinel = pool.sentinel_manager.sentinels[0].connection_pool.connection_kwargs
    assert (of_sentinel["ssl_ca_certs"], of_sentinel["ssl_certfile"]) == ("/ours.pem", "/mine.pem")


def test_a_cluster_url_has_several_hosts() -> None:
    from redis.asyncio import RedisCluster

    client = client_of("redis+cluster://:secret@one,two:7000/0")
    assert isinstance(client, RedisCluster)
    nodes = client.nodes_manager.startup_nodes.values()
    assert sorted((node.host, int(node.port)) for node in nodes) == [("one", 6379), ("two", 7000)]
    assert {node.connection_kwargs["password"] for node in nodes} == {"secret"}


@pytest.mark.parametrize("scheme", ["redis", "rediss"])
def test_rediss_uses_tls(scheme: str) -> None:
    from redis.asyncio import RedisCluster, SSLConnection

    pool = pool_of(f"{scheme}+sentinel://one/town")
    of_sentinel = pool.sentinel_manager.sentinels[0].connection_pool
    classes = [pool.connection_class, of_sentinel.connection_class]
    cluster = client_of(f"{scheme}+cluster://one")
    assert isinstance(cluster, RedisCluster)
    [node] = cluster.nodes_manager.startup_nodes.values()
    classes.append(node.connection_class)
    assert {issubclass(one, SSLConnection) for one in classes} == {scheme == "rediss"}
