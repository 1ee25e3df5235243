"""The file of the SQLite store: killed writers, damage, other programs, a full disk."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Origin
from scrapy_norobots.stores import NotAStoreError, Store, entries
from scrapy_norobots.stores.sqlite import SqliteStore
from tests.helpers.running.processes import ROOT
from tests.helpers.samples.snapshots import FOUND, LOST, MAX_BYTES, ORIGIN, later, noise

_T = TypeVar("_T")
Found = tuple[Snapshot, ...]


@asynccontextmanager
async def opened(path: Path, **more: bool) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(str(path), MAX_BYTES, **more)
    try:
        yield store
    finally:
        await store.close()


def using(path: Path, work: Callable[[SqliteStore], Awaitable[_T]], **more: bool) -> _T:
    """Open a file, do some work with the store, and close it."""

    async def work_and_close() -> _T:
        async with opened(path, **more) as store:
            return await work(store)

    return asyncio.run(work_and_close())


async def fill(store: Store, count: int) -> list[bool]:
    """Save snapshots of some origins, and return whether each is there."""
    snapshots = [replace(FOUND, origin=ORIGIN._replace(port=n), body=noise(2000)) for n in range(count)]
    for snapshot in snapshots:
        await store.save((snapshot,), later())
    return [await store.load(snapshot.origin) == (snapshot,) for snapshot in snapshots]


def execute(path: Path, statement: str, *values: object) -> list[Any]:
    """Execute a statement as another program."""
    with closing(sqlite3.connect(path)) as db, db:
        return db.execute(statement, values).fetchall()


def use(path: Path, count: int = 50) -> None:
    """Open a file, check that it works, and close it."""
    assert all(using(path, lambda store: fill(store, count)))


def aside(path: Path) -> list[Path]:
    """Return the renamed files."""
    return list(path.parent.glob(f"{path.name}.*"))


def test_a_killed_writer_loses_nothing_committed(tmp_path: Path) -> None:
    """The writers report each entry after it was saved; none of these may be missing."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.helpers.running.killing", str(tmp_path / "robots.sqlite"), "30"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kills, committed = map(int, done.stdout.split())
    assert kills == 30
    assert committed > kills
    assert not aside(tmp_path / "robots.sqlite")


DAMAGED = (b"SQLite format 3\x00" + bytes(5000), bytes(4096))


@pytest.mark.parametrize(
    ("content", "must_exist", "problem"),
    [
        (b"User-agent: *\n" * 1000, False, r"scrapy\.cfg is not a SQLite database"),
        (b"[settings]\ndefault = town.settings\n", False, "is not a SQLite database"),
        (b"\n", False, "is not a SQLite database"),
        (b"SQLite format", False, "is not a SQLite database"),
        (b"User-agent: *\n" * 1000, True, "is not a SQLite database"),
        (b"", True, "is not a store: it is empty"),
        *((content, True, "is damaged") for content in DAMAGED),
    ],
)
def test_a_file_that_is_not_a_store_is_left_alone(
    tmp_path: Path, content: bytes, must_exist: bool, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "scrapy.cfg"
    path.write_bytes(content)
    with pytest.raises(NotAStoreError, match=problem):
        using(path, origins_in, must_exist=must_exist)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]
    assert not caplog.records


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_file_is_renamed(content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "robots.sqlite"
    path.write_bytes(content)
    use(path)
    [moved] = aside(path)
    assert moved.read_bytes() == content
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        f"{path} is damaged (file is not a database): it was renamed to {moved}, and a new file replaces it"
    )


@pytest.mark.parametrize("must_exist", [False, True])
def test_the_database_of_another_program_is_not_changed(tmp_path: Path, must_exist: bool) -> None:
    path = tmp_path / "theirs.sqlite"
    execute(path, "CREATE TABLE theirs (text)")
    before = path.read_bytes()
    with pytest.raises(NotAStoreError, match=r"theirs\.sqlite is the database of another program"):
        using(path, origins_in, must_exist=must_exist)
    assert path.read_bytes() == before
    assert not aside(path)


async def test_two_stores_rename_a_damaged_file_once(tmp_path: Path) -> None:
    path = tmp_path / "robots.sqlite"
    first, second = SqliteStore(str(path), MAX_BYTES), SqliteStore(str(path), MAX_BYTES)
    assert all(await fill(first, 50))
    assert all(await fill(second, 50))
    path.write_bytes(b"SQLite format 3\x00".ljust(path.stat().st_size, b"\xff"))
    assert all(await fill(first, 50))
    assert all(await fill(second, 5))
    await first.save((LOST,), later())
    assert await second.load(ORIGIN) == (LOST,)
    await first.close()
    await second.close()
    assert len(aside(path)) == 1


