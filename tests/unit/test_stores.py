"""The contract of every store."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from scrapy_norobots.commands.base import CommandError, failures_of
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Origin
from scrapy_norobots.stores import BrowsableStore, entries, error_text
from scrapy_norobots.stores.circuit_breaker import CircuitBreaker
from scrapy_norobots.stores.opening import open_store
from tests.helpers.running.redisserver import RedisCluster, RedisSentinel, RedisServer, running
from tests.helpers.samples.snapshots import EMPTY, FOUND, LOST, MAX_BYTES, ORIGIN, OTHER, later, noise
from tests.unit.test_entries import WHOLE


@dataclass
class Shelf:
    """The place of a kind of store, for any number of store objects."""

    value: str
    put: Callable[[Origin | str, bytes], None]

    @asynccontextmanager
    async def open(self, count: int = 1, *sizes: int) -> AsyncIterator[list[BrowsableStore]]:
        """Open some stores, and close them; `sizes` are the size of a store, and of the largest file."""
        opened = [open_store(self.value, *(sizes or [MAX_BYTES])) for _ in range(count)]
        try:
            yield opened
        finally:
            for store in opened:
                await store.close()


SERVERS: dict[str, Callable[[Path], Any]] = {
    "redis": RedisServer,
    "redis_sentinel": partial(RedisSentinel, patience=600),  # on a busy machine, the master may be slow
    "redis_cluster": RedisCluster,
}


@pytest.fixture(
    scope="module",
    params=["sqlite", *(pytest.param(kind, marks=pytest.mark.xdist_group(kind)) for kind in SERVERS)],
)
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The servers of a kind of store, which start once, or None."""
    if request.param == "sqlite":
        yield None
        return
    pytest.importorskip("redis")
    with running(SERVERS[request.param], tmp_path_factory.mktemp("servers")) as started:
        yield started


@pytest.fixture
def shelf(servers: Any, tmp_path: Path) -> Shelf:
    """Each kind of store, without entries."""
    if servers is None:
        path = tmp_path / "deep" / "er" / "robots.sqlite"

        def put(origin: Origin | str, entry: bytes) -> None:
            with sqlite3.connect(path) as db:
                db.execute("REPLACE INTO entries VALUES (?, ?, ?)", (str(origin), entry, later()))
            db.close()

        return Shelf(f"sqlite:///{path}", put)
    import redis

    servers.clear()

    def set_key(origin: Origin | str, entry: bytes) -> None:
        client: Any
        if isinstance(servers, RedisCluster):
            key = f"norobots:snapshots:{{{origin}}}"
            client = redis.RedisCluster.from_url(servers.servers[1].url)
        else:
            key = f"norobots:snapshots:{origin}"
            master = servers.master if isinstance(servers, RedisSentinel) else servers
            client = redis.Redis.from_url(master.url)
        with client:
            client.set(key, entry)

    return Shelf(servers.url, set_key)


async def listed(store: BrowsableStore) -> dict[Origin, tuple[Snapshot, ...]]:
    return {origin: snapshots async for origin, snapshots in store.items()}


async def test_saved_snapshots_are_loaded_and_listed_unchanged(shelf: Shelf) -> None:
    async with shelf.open() as [store]:
        assert await store.load(ORIGIN) == ()
        assert await listed(store) == {}
        await store.save((FOUND, LOST), later())
        await store.save((EMPTY,), later())
        assert await store.load(ORIGIN) == (FOUND, LOST)
        assert await store.load(OTHER) == (EMPTY,)
        assert await store.load(Origin("http", "town.example", 80)) == ()
        assert await listed(store) == {ORIGIN: (FOUND, LOST), OTHER: (EMPTY,)}


async def test_an_expired_entry_is_neither_loaded_nor_listed(shelf: Shelf) -> None:
    async with shelf.open() as [store]:
        await store.save((FOUND,), later())
        await store.save((EMPTY,), later())
        await store.save((FOUND,), time.time() + 0.1)
        while await store.load(ORIGIN):  # nothing marks it
            await asyncio.sleep(0.02)
        assert await listed(store) == {OTHER: (EMPTY,)}


