"""`RobotsLoader` with a real SQLite store: who downloads, what is used, what is saved."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest
from scrapy import Request
from scrapy.settings import Settings

from scrapy_norobots.events import Events
from scrapy_norobots.features import report
from scrapy_norobots.features.report.listing import Examined
from scrapy_norobots.load.loader import RobotsLoader
from scrapy_norobots.rules.access import Access
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.settings import Config
from scrapy_norobots.standard import Origin
from scrapy_norobots.stores import Locked
from scrapy_norobots.stores.opening import open_store
from scrapy_norobots.stores.sqlite import SqliteStore
from tests.helpers.running.redisserver import RedisServer

ORIGIN = Origin("http", "town.example", 80)
REQUEST = Request("http://town.example/a")
OPEN, SHUT = b"", b"User-agent: *\nDisallow: /\n"


def found(body: bytes, age: float = 0) -> Snapshot:
    return Snapshot(ORIGIN, ORIGIN.robots_url, time.time() - age, status=200, body=body)


class FakeFetcher:
    """A fetcher without a network that counts its downloads."""

    def __init__(self) -> None:
        self.snapshot = found(SHUT)
        self.previous: list[Snapshot | None] = []

    async def fetch(self, origin: Origin, request: Request, previous: Snapshot | None) -> Snapshot:
        self.previous.append(previous)
        await asyncio.sleep(0.05)
        return self.snapshot


@dataclass
class Crawl:
    """One of the crawls that share a file."""

    store: SqliteStore
    loader: RobotsLoader
    fetcher: FakeFetcher

    @property
    def downloads(self) -> int:
        return len(self.fetcher.previous)

    async def load(self, previous: Access | None = None) -> tuple[Access, bool]:
        """Return the access, and whether it is from the store."""
        access, source = await self.loader._load_shared(self.store, ORIGIN, REQUEST, previous)
        return access, source == "store"

    def judge(self, snapshot: Snapshot) -> Access:
        return self.loader.judge.judge(snapshot)


@asynccontextmanager
async def crawls(folder: Path, count: int, **settings: Any) -> AsyncIterator[list[Crawl]]:
    """Crawls that share a store; their crawlers are mocks, as in users' unit tests."""
    times = {"NOROBOTS_TTL_MIN": 0, "NOROBOTS_TTL": 600, "NOROBOTS_STALE_TTL": 3600}
    made = []
    for _ in range(count):
        crawler = MagicMock(settings=Settings({**times, **settings}))
        crawler.engine._slot.closing = None
        crawler.signals.send_catch_log_async = AsyncMock()
        config = Config.from_settings(crawler.settings)
        events = Events()
        report.subscribe(crawler, config, events)
        loads = RobotsLoader(crawler, config, events)
        events.opened.send(MagicMock())
        store = loads._store = SqliteStore(str(folder / "robots.sqlite"), 2**20)
        fetcher = loads._fetcher = FakeFetcher()  # type: ignore[assignment]
        made.append(Crawl(store, loads, fetcher))
    yield made
    for crawl in made:
        await crawl.store.close()


def is_shut(access: Access) -> bool:
    return access.forbids(ORIGIN, "/a", "FooBot")


