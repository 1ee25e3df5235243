"""What every store does, and what a guarded one does when the store fails."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import sqlite3
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred

from scrapy_norobots import compat
from scrapy_norobots.snapshot import Snapshot
from scrapy_norobots.standard import Origin
from scrapy_norobots.stores import Store, entries, open_store, without_password
from scrapy_norobots.stores import guard as guard_module
from scrapy_norobots.stores.guard import PATIENCE, REST, Guarded
from tests.redisserver import RedisServer

_T = TypeVar("_T")

ORIGIN = Origin("http", "town.example", 8080)
OTHER = Origin("https", "[::1]", 443)
FOUND = Snapshot(
    ORIGIN,
    "http://www.town.example:8080/robots.txt?a=%C3%A4",
    1_700_000_000.123,
    status=200,
    headers={"etag": '"\xe4\x00\u2028"', "cache-control": "max-age=600"},
    body=b"User-agent: *\r\nDisallow: /back/\n\x00\xff\xfe\r",
)
LOST = Snapshot(ORIGIN, ORIGIN.robots_url, 1_700_000_700.5, error="TimeoutError: \u2026", failures=3)
EMPTY = Snapshot(OTHER, OTHER.robots_url, 0.0, status=404)
MAX_BYTES = 256 * 1024


def run(coroutine: Coroutine[Any, Any, _T]) -> _T:
    return asyncio.run(coroutine)


def later() -> float:
    return time.time() + 3600


@dataclass
class Shelf:
    """One place where a kind of store keeps things, for any number of stores."""

    value: str
    put: Callable[[Origin, bytes], None]

    def open(self) -> Store:
        store = open_store(self.value, MAX_BYTES)
        assert store is not None
        return store

    def use(self, work: Callable[[Store], Coroutine[Any, Any, _T]]) -> _T:
        """Open the place, do some work with it, and close it."""

        async def using() -> _T:
            store = self.open()
            try:
                return await work(store)
            finally:
                await store.close()

        return run(using())


@pytest.fixture(params=["sqlite", "redis"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Shelf:
    """Each kind of store."""
    if request.param == "sqlite":
        path = tmp_path / "deep" / "er" / "robots.sqlite"

        def put(origin: Origin, entry: bytes) -> None:
            with sqlite3.connect(path) as db:
                db.execute("REPLACE INTO entries VALUES (?, ?, 0, ?)", (str(origin), entry, later()))
            db.close()

        return Shelf(f"sqlite:///{path}", put)
    redis = pytest.importorskip("redis")
    server = request.getfixturevalue("redis_server")

    def set_key(origin: Origin, entry: bytes) -> None:
        with redis.Redis.from_url(server.url) as client:
            client.set(f"norobots:snapshots:{origin}", entry)

    return Shelf(server.url, set_key)


def test_what_is_saved_is_loaded_byte_by_byte(shelf: Shelf) -> None:
    async def work(store: Store) -> None:
        assert await store.load(ORIGIN) == ()
        await store.save((FOUND, LOST), later())
        await store.save((EMPTY,), later())
        assert await store.load(ORIGIN) == (FOUND, LOST)
        assert await store.load(OTHER) == (EMPTY,)
        assert await store.load(Origin("http", "town.example", 80)) == ()

    shelf.use(work)


def test_what_is_saved_later_counts(shelf: Shelf) -> None:
    async def work(store: Store) -> None:
        await store.save((FOUND, LOST), later())
        await store.save((replace(FOUND, body=b""),), later())
        assert await store.load(ORIGIN) == (replace(FOUND, body=b""),)

    shelf.use(work)


def test_an_exception_stays_in_its_process(shelf: Shelf) -> None:
    async def work(store: Store) -> None:
        await store.save((replace(LOST, exception=TimeoutError()),), later())
        [snapshot] = await store.load(ORIGIN)
        assert snapshot.exception is None

    shelf.use(work)


def test_an_entry_ends_with_its_time(shelf: Shelf) -> None:
    async def work(store: Store) -> None:
        await store.save((FOUND,), time.time() - 1)
        assert await store.load(ORIGIN) == ()
        await store.save((FOUND,), time.time() + 0.2)
        assert await store.load(ORIGIN) == (FOUND,)
        await asyncio.sleep(0.25)
        assert await store.load(ORIGIN) == ()

    shelf.use(work)


def test_it_is_all_there_after_reopening(shelf: Shelf) -> None:
    shelf.use(lambda store: store.save((FOUND, LOST), later()))
    assert shelf.use(lambda store: store.load(ORIGIN)) == (FOUND, LOST)


def test_two_see_what_either_saves(shelf: Shelf) -> None:
    async def work(first: Store) -> None:
        second = shelf.open()
        await first.save((FOUND,), later())
        assert await second.load(ORIGIN) == (FOUND,)
        await second.save((LOST,), later())
        await second.close()
        assert await first.load(ORIGIN) == (LOST,)

    shelf.use(work)


def test_many_writers_lose_nothing(shelf: Shelf) -> None:
    async def work(first: Store) -> None:
        stores = [first, *(shelf.open() for _ in range(3))]
        snapshots = [replace(FOUND, origin=Origin("http", f"{n}.town.example", 80)) for n in range(80)]
        await asyncio.gather(*(stores[n % 4].save((one,), later()) for n, one in enumerate(snapshots)))
        for n, one in enumerate(snapshots):
            assert await stores[(n + 1) % 4].load(one.origin) == (one,)
        for store in stores[1:]:
            await store.close()

    shelf.use(work)


def test_a_claim_is_one_users_until_it_is_released(shelf: Shelf) -> None:
    async def work(first: Store) -> None:
        second = shelf.open()
        assert await first.claim(ORIGIN, 60)
        assert not await second.claim(ORIGIN, 60)
        assert await second.claim(OTHER, 60)
        await second.release(ORIGIN)  # it is not theirs
        assert not await second.claim(ORIGIN, 60)
        await first.release(ORIGIN)
        assert await second.claim(ORIGIN, 60)
        await second.close()

    shelf.use(work)


def test_a_claim_whose_holder_died_ends_by_itself(shelf: Shelf) -> None:
    shelf.use(lambda store: store.claim(ORIGIN, 0.3))

    async def work(store: Store) -> None:
        while not await store.claim(ORIGIN, 60):  # nothing tells of it
            await asyncio.sleep(0.02)
        first = shelf.open()
        await first.release(ORIGIN)
        assert not await first.claim(ORIGIN, 60)
        await first.close()

    shelf.use(work)


def test_who_holds_a_claim_can_renew_it(shelf: Shelf) -> None:
    async def work(first: Store) -> None:
        second = shelf.open()
        assert await first.claim(ORIGIN, 0.3)
        assert await first.claim(ORIGIN, 60)
        await asyncio.sleep(0.4)
        assert not await second.claim(ORIGIN, 60)
        await first.release(ORIGIN)
        assert await second.claim(ORIGIN, 60)
        await second.close()

    shelf.use(work)


def test_hundreds_of_calls_at_once_are_no_failure(shelf: Shelf) -> None:
    """As in a broad crawl, where as many hosts answer at the same time."""

    async def work(store: Store) -> None:
        origins = [Origin("http", f"{number}.town.example", 80) for number in range(300)]
        assert all(await asyncio.gather(*(store.claim(origin, 60) for origin in origins)))
        await asyncio.gather(*(store.release(origin) for origin in origins))

    shelf.use(work)


def test_a_redis_that_was_restarted_fails_no_call(redis_server: RedisServer) -> None:
    """All connections that were open are dead then."""
    pytest.importorskip("redis")

    async def work() -> None:
        store = open_store(redis_server.url, MAX_BYTES)
        assert store is not None
        origins = [Origin("http", f"{number}.town.example", 80) for number in range(40)]
        await asyncio.gather(*(store.load(origin) for origin in origins))
        redis_server.stop()
        redis_server.start()
        for _ in range(2):
            assert await asyncio.gather(*(store.load(origin) for origin in origins)) == [()] * 40
        assert await store.claim(ORIGIN, 60)
        await store.close()

    run(work())


def test_of_many_at_once_one_gets_the_claim(shelf: Shelf) -> None:
    async def work(first: Store) -> None:
        stores = [first, *(shelf.open() for _ in range(7))]
        got = await asyncio.gather(*(store.claim(ORIGIN, 60) for store in stores))
        assert sorted(got) == [False] * 7 + [True]
        for store in stores[1:]:
            await store.close()

    shelf.use(work)


WHOLE = entries.encode((FOUND, LOST))


def compact(head: object) -> bytes:
    return json.dumps(head, separators=(",", ":")).encode()


def sealed(head: object) -> bytes:
    """An entry with a seal like ours and whatever head."""
    content = compact(head) + b"\nbody"
    return entries._MAGIC + entries._digest(content) + b"\n" + content


FACTS = {"url": "", "time": 1.0, "status": 200, "error": "", "headers": {}, "failures": 0, "size": 4}
WRONG_FACTS: list[dict[str, object]] = [
    {"status": "200"},
    {"time": None},
    {"headers": []},
    {"headers": {"etag": 7}},
    {"size": "4"},
    {"mood": "good"},
    {"size": -1},
    {"size": 3},
    {"failures": -1},
    {"status": True},
    {"time": float("nan")},
    {"local_failure": True},
]
HEADS_OF_OTHERS: list[object] = [
    None,
    [],
    {},
    {"origin": list(ORIGIN)},
    {"origin": list(ORIGIN), "snapshots": 7},
    {"origin": list(ORIGIN), "snapshots": [7]},
    *({"origin": list(ORIGIN), "snapshots": [{**FACTS, **wrong}]} for wrong in WRONG_FACTS),
]


@pytest.mark.parametrize(
    "entry",
    [
        b"",
        b"norobots 1 ",
        b"\x80\x04}q\x00.",  # a pickle
        b"{}",
        WHOLE[:-1],
        WHOLE + b"\n",
        WHOLE.replace(b"/back/", b"/bach/"),
        WHOLE.replace(b"norobots 1 ", b"norobots 2 "),
        entries.encode((replace(FOUND, origin=OTHER),)),
        *(sealed(head) for head in HEADS_OF_OTHERS),
    ],
)
def test_an_entry_that_is_damaged_or_not_ours_is_a_miss(shelf: Shelf, entry: bytes) -> None:
    shelf.use(lambda store: store.save((EMPTY,), later()))
    shelf.put(ORIGIN, WHOLE)
    assert shelf.use(lambda store: store.load(ORIGIN)) == (FOUND, LOST)
    shelf.put(ORIGIN, entry)

    async def work(store: Store) -> None:
        assert await store.load(ORIGIN) == ()
        await store.save((FOUND,), later())
        assert await store.load(ORIGIN) == (FOUND,)

    shelf.use(work)


@given(st.data())
def test_no_change_of_an_entry_goes_unnoticed(data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(WHOLE) - 1))
    changed = bytearray(WHOLE)
    changed[place] ^= data.draw(st.integers(1, 255))
    assert entries.decode(bytes(changed), ORIGIN) == ()


@given(st.binary())
def test_no_bytes_are_more_than_a_miss(entry: bytes) -> None:
    assert entries.decode(entry, ORIGIN) == ()


def test_what_the_wrong_ones_are_wrong_beside() -> None:
    """Each of them is one step away from an entry that is read."""
    found = entries.decode(sealed({"origin": list(ORIGIN), "snapshots": [FACTS]}), ORIGIN)
    assert [snapshot.body for snapshot in found] == [b"body"]


# Any JSON, and JSON that is almost what an entry begins with.
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
RIGHT_FACTS: dict[str, st.SearchStrategy[Any]] = {
    "url": st.text(),
    "time": st.floats(),
    "status": st.none() | st.integers(),
    "error": st.text(),
    "headers": st.dictionaries(st.text(max_size=5), st.text(max_size=5) | JSON, max_size=2),
    "failures": st.integers(),
    "size": st.integers(-1, 4),
}
LIKE_FACTS = st.fixed_dictionaries(
    {}, optional={name: st.one_of(right, right, right, JSON) for name, right in RIGHT_FACTS.items()}
) | st.fixed_dictionaries(RIGHT_FACTS, optional={"local_failure": JSON, "body": JSON})
HEADS = st.fixed_dictionaries(
    {"origin": st.just(list(ORIGIN)) | JSON, "snapshots": st.lists(LIKE_FACTS, max_size=2) | JSON}
)


@given(st.one_of(HEADS, HEADS, JSON).map(compact) | st.binary(), st.binary(max_size=4))
@example(b"[" * 100_000, b"")
def test_no_sealed_bytes_are_more_than_a_miss(line: bytes, bodies: bytes) -> None:
    """Somebody else may know how to seal an entry: what it says is of the right types, or a miss."""
    content = line + b"\n" + bodies
    found = entries.decode(entries._MAGIC + entries._digest(content) + b"\n" + content, ORIGIN)
    for snapshot in found:
        assert snapshot.origin == ORIGIN
        assert snapshot.status is None or type(snapshot.status) is int
        assert snapshot.local_failure is False
        assert snapshot.failures >= 0
        assert math.isfinite(snapshot.time)
        assert all(
            isinstance(text, str) for text in [snapshot.url, snapshot.error, *snapshot.headers.values()]
        )
    assert not found or b"".join(snapshot.body for snapshot in found) == bodies


@given(
    st.lists(
        st.builds(
            Snapshot,
            origin=st.just(ORIGIN),
            url=st.text(),
            time=st.floats(allow_nan=False, allow_infinity=False),
            status=st.none() | st.integers(0, 999),
            error=st.text(st.characters(codec=None)),
            headers=st.dictionaries(st.text(), st.text()),
            body=st.binary(),
            failures=st.integers(0, 10**9),
            exception=st.none(),
        ),
        min_size=1,
        max_size=2,
    )
)
def test_any_snapshots_come_back(snapshots: list[Snapshot]) -> None:
    assert entries.decode(entries.encode(snapshots), ORIGIN) == tuple(snapshots)


def test_size_is_bounded_and_the_oldest_go(shelf: Shelf) -> None:
    """Redis bounds itself, by `maxmemory` and a policy; here by time to live, which is by age."""

    async def work(store: Store) -> None:
        if shelf.value.startswith("redis"):
            client = store._redis  # type: ignore[attr-defined]
            used = (await client.info("memory"))["used_memory"]
            await client.config_set("maxmemory", used + MAX_BYTES)
            await client.config_set("maxmemory-policy", "volatile-ttl")
            await client.config_set("maxmemory-samples", 64)
        body = bytes(8192)
        origins = [Origin("http", f"{number}.town.example", 80) for number in range(100)]
        for number, origin in enumerate(origins):
            await store.save((replace(FOUND, origin=origin, body=body),), later() + 100 * number)
        kept = [bool(await store.load(origin)) for origin in origins]
        assert not any(kept[:50])
        assert all(kept[-8:])

    shelf.use(work)
    if shelf.value.startswith("sqlite"):
        assert Path(shelf.value.removeprefix("sqlite:///")).stat().st_size < 2 * MAX_BYTES


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("sqlite", "is no store; write memory, sqlite:///path or redis://host:port/db"),
        ("sqlite://", "names no file; write sqlite:///relative/path or sqlite:////absolute/path"),
        ("sqlite:///", "names no file"),
        ("sqlite://robots.sqlite", "names no file"),
        ("mysql://x", "is no store"),
        ("Memory", "is no store"),
        ("redis://host:port/0", "is no URL of a Redis database: Port could not be cast"),
        ("redis://:sec/ret@host", "is no URL of a Redis database: its port must be a number, and special"),
        ("redis://host:6379/abc", "'abc' is no number of a Redis database"),
        ("redis://host?decode_responses=True", "decode_responses cannot be used"),
    ],
)
def test_a_value_that_names_no_store_is_refused(value: str, problem: str) -> None:
    if value.startswith("redis"):
        pytest.importorskip("redis")
    with pytest.raises(ValueError, match=f"^{problem}"):
        open_store(value, MAX_BYTES)


def test_memory_needs_no_store() -> None:
    assert open_store("memory", MAX_BYTES) is None


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("sqlite:////a/b?c", "sqlite:////a/b?c"),
        ("redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"),
        ("redis://me:secret@127.0.0.1:6379/0", "redis://me:***@127.0.0.1:6379/0"),
        ("redis://:secret@127.0.0.1", "redis://:***@127.0.0.1"),
        ("unix:///run/redis.sock?db=1&password=secret", "unix:///run/redis.sock?db=1&password=***"),
        ("redis://:sec/r@e:t@[::1", "redis://:***@[::1"),
        ("redis://me@host:6379?password=a@b&db=1", "redis://me@host:6379?password=***&db=1"),
    ],
)
def test_a_password_is_not_shown(value: str, shown: str) -> None:
    assert without_password(value) == shown


class Moody:
    """A store that fails when told to, and counts what it is asked."""

    def __init__(self) -> None:
        self.mood: Callable[[], Coroutine[Any, Any, object]] | None = None
        self.calls = 0

    async def _do(self, result: _T) -> _T:
        self.calls += 1
        if self.mood is not None:
            await self.mood()
        return result

    async def load(self, origin: Origin) -> tuple[Snapshot, ...]:
        return await self._do((FOUND,))

    async def save(self, snapshots: object, until: float) -> None:
        await self._do(None)

    async def claim(self, origin: Origin, seconds: float) -> bool:
        return await self._do(False)

    async def release(self, origin: Origin) -> None:
        await self._do(None)

    async def close(self) -> None:
        await self._do(None)


async def fail() -> None:
    raise OSError("disk is on \x1b[31mfire")


async def hang() -> None:
    await asyncio.Event().wait()


@dataclass
class Guard:
    store: Moody
    guarded: Guarded
    now: float = 1000.0
    failures: int = 0


@pytest.fixture
def guard(monkeypatch: pytest.MonkeyPatch) -> Guard:
    monkeypatch.setattr("scrapy_norobots.stores.guard.PATIENCE", 0.05)
    guard = Guard(Moody(), None)  # type: ignore[arg-type]

    def count() -> None:
        guard.failures += 1

    guard.guarded = Guarded(guard.store, "the store", count, clock=lambda: guard.now)
    return guard


@pytest.mark.parametrize("mood", [fail, hang])
def test_a_store_that_fails_is_reported_once_and_left_alone(
    guard: Guard, mood: Callable[[], Coroutine[Any, Any, None]], caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        assert await guard.guarded.load(ORIGIN) == (FOUND,)
        guard.store.mood = mood
        for _ in range(3):
            assert await guard.guarded.load(ORIGIN) == ()
            assert await guard.guarded.claim(ORIGIN, 60)
            await guard.guarded.save((FOUND,), 0)
            await guard.guarded.release(ORIGIN)
        assert guard.store.calls == 2  # one before, one in vain
        guard.now += REST
        assert await guard.guarded.load(ORIGIN) == ()
        assert await guard.guarded.load(ORIGIN) == ()
        assert guard.store.calls == 3
        guard.store.mood = None
        guard.now += REST + PATIENCE
        assert await guard.guarded.load(ORIGIN) == (FOUND,)
        assert not await guard.guarded.claim(ORIGIN, 60)
        await guard.guarded.save((FOUND,), 0)
        await guard.guarded.release(ORIGIN)

    with caplog.at_level(logging.INFO):
        run(work())
    why = r"OSError: disk is on \x1b[31mfire" if mood is fail else "TimeoutError: no answer within 0.05 s"
    assert [record.getMessage() for record in caplog.records] == [
        f"the store failed ({why}); the crawl goes on from memory, and it is tried again from time to time",
        "the store works again and is used",
    ]
    assert guard.failures == 2


def test_many_that_fail_at_once_are_one_warning(guard: Guard, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        guard.store.mood = hang
        assert await asyncio.gather(*(guard.guarded.load(ORIGIN) for _ in range(30))) == [()] * 30
        guard.now += REST
        guard.store.calls = 0
        await asyncio.gather(*(guard.guarded.load(ORIGIN) for _ in range(30)))
        assert guard.store.calls == 1  # one finds out, the others do not wait for it

    run(work())
    assert len(caplog.records) == 1


def test_a_store_that_can_be_read_only_works_again_when_it_can_be_written(
    guard: Guard, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        for _ in range(5):
            guard.store.mood = None
            assert await guard.guarded.load(ORIGIN) == (FOUND,)
            guard.store.mood = fail
            await guard.guarded.save((FOUND,), 0)
            guard.now += REST + PATIENCE
        guard.store.mood = None
        await guard.guarded.load(ORIGIN)
        assert len(caplog.records) == 1
        await guard.guarded.save((FOUND,), 0)

    run(work())
    assert [record.getMessage().rpartition("store ")[2][:5] for record in caplog.records] == [
        "faile",
        "works",
    ]
    assert guard.failures == 5


def test_calls_that_wait_for_others_do_not_lose_patience(guard: Guard) -> None:
    """A bounded number of calls is under way; the time of the others has not begun."""
    if not can_wait_for_deferreds():
        pytest.skip("this version of Scrapy awaits no Deferred where no reactor runs")
    under_way = most = 0

    async def slowly() -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1

    async def work() -> None:
        guard.store.mood = slowly
        await asyncio.gather(*(guard.guarded.load(ORIGIN) for _ in range(300)))

    run(work())
    assert guard.store.calls == 300
    assert most == guard_module._AT_ONCE


def can_wait_for_deferreds() -> bool:
    async def work() -> None:
        deferred: Deferred[None] = Deferred()
        asyncio.get_running_loop().call_soon(deferred.callback, None)
        await compat.waiting_for(deferred)

    try:
        run(work())
    except RuntimeError:
        return False
    return True


def test_after_closing_nothing_is_asked(guard: Guard) -> None:
    async def work() -> None:
        await guard.guarded.close()
        assert await guard.guarded.load(ORIGIN) == ()
        guard.store.mood = fail
        await guard.guarded.close()

    run(work())
    assert guard.store.calls == 2
    assert guard.failures == 0


def test_a_redis_that_is_not_there_fails() -> None:
    redis = pytest.importorskip("redis")
    store = open_store("redis://127.0.0.1:1/0", MAX_BYTES)
    assert store is not None

    async def work() -> None:
        with pytest.raises(redis.ConnectionError):
            await store.load(ORIGIN)
        await store.close()

    run(work())


def test_without_redis_py_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    monkeypatch.delitem(sys.modules, "scrapy_norobots.stores.redis", raising=False)
    with pytest.raises(ImportError, match=r"^needs redis-py: pip install 'scrapy-norobots\[redis\]'"):
        open_store("redis://127.0.0.1/0", MAX_BYTES)