async def test_an_entry_with_a_larger_file_than_this_crawl_accepts_is_a_miss(shelf: Shelf) -> None:
    async with shelf.open(1, 2**30) as [store], shelf.open(1, 2**30, 2**20) as [limited]:
        await store.save((replace(FOUND, body=noise(3 * 2**20)),), later())
        assert await store.load(ORIGIN)
        assert await limited.load(ORIGIN) == ()
        assert await limited.lock(ORIGIN, 60) == (True, ())


async def test_a_lock_has_one_holder_until_it_is_released(shelf: Shelf) -> None:
    async with shelf.open(2) as (first, second):
        assert (await first.lock(ORIGIN, 60)).is_held
        assert not (await second.lock(ORIGIN, 60)).is_held
        assert (await second.lock(OTHER, 60)).is_held
        await second.unlock(ORIGIN)  # another store holds it
        assert not (await second.lock(ORIGIN, 60)).is_held
        await first.unlock(ORIGIN)
        assert (await second.lock(ORIGIN, 60)).is_held


async def test_a_lock_comes_with_the_snapshots(shelf: Shelf) -> None:
    async with shelf.open(2) as (first, second):
        assert await first.lock(ORIGIN, 60) == (True, ())
        assert await second.lock(ORIGIN, 60) == (False, ())
        await second.save((FOUND, LOST), later())
        assert await second.lock(ORIGIN, 60) == (False, (FOUND, LOST))  # only the holder releases it
        assert await first.lock(ORIGIN, 60) == (True, (FOUND, LOST))


async def test_a_save_releases_the_lock(shelf: Shelf) -> None:
    async with shelf.open(2) as (first, second):
        assert await first.lock(ORIGIN, 60) == (True, ())
        await first.save((FOUND,), later())
        assert await second.lock(ORIGIN, 60) == (True, (FOUND,))


async def test_a_lock_whose_holder_died_expires(shelf: Shelf) -> None:
    async with shelf.open() as [died]:
        await died.lock(ORIGIN, 0.3)
    async with shelf.open(2) as (store, other):
        while not (await store.lock(ORIGIN, 60)).is_held:  # nothing marks it
            await asyncio.sleep(0.02)
        await other.unlock(ORIGIN)
        assert not (await other.lock(ORIGIN, 60)).is_held


async def test_the_holder_of_a_lock_can_extend_it(shelf: Shelf) -> None:
    async with shelf.open(2) as (first, second):
        assert (await first.lock(ORIGIN, 0.3)).is_held
        assert (await first.lock(ORIGIN, 60)).is_held
        await asyncio.sleep(0.4)
        assert not (await second.lock(ORIGIN, 60)).is_held
        await first.unlock(ORIGIN)
        assert (await second.lock(ORIGIN, 60)).is_held


async def test_hundreds_of_simultaneous_calls_succeed(shelf: Shelf) -> None:
    """As in a broad crawl, where hundreds of hosts respond at the same time."""
    async with shelf.open() as [store]:
        origins = [Origin("http", f"{number}.town.example", 80) for number in range(200)]
        locks = await asyncio.gather(*(store.lock(origin, 60) for origin in origins))
        assert all(lock.is_held for lock in locks)
        await asyncio.gather(*(store.unlock(origin) for origin in origins))


async def test_one_of_many_simultaneous_calls_gets_the_lock(shelf: Shelf) -> None:
    async with shelf.open(8) as stores:
        got = await asyncio.gather(*(store.lock(ORIGIN, 60) for store in stores))
        assert sorted(one.is_held for one in got) == [False] * 7 + [True]


DAMAGED = [b"", WHOLE[:-1], WHOLE.replace(b"2", b"1", 1), entries.encode((replace(FOUND, origin=OTHER),))]


