"""`open_client`: the client of redis-py for a URL of one Redis server, of Sentinels, or of a cluster.

The forms are those of ``redis.Redis.from_url``, and those that other libraries use for several servers:
``redis+sentinel://host:port,host:port/service/db`` and ``redis+cluster://host:port,host:port``; with
``rediss`` instead of ``redis``, the connections use TLS. Nothing is connected yet.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from redis.asyncio import BlockingConnectionPool, Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, RedisClusterException  # noqa: A004  # not the built-in one

from scrapy_norobots.stores.circuit_breaker import TIMEOUT

_PORT, _SENTINEL_PORT = 6379, 26379

# No part of the URL is shown: with special characters in a password, any may be a part of it.
_INVALID = (
    "invalid Redis URL: hosts must have names, the port must be a number, and special characters in the "
    "password must be escaped as %XX"
)
# An option whose value may contain an "@".
_PASSWORD_OPTION = re.compile(r"(?:^|(?<=&))(?:sentinel_)?(?:username|password)=[^&]*")

# A Sentinel that does not answer must leave time to ask the next one.
_SENTINEL_TIMEOUT = TIMEOUT / 5

# Of one process to one server: if the server is 0.2 s away, each connection makes five calls a second.
CONNECTIONS = 100
# The pools of several servers raise an exception when they have no connection left, instead of waiting.
_CONNECTIONS_MAX = 1_000

_TIMEOUTS: dict[str, Any] = {"socket_timeout": TIMEOUT, "socket_connect_timeout": TIMEOUT}


def open_client(url: str) -> Redis | RedisCluster:
    """Return a client. Raises `ValueError`, whose message has no password, if the URL is invalid."""
    scheme, _, kind = url.partition("://")[0].partition("+")
    try:
        parts = urlsplit(url)
        user, at, hosts = parts.netloc.rpartition("@")
        one = f"{scheme}://{user}{at}localhost?{parts.query}" if kind else url
        options: dict[str, Any] = dict(parse_url(one))
        addresses = _addresses(hosts, _SENTINEL_PORT if kind == "sentinel" else _PORT) if kind else []
    except ValueError:
        raise ValueError(_INVALID) from None
    if "@" in _PASSWORD_OPTION.sub("", parts.query) + parts.fragment:  # the end of a password
        raise ValueError(_INVALID)
    if options.get("decode_responses"):
        raise ValueError("decode_responses is not supported: entries are bytes")
    database = parts.path.strip("/")
    try:
        if kind == "cluster":
            if database not in ("", "0"):
                raise ValueError("a Redis Cluster has only the database 0")
            return _cluster(addresses, _of_several(options))
        if kind == "sentinel":
            service, _, database = database.partition("/")
            if not service:
                raise ValueError("the service is missing; expected redis+sentinel://host:port/service/db")
            return _master(addresses, service, _database(database), _of_several(options))
    except (TypeError, RedisClusterException) as exc:
        raise ValueError(f"invalid option in the Redis URL: {exc}") from None
    if scheme != "unix":
        _database(database)
    return Redis(connection_pool=_pool(url))


def connections_of(url: str) -> int:
    """Return how many calls of a client for a valid URL may run at once, each on a connection."""
    limit = parse_qs(urlsplit(url).query).get("max_connections", [CONNECTIONS])[0]
    return min(max(int(limit), 1), CONNECTIONS)


async def find_servers(client: Redis | RedisCluster) -> None:
    """Find the servers of a cluster, once. Else redis-py would send the first calls to any of them."""
    if isinstance(client, RedisCluster):
        await client.initialize()


async def close_client(client: Redis | RedisCluster) -> None:
    """Close all connections of a client, also those to Sentinels."""
    await client.aclose()
    if isinstance(client, RedisCluster):
        return
    pool = client.connection_pool
    await pool.disconnect()
    if isinstance(pool, SentinelConnectionPool):
        for sentinel in pool.sentinel_manager.sentinels:
            await sentinel.aclose()


def _of_several(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a URL for each of several servers."""
    is_tls = options.get("connection_class") is SSLConnection
    others = {name: value for name, value in options.items() if name not in ("host", "connection_class")}
    return {**_TIMEOUTS, "max_connections": _CONNECTIONS_MAX, "ssl": is_tls, **others}


def _cluster(addresses: list[tuple[str, int]], options: dict[str, Any]) -> RedisCluster:
    nodes = [ClusterNode(host, port) for host, port in addresses]
    return RedisCluster(startup_nodes=nodes, **options)


def _master(addresses: list[tuple[str, int]], service: str, database: int, options: dict[str, Any]) -> Redis:
    """Return a client for the master of a service. Options of the Sentinels begin with ``sentinel_``."""
    own = {name: value for name, value in options.items() if not name.startswith("sentinel_")}
    of_sentinels = {
        **dict.fromkeys(("socket_timeout", "socket_connect_timeout"), _SENTINEL_TIMEOUT),
        "max_connections": _CONNECTIONS_MAX,
        "retry": Retry(NoBackoff(), 0),  # the next Sentinel is asked at once
        **{name: value for name, value in options.items() if name.startswith("ssl")},
        **{name[9:]: value for name, value in options.items() if name.startswith("sentinel_")},
    }
    sentinel = Sentinel(addresses, sentinel_kwargs=of_sentinels)  # type: ignore[no-untyped-call]
    # After a failover, all open connections are dead, or lead to a server that is read-only.
    client: Redis = sentinel.master_for(service, db=database, retry_on_error=[ConnectionError], **own)
    return client


def _pool(url: str) -> BlockingConnectionPool:
    return BlockingConnectionPool.from_url(
        url,
        # One for each call, so that none waits for a connection: the pool does not serve calls in order,
        # and one that waits for too long fails.
        max_connections=CONNECTIONS,
        timeout=TIMEOUT,
        # After a restart of the server all open connections are dead, although the server works.
        retry_on_error=[ConnectionError],  # once
        **_TIMEOUTS,
    )


def _database(text: str) -> int:
    if text and not (text.isascii() and text.isdigit()):
        raise ValueError("the Redis database must be a number")
    return int(text or 0)


def _addresses(hosts: str, default_port: int) -> list[tuple[str, int]]:
    """Return the hosts and ports of a list with commas."""
    found = []
    for one in hosts.split(","):
        parts = urlsplit(f"//{one}")
        if not parts.hostname:
            raise ValueError
        found.append((parts.hostname, parts.port or default_port))
    return found
