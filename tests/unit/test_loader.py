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
from twisted.internet.defer import Deferred

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
from tests.helpers.sites.delaying import DelayingProxy

ORIGIN = Origin("http", "town.example", 80)
REQUEST = Request("http://town.example/a")
OPEN, SHUT = b"", b"User-agent: *\nDisallow: /\n"


def found(body: bytes, age: float = 0) -> Snapshot:
    return Snapshot(ORIGIN, ORIGIN.robots_url, time.time() - age, status=200, body=body)


class FakeFetcher:
    """A fetcher without a network that counts its downloads."""

    def __init__(self) -> None:
        self.snapshot = found(SHUT)
        self.error: Exception | None = None
        self.previous: list[Snapshot | None] = []
        self.started = asyncio.Event()
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def fetch(self, origin: Origin, request: Request, previous: Snapshot | None) -> Snapshot:
        self.previous.append(previous)
        self.started.set()
        await asyncio.sleep(0.05)
        await self.may_end.wait()
        if self.error is not None:
            raise self.error
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
async def crawls(
    folder: Path, count: int, *, is_closing: bool = False, **settings: Any
) -> AsyncIterator[list[Crawl]]:
    """Crawls that share a store; their crawlers are mocks, as in users' unit tests."""
    times = {"NOROBOTS_TTL_MIN": 0, "NOROBOTS_TTL": 600, "NOROBOTS_STALE_TTL": 3600}
    made = []
    for _ in range(count):
        crawler = MagicMock(settings=Settings({**times, **settings}))
        crawler.engine._slot.closing = Deferred() if is_closing else None
        crawler.signals.send_catch_log_async = AsyncMock()
        config = Config.from_settings(crawler.settings)
        events = Events()
        report.subscribe(crawler, config, events)
        loader = RobotsLoader(crawler, config, events)
        store = loader._store = SqliteStore(str(folder / "robots.sqlite"), 2**20)
        fetcher = loader._fetcher = FakeFetcher()  # type: ignore[assignment]
        made.append(Crawl(store, loader, fetcher))
    yield made
    for crawl in made:
        await crawl.store.close()


def is_shut(access: Access) -> bool:
    return access.forbids(ORIGIN, "/a", "FooBot")


def test_a_large_file_is_examined_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    original = Examined.of

    def examine(*arguments: Any) -> Examined:
        seen.append(threading.current_thread() is not threading.main_thread())
        return original(*arguments)

    monkeypatch.setattr(Examined, "of", examine)

    async def work() -> None:
        async with crawls(tmp_path, 1) as (crawl,):
            crawl.fetcher.snapshot = found(SHUT.ljust(2_000, b"#"))
            await crawl.loader._load(ORIGIN, REQUEST, "FooBot")

    asyncio.run(work())
    assert seen == [True]


@pytest.mark.parametrize(("robots", "is_thread"), [(3, False), (4, True)])
def test_a_small_file_is_read_in_a_thread_if_many_robots_read_it(
    robots: int, is_thread: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    original = Access.prepare

    def prepare(access: Access, robot: str) -> None:
        seen.append(threading.current_thread() is not threading.main_thread())
        original(access, robot)

    monkeypatch.setattr(Access, "prepare", prepare)

    async def work() -> None:
        names = [f"bot{number}" for number in range(robots)]
        async with crawls(tmp_path, 1, NOROBOTS_ALSO_ROBOTS=names) as (crawl,):
            crawl.fetcher.snapshot = found(SHUT.ljust(8_000, b"#"))
            await crawl.loader._load(ORIGIN, REQUEST, "FooBot")

    asyncio.run(work())
    assert seen == [is_thread]


def test_a_load_that_raises_releases_the_lock(tmp_path: Path) -> None:
    async def work() -> None:
        async with crawls(tmp_path, 2) as (first, second):
            first.fetcher.error = RuntimeError("a bug")
            with pytest.raises(RuntimeError, match="a bug"):
                await first.load()
            assert (await second.store.lock(ORIGIN, 60)).is_held

    asyncio.run(work())


def test_the_lock_is_released_if_the_file_was_saved_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another crawl saves after the load and before the lock."""

    async def work() -> None:
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

    asyncio.run(work())


def test_the_wait_is_limited_by_the_longest_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Config, "longest_download", 0.2)

    async def work() -> None:
        async with crawls(tmp_path, 2) as (first, second):
            assert (await second.store.lock(ORIGIN, 3600)).is_held
            _, is_hit = await first.load()
            assert not is_hit
            assert not (await first.store.lock(ORIGIN, 60)).is_held  # another crawl still holds it

    asyncio.run(work())


def tells_of_locks(crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Return an event that is set each time a crawl has tried to acquire a lock."""
    tried = asyncio.Event()
    acquire = crawl.store.lock

    async def acquire_and_tell(origin: Origin, seconds: float) -> Locked:
        locked = await acquire(origin, seconds)
        tried.set()
        return locked

    monkeypatch.setattr(crawl.store, "lock", acquire_and_tell)
    return tried


def test_a_new_origin_takes_three_round_trips_and_a_known_one_takes_one(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    """Look; lock and look again; save and unlock."""
    pytest.importorskip("redis")

    async def work() -> None:
        async with DelayingProxy(redis_server.port) as proxy, crawls(tmp_path, 2) as (first, second):
            for crawl in (first, second):
                store = crawl.loader._store = open_store(f"redis://127.0.0.1:{proxy.port}/0", 0)
                await store.load(Origin("http", "city.example", 80))  # connect
            proxy.round_trips = 0
            assert is_shut(await first.loader._load(ORIGIN, REQUEST, "FooBot"))
            assert (first.downloads, proxy.round_trips) == (1, 3)
            assert is_shut(await second.loader._load(ORIGIN, REQUEST, "FooBot"))
            assert (second.downloads, proxy.round_trips) == (0, 4)
            for crawl in (first, second):
                assert crawl.loader._store is not None
                await crawl.loader._store.close()

    asyncio.run(work())


@pytest.mark.parametrize("ahead", [4_000, 365 * 86_400])
def test_a_snapshot_from_far_in_the_future_is_a_miss(tmp_path: Path, ahead: float) -> None:
    """Such a snapshot is neither fresh nor a stale copy for use while the site fails."""

    async def work() -> None:
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

    asyncio.run(work())


def test_a_known_access_is_not_replaced_by_an_older_one(tmp_path: Path) -> None:
    async def work() -> None:
        async with crawls(tmp_path, 1) as [crawl]:
            await crawl.store.save((found(OPEN, age=100),), time.time() + 60)
            access, is_hit = await crawl.load(crawl.judge(found(SHUT, age=50)))
            assert not is_hit
            assert is_shut(access)

    asyncio.run(work())


async def uses_the_file_of(other: Crawl, crawl: Crawl, loading: asyncio.Task[Any]) -> None:
    """End the download of another crawl, and check that the waiting crawl uses its file."""
    await other.store.save((found(SHUT),), time.time() + 60)
    access, is_hit = await loading
    assert is_hit
    assert is_shut(access)
    assert crawl.downloads == 0


def test_an_expired_copy_is_not_used_while_another_process_downloads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        async with crawls(tmp_path, 2) as (first, second):
            await second.store.save((found(OPEN, age=700),), time.time() + 60)
            assert (await second.store.lock(ORIGIN, 60)).is_held
            tried = tells_of_locks(first, monkeypatch)
            loading = asyncio.create_task(first.load())
            for _ in range(2):
                tried.clear()
                await asyncio.wait_for(tried.wait(), 30)
            await uses_the_file_of(second, first, loading)

    asyncio.run(work())