async def test_a_damaged_or_foreign_entry_is_a_miss(shelf: Shelf) -> None:
    async with shelf.open() as [store]:
        await store.save((EMPTY,), later())
        for entry in DAMAGED:
            shelf.put(ORIGIN, WHOLE)
            assert await store.load(ORIGIN) == (FOUND, LOST)
            shelf.put(ORIGIN, entry)
            assert await store.load(ORIGIN) == (), entry
            await store.save((FOUND,), later())
            assert await store.load(ORIGIN) == (FOUND,)


@pytest.mark.parametrize("servers", ["sqlite", "redis"], indirect=True)
async def test_the_size_is_limited_and_the_oldest_are_deleted(shelf: Shelf) -> None:
    """Redis limits itself with `maxmemory` and an eviction policy; here by time to live, so by age."""
    async with shelf.open() as [store]:
        if shelf.value.startswith("redis"):
            client = store._redis  # type: ignore[attr-defined]
            used = (await client.info("memory"))["used_memory"]
            await client.config_set("maxmemory", used + MAX_BYTES)
            await client.config_set("maxmemory-policy", "volatile-ttl")
            await client.config_set("maxmemory-samples", 64)
        body = noise(8192)
        origins = [Origin("http", f"{number}.town.example", 80) for number in range(100)]
        for number, origin in enumerate(origins):
            await store.save((replace(FOUND, origin=origin, body=body),), later() + 100 * number)
        kept = [bool(await store.load(origin)) for origin in origins]
        assert not any(kept[:50])
        assert all(kept[-8:])
    if shelf.value.startswith("sqlite"):
        assert Path(shelf.value.removeprefix("sqlite:///")).stat().st_size < 2 * MAX_BYTES


async def test_a_password_in_an_error_of_redis_py_is_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    """Version 6 names all options of the Sentinels that it cannot reach."""
    text = "No master found for 's' : <Connection(db=0,password={},credential_provider=None,port=1)>)>"
    error = ConnectionError(text.format("sec,r)e t"))
    assert error_text(error) == text.format("***")
    with pytest.raises(CommandError, match=r"password=\*\*\*,cred"), failures_of("redis+sentinel://host/s"):
        raise error
    store = SimpleNamespace(load=Mock(side_effect=error))
    assert not await CircuitBreaker(store, "the store", lambda: None).load(ORIGIN)
    assert "password=***,cred" in caplog.text


async def test_many_origins_are_listed_page_by_page(shelf: Shelf) -> None:
    async with shelf.open(1, 2**30) as [store]:
        bodies = [noise(700_000) if number % 300 == 0 else b"" for number in range(800)]
        origins = [Origin("http", f"{number}.town.example", 80) for number in range(len(bodies))]
        snapshots = [replace(FOUND, origin=origin, body=bodies[at]) for at, origin in enumerate(origins)]
        for start in range(0, len(snapshots), 100):
            await asyncio.gather(*(store.save((one,), later()) for one in snapshots[start : start + 100]))
        assert await listed(store) == {one.origin: (one,) for one in snapshots}
        if shelf.value.startswith("sqlite"):
            in_order = [str(origin) async for origin, _ in store.items()]
            assert in_order == sorted(in_order)


async def test_deleted_entry_is_gone_and_its_lock_stays(shelf: Shelf) -> None:
    async with shelf.open(2) as (store, other):
        await store.save((FOUND,), later())
        await store.save((EMPTY,), later())
        assert (await store.lock(ORIGIN, 60)).is_held
        assert await store.delete(ORIGIN)
        assert not await store.delete(ORIGIN)
        assert await store.load(ORIGIN) == ()
        assert await listed(store) == {OTHER: (EMPTY,)}
        assert not (await other.lock(ORIGIN, 60)).is_held  # a download may be running


async def test_a_damaged_entry_is_listed_without_snapshots_and_a_key_that_is_not_an_origin_is_not(
    shelf: Shelf,
) -> None:
    async with shelf.open() as [store]:
        await store.save((EMPTY,), later())
        for key in ("", "town", "http://town.example:80", "HTTP://town.example", "http://a:b"):
            shelf.put(key, WHOLE)
        shelf.put(ORIGIN, WHOLE[:-1])
        assert await listed(store) == {ORIGIN: (), OTHER: (EMPTY,)}