@pytest.mark.parametrize(
    ("owner", "name", "size", "robots", "is_thread"),
    [
        (Examined, "of", 2_000, 0, True),
        (Access, "prepare", 8_000, 3, False),
        (Access, "prepare", 8_000, 4, True),
    ],
    ids=["examined", "small", "small, for many robots"],
)
async def test_a_file_that_takes_long_is_read_in_a_thread(
    owner: type,
    name: str,
    size: int,
    robots: int,
    is_thread: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[bool] = []
    original = getattr(owner, name)

    def noted(*arguments: Any) -> Any:
        seen.append(threading.current_thread() is not threading.main_thread())
        return original(*arguments)

    monkeypatch.setattr(owner, name, noted)
    names = [f"bot{number}" for number in range(robots)]
    async with crawls(tmp_path, 1, NOROBOTS_ALSO_ROBOTS=names) as [crawl]:
        crawl.fetcher.snapshot = found(SHUT.ljust(size, b"#"))
        await crawl.loader._load(ORIGIN, REQUEST, "FooBot")
    assert seen == [is_thread]


async def test_the_lock_is_released_if_the_file_was_saved_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another crawl saves after the load and before the lock."""
    async with crawls(tmp_path, 2) as (first, second):
        acquire = first.store.lock

        async def late(origin: Origin, seconds: float) -> Locked:
            await second.store.save((found(SHUT),), time.time() + 60)
            return await acquire(origin, seconds)

        monkeypatch.setattr(first.store, "lock", late)
        access, is_hit = await first.load()
        assert is_hit
        assert is_shut(access)
        assert first.downloads == 0
        assert (await second.store.lock(ORIGIN, 60)).is_held


async def test_a_new_origin_takes_three_round_trips_and_a_known_one_takes_one(
    tmp_path: Path, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Look; lock and look again; save and unlock."""
    connection = pytest.importorskip("redis.asyncio.connection").AbstractConnection
    sent = 0
    send = connection.send_packed_command

    async def send_and_count(*arguments: Any, **options: Any) -> None:
        nonlocal sent
        sent += 1
        await send(*arguments, **options)

    async with crawls(tmp_path, 2) as (first, second):
        for crawl in (first, second):
            store = crawl.loader._store = open_store(redis_server.url, 0)
            await store.load(Origin("http", "city.example", 80))  # connect
        monkeypatch.setattr(connection, "send_packed_command", send_and_count)
        assert is_shut(await first.loader._load(ORIGIN, REQUEST, "FooBot"))
        assert (first.downloads, sent) == (1, 3)
        assert is_shut(await second.loader._load(ORIGIN, REQUEST, "FooBot"))
        assert (second.downloads, sent) == (0, 4)
        for crawl in (first, second):
            assert crawl.loader._store is not None
            await crawl.loader._store.close()


@pytest.mark.parametrize("ahead", [4_000, 365 * 86_400])
async def test_a_snapshot_from_far_in_the_future_is_a_miss(tmp_path: Path, ahead: float) -> None:
    """Such a snapshot is neither fresh nor a stale copy for use while the site fails."""
    async with crawls(tmp_path, 1) as [crawl]:
        await crawl.store.save((found(OPEN, age=-ahead),), time.time() + 10**9)
        access, is_hit = await crawl.load()
        assert not is_hit
        assert is_shut(access)
        await crawl.store.save((found(OPEN, age=-ahead),), time.time() + 10**9)
        crawl.fetcher.snapshot = replace(found(b""), status=503)
        access, _ = await crawl.load()
        assert not access.stale
        assert is_shut(access)


@pytest.mark.parametrize("ahead", [-50, 4_000])
async def test_a_known_access_is_replaced_by_an_older_one_only_if_its_clock_was_wrong(
    tmp_path: Path, ahead: float
) -> None:
    async with crawls(tmp_path, 1) as [crawl]:
        await crawl.store.save((found(OPEN, age=100),), time.time() + 60)
        access, is_hit = await crawl.load(crawl.judge(found(SHUT, age=-ahead)))
        assert is_hit is (ahead > 0)
        assert is_shut(access) is not is_hit


async def test_an_expired_copy_is_not_used_while_another_process_downloads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawls(tmp_path, 2, NOROBOTS_TIMEOUT=100) as (first, second):
        tried = asyncio.Event()
        acquire = first.store.lock

        async def acquire_and_tell(origin: Origin, seconds: float) -> Locked:
            assert seconds >= 100  # the lock lasts as long as a download may
            locked = await acquire(origin, seconds)
            tried.set()
            return locked

        monkeypatch.setattr(first.store, "lock", acquire_and_tell)
        await second.store.save((found(OPEN, age=700),), time.time() + 60)
        assert (await second.store.lock(ORIGIN, 60)).is_held
        loading = asyncio.create_task(first.load())
        for _ in range(2):
            tried.clear()
            await asyncio.wait_for(tried.wait(), 30)
        await second.store.save((found(SHUT),), time.time() + 60)
        access, is_hit = await loading
        assert is_hit
        assert is_shut(access)
        assert first.downloads == 0