async def test_a_deleted_file_is_created_again(tmp_path: Path) -> None:
    async with opened(tmp_path / "robots.sqlite") as store:
        await store.save((FOUND,), later())
        for file in tmp_path.iterdir():
            file.unlink()
        assert await store.load(ORIGIN) == ()
        await store.save((LOST,), later())
        assert await store.load(ORIGIN) == (LOST,)


async def test_the_crawl_may_change_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    async with opened(Path("robots.sqlite")) as store:
        await store.save((FOUND,), later())
        monkeypatch.chdir("elsewhere")
        assert await store.load(FOUND.origin) == (FOUND,)


def test_only_the_owner_can_read_the_files(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        using(tmp_path / "robots.sqlite", lambda store: store.save((FOUND,), later()))
    finally:
        os.umask(before)
    assert [stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()] == [0o600]


def test_the_store_does_not_wait_for_ever_for_another_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapy_norobots.stores.sqlite._BUSY_TIMEOUT", 0.1)
    path = tmp_path / "robots.sqlite"
    use(path)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        use(path)
    db.close()
    use(path)
    assert not aside(path)


def test_a_full_disk_loses_no_entries(tmp_path: Path) -> None:
    """A process whose operating system limits the size of the file."""
    path = tmp_path / "robots.sqlite"
    use(path, 20)
    program = (
        "import asyncio, resource, sys; from tests.unit.test_sqlite import fill, SqliteStore\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "asyncio.run(fill(SqliteStore(sys.argv[1], 2**30), 500))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "sqlite3.OperationalError: " in done.stderr

    async def work(store: Store) -> list[Found]:
        return [await store.load(ORIGIN._replace(port=n)) for n in range(20)]

    assert all(using(path, work))
    assert not aside(path)


@pytest.mark.parametrize(("ahead", "is_free"), [(-1, True), (60, False), (80_000, False), (10**6, True)])
def test_a_lock_is_respected_unless_its_clock_was_wrong(tmp_path: Path, ahead: int, is_free: bool) -> None:
    """A lock that was acquired while another waited for the file expires later than the other's would."""
    path = tmp_path / "robots.sqlite"
    use(path)
    execute(path, "INSERT INTO locks VALUES (?, 'other', ?)", str(ORIGIN), time.time() + ahead)
    assert using(path, lambda store: store.lock(ORIGIN, 20)).is_held is is_free


async def origins_in(store: SqliteStore) -> list[Origin]:
    return [origin async for origin, _ in store.items()]


def look(path: Path) -> list[Origin]:
    """Return the origins in a file, which must exist."""
    return using(path, origins_in, must_exist=True)


def test_a_file_that_another_process_writes_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "robots.sqlite"
    use(path, 5)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    assert len(look(path)) == 5
    db.execute("ROLLBACK")
    db.close()


def test_listing_a_page_that_is_damaged_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "robots.sqlite"
    use(path)
    content = bytearray(path.read_bytes())
    for place in range(4096 * 4, len(content) - 64, 64):
        content[place : place + 48] = os.urandom(48)
    path.write_bytes(content)
    with pytest.raises(NotAStoreError, match="is damaged"):
        look(path)
    assert path.read_bytes() == bytes(content)


@cache
def shelf() -> TemporaryDirectory[str]:
    """A folder for the files of all examples."""
    return TemporaryDirectory()


def read_all(path: Path) -> tuple[Found, dict[Origin, Found]]:
    """Return what a crawl finds for `ORIGIN`, and what robots-store lists."""

    async def work(store: SqliteStore) -> tuple[Found, dict[Origin, Found]]:
        return await store.load(ORIGIN), {origin: found async for origin, found in store.items()}

    return using(path, work)


VALUES = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(codec="utf-8")),
    st.binary(),
)
KEYS = st.one_of(st.just(str(ORIGIN)), VALUES)
ENTRIES = st.one_of(st.just(entries.encode((FOUND, LOST))), VALUES)


@given(st.lists(st.tuples(KEYS, st.booleans(), ENTRIES, st.booleans(), VALUES), max_size=4))
def test_any_values_in_the_rows_are_entries_or_misses(
    rows: list[tuple[object, bool, object, bool, object]],
) -> None:
    """Texts that are not UTF-8 are among them: some bytes are cast to texts."""
    path = Path(shelf().name) / "rows.sqlite"
    if not path.exists():
        use(path, 1)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM entries")
        for key, is_text_key, entry, is_text, until in rows:
            values = ["CAST(? AS TEXT)" if cast else "?" for cast in (is_text_key, is_text)]
            db.execute(f"REPLACE INTO entries VALUES ({', '.join(values)}, ?)", (key, entry, until))
    loaded, listed = read_all(path)
    assert loaded in ((), (FOUND, LOST))
    for origin, found in listed.items():
        assert isinstance(origin, Origin)
        assert found == () or (origin, found) == (ORIGIN, (FOUND, LOST))


