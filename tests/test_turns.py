"""`Sharing` by itself, on a real SQLite store: whose turn it is, what counts, what is kept."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from scrapy_norobots import sharing
from scrapy_norobots.access import Access, Judge, StatusPolicy
from scrapy_norobots.freshness import Freshness
from scrapy_norobots.sharing import Sharing
from scrapy_norobots.snapshot import Snapshot
from scrapy_norobots.standard import Origin, RobotsTxt
from scrapy_norobots.stores.sqlite import SqliteStore
from tests.test_stores import can_wait_for_deferreds

ORIGIN = Origin("http", "town.example", 80)
TIMES = Freshness(ttl_min=0, ttl=600, error_ttl=60, stale_ttl=3600)
JUDGE = Judge(StatusPolicy.of("koster1996"), TIMES, RobotsTxt.parse)
OPEN, SHUT = b"", b"User-agent: *\nDisallow: /\n"


def found(body: bytes, age: float = 0) -> Snapshot:
    return Snapshot(ORIGIN, ORIGIN.robots_url, time.time() - age, status=200, body=body)


@dataclass
class Crawl:
    """One of those who share a file, with a download that it can make."""

    store: SqliteStore
    sharing: Sharing
    downloads: int = 0
    answer: Callable[[], Snapshot] = lambda: found(SHUT)

    async def download(self, known: Access | None) -> Access:
        self.downloads += 1
        await asyncio.sleep(0.05)
        return JUDGE.judge(self.answer(), known)

    async def load(self, known: Access | None = None) -> tuple[Access, bool]:
        return await self.sharing.load(ORIGIN, known, self.download)


@asynccontextmanager
async def crawls(
    folder: Path, count: int, *, longest: float = 60, closing: bool = False, judge: Judge = JUDGE
) -> AsyncIterator[list[Crawl]]:
    stores = [SqliteStore(str(folder / "robots.sqlite"), 2**20) for _ in range(count)]
    yield [
        Crawl(store, Sharing(store, judge, longest=longest, is_closing=lambda: closing)) for store in stores
    ]
    for store in stores:
        await store.close()


def is_shut(access: Access) -> bool:
    return access.forbids(access.snapshot.origin, "/a", "FooBot")


def test_one_downloads_for_all(tmp_path: Path) -> None:
    async def work() -> None:
        async with crawls(tmp_path, 4) as all_of_them:
            loaded = await asyncio.gather(*(crawl.load() for crawl in all_of_them))
            assert sum(crawl.downloads for crawl in all_of_them) == 1
            assert sorted(is_kept for _, is_kept in loaded) == [False, True, True, True]
            assert all(is_shut(access) for access, _ in loaded)
            assert await all_of_them[0].store.claim(ORIGIN, 60)
            assert not await all_of_them[1].store.claim(ORIGIN, 60)

    asyncio.run(work())


def test_who_fails_gives_up_the_claim(tmp_path: Path) -> None:
    async def work() -> None:
        async with crawls(tmp_path, 2) as (first, second):

            async def fails(known: Access | None) -> Access:
                raise RuntimeError("a bug")

            with pytest.raises(RuntimeError, match="a bug"):
                await first.sharing.load(ORIGIN, None, fails)
            assert await second.store.claim(ORIGIN, 60)

    asyncio.run(work())


def test_who_finds_it_done_gives_up_the_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another saves between the look and the claim."""

    async def work() -> None:
        async with crawls(tmp_path, 2) as (first, second):
            claim = first.store.claim

            async def late(origin: Origin, seconds: float) -> bool:
                await second.store.save((found(SHUT),), time.time() + 60)
                return await claim(origin, seconds)

            monkeypatch.setattr(first.store, "claim", late)
            access, is_kept = await first.load()
            assert is_kept
            assert is_shut(access)
            assert first.downloads == 0
            assert await second.store.claim(ORIGIN, 60)

    asyncio.run(work())


def test_nobody_waits_for_longer_than_a_download_can_take(tmp_path: Path) -> None:
    async def work() -> None:
        async with crawls(tmp_path, 2, longest=0.2) as (first, second):
            assert await second.store.claim(ORIGIN, 3600)
            _, is_kept = await first.load()
            assert not is_kept
            assert not await first.store.claim(ORIGIN, 60)  # it is still theirs

    asyncio.run(work())


def test_who_is_closing_does_not_wait(tmp_path: Path) -> None:
    async def work() -> None:
        async with crawls(tmp_path, 2, closing=True) as (first, second):
            assert await second.store.claim(ORIGIN, 3600)
            assert not (await first.load())[1]

    asyncio.run(work())


def test_a_claim_is_renewed_while_the_download_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not can_wait_for_deferreds():
        pytest.skip("this version of Scrapy awaits no Deferred where no reactor runs")
    monkeypatch.setattr(sharing, "CLAIM", 1.5)
    monkeypatch.setattr(sharing, "_RENEWAL", 0.1)

    async def work() -> None:
        async with crawls(tmp_path, 2) as (first, second):
            going_on, done = asyncio.Event(), asyncio.Event()

            async def slowly(known: Access | None) -> Access:
                going_on.set()
                await done.wait()
                return JUDGE.judge(found(SHUT), known)

            loading = asyncio.create_task(first.sharing.load(ORIGIN, None, slowly))
            await going_on.wait()
            await asyncio.sleep(2)
            assert not await second.store.claim(ORIGIN, 60)
            done.set()
            await loading
            await asyncio.sleep(0.3)  # and no longer than that
            assert await second.store.claim(ORIGIN, 60)

    asyncio.run(work())


@pytest.mark.parametrize("ahead", [400, 365 * 86_400])
def test_what_is_dated_far_ahead_is_a_miss(tmp_path: Path, ahead: float) -> None:
    """Neither does it count as fresh, nor as a copy while the site fails."""

    async def work() -> None:
        async with crawls(tmp_path, 1) as [crawl]:
            await crawl.store.save((found(OPEN, age=-ahead),), time.time() + 10**9)
            access, is_kept = await crawl.load()
            assert not is_kept
            assert is_shut(access)
            await crawl.store.save((found(OPEN, age=-ahead),), time.time() + 10**9)
            crawl.answer = lambda: replace(found(b""), status=503)
            access, _ = await crawl.load()
            assert not access.stale
            assert is_shut(access)

    asyncio.run(work())


def test_what_is_old_is_asked_again_and_told_to_the_download(tmp_path: Path) -> None:
    async def work() -> None:
        async with crawls(tmp_path, 1) as [crawl]:
            old = found(OPEN, age=700)
            await crawl.store.save((old,), time.time() + 60)
            knew: list[Access | None] = []

            async def download(known: Access | None) -> Access:
                knew.append(known)
                return JUDGE.judge(found(SHUT), known)

            access, is_kept = await crawl.sharing.load(ORIGIN, None, download)
            assert not is_kept
            assert is_shut(access)
            assert knew[0] is not None
            assert knew[0].snapshot == old

    asyncio.run(work())


def test_what_is_known_is_not_replaced_by_something_older(tmp_path: Path) -> None:
    async def work() -> None:
        async with crawls(tmp_path, 1) as [crawl]:
            await crawl.store.save((found(OPEN, age=100),), time.time() + 60)
            known = JUDGE.judge(found(SHUT, age=50))
            access, is_kept = await crawl.load(known)
            assert not is_kept
            assert is_shut(access)

    asyncio.run(work())


def test_what_came_while_waiting_counts_even_if_it_is_fresh_for_no_time(tmp_path: Path) -> None:
    judge = replace(JUDGE, freshness=replace(TIMES, ttl=0))

    async def work() -> None:
        async with crawls(tmp_path, 2, judge=judge) as (first, second):
            assert await second.store.claim(ORIGIN, 60)
            loading = asyncio.create_task(first.load())
            await asyncio.sleep(0.1)
            await second.store.save((found(SHUT),), time.time() + 60)
            await second.store.release(ORIGIN)
            access, is_kept = await loading
            assert is_kept
            assert is_shut(access)
            assert first.downloads == 0

    asyncio.run(work())


def test_local_failure_is_not_stored(tmp_path: Path) -> None:
    async def work() -> None:
        async with crawls(tmp_path, 1) as [crawl]:
            crawl.answer = lambda: Snapshot(
                ORIGIN, ORIGIN.robots_url, time.time(), error="no proxy", local_failure=True
            )
            access, _ = await crawl.load(JUDGE.judge(found(SHUT, age=700)))
            assert access.stale
            assert await crawl.store.load(ORIGIN) == ()
            assert await crawl.store.claim(ORIGIN, 60)

    asyncio.run(work())