@cache
def saved() -> bytes:
    """Return the content of a file with entries of a few origins."""
    path = Path(shelf().name) / "saved.sqlite"

    async def work(store: Store) -> None:
        await store.save((FOUND, LOST), later() + 86_400 * 365)
        await fill(store, 3)

    using(path, work)
    return path.read_bytes()


@given(st.data())
def test_any_change_of_the_file_is_a_miss_or_an_error_of_the_file(data: st.DataObject) -> None:
    """The error is for the circuit breaker; what is read is what was written."""
    content = bytearray(saved())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        change = data.draw(st.binary(min_size=1, max_size=20))
        content[start : start + data.draw(st.sampled_from([len(change), len(change), 0, 4096]))] = change
    with TemporaryDirectory(dir=shelf().name) as folder:
        path = Path(folder) / "robots.sqlite"
        path.write_bytes(content)
        try:
            loaded, listed = read_all(path)
        except (sqlite3.Error, NotAStoreError):
            return
    assert loaded in ((), (FOUND, LOST))
    for origin, found in listed.items():
        assert all(one.origin == origin for one in found)
        assert all(one in (FOUND, LOST) or one.body == noise(2000) for one in found)


@given(st.data())
def test_after_any_change_of_one_bit_the_file_works_or_is_replaced(data: st.DataObject) -> None:
    """Only a file that does not begin like a database is neither used nor changed."""
    content = bytearray(saved())
    # The first page has the header and the schema.
    place = data.draw(st.integers(16, 4095) | st.integers(16, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))

    async def work(store: SqliteStore) -> None:
        await store.load(ORIGIN)
        await store.lock(ORIGIN, 30)
        await store.save((LOST,), later())
        assert await store.load(ORIGIN) == (LOST,)
        assert len(await origins_in(store)) <= 5
        await store.delete(ORIGIN)

    with TemporaryDirectory(dir=shelf().name) as folder:
        path = Path(folder) / "robots.sqlite"
        path.write_bytes(content)
        using(path, work)


@pytest.mark.parametrize(
    ("old", "new"),
    [(b"until REAL", b"untim REAL"), (b"entry BLOB", b"e\xeetry BLOB"), (b"(origin TEXT", b"(oricin TEXT")],
)
def test_a_file_with_a_damaged_schema_is_replaced(
    old: bytes, new: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "robots.sqlite"
    assert saved().count(old)
    path.write_bytes(saved().replace(old, new, 1))
    with pytest.raises(NotAStoreError, match="is damaged"):
        look(path)
    use(path)
    assert len(aside(path)) == 1
    assert "is damaged (its schema is not that of this version): it was renamed to" in caplog.text


def test_a_damaged_key_does_not_make_a_list_endless(tmp_path: Path) -> None:
    """The key is in the index, which is out of order then."""
    path = tmp_path / "robots.sqlite"
    end = saved().rindex(b"http://town.example")
    content = saved()[:end] + b"!" + saved()[end + 1 :]
    path.write_bytes(content)

    with suppress(NotAStoreError):
        assert len(look(path)) <= 5
    assert len(using(path, origins_in)) <= 5


@pytest.mark.skipif("COVERAGE_RUN" in os.environ, reason="coverage writes a file, too")
def test_a_store_is_read_without_a_right_to_write(tmp_path: Path) -> None:
    """Even in a folder where SQLite cannot make its own files. Root may write everywhere."""
    code = """
import asyncio, os, sys
from tests.unit.test_sqlite import ORIGIN, Path, origins_in, using
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
print(*map(str, using(Path(sys.argv[1]), origins_in, must_exist=True)))
using(Path(sys.argv[1]), lambda store: store.delete(ORIGIN), must_exist=True)
"""
    with TemporaryDirectory() as name:
        path = Path(name) / "robots.sqlite"
        using(path, lambda store: store.save((FOUND,), later()))
        path.chmod(0o444)
        path.parent.chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", code, path], cwd=ROOT, capture_output=True, text=True, check=False
        )
        path.parent.chmod(0o755)
        assert done.stdout.splitlines() == ["http://town.example:8080"], done
        assert done.stderr.endswith("attempt to write a readonly database\n")
        assert list(path.parent.iterdir()) == [path]
