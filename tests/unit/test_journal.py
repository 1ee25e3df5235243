"""`Journal` keeps requests on disk while they wait."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scrapy import Request, Spider
from scrapy.utils.test import get_crawler

from scrapy_norobots.journal import Journal


class Unpicklable:
    def __reduce__(self) -> str:
        raise RuntimeError("not in a file")


class Town(Spider):
    name = "town"

    def house(self, response: Any) -> None:
        """Do nothing."""


REQUESTS = [
    Request(
        f"http://town.example/{number}",
        method="POST",
        body=b"\x00\xff",
        headers={"X-Number": str(number)},
        meta={"of": ["a", {"list": number}]},
        cb_kwargs={"number": number},
        priority=number,
    )
    for number in range(5)
]


def journal_at(path: Path, **settings: Any) -> Journal:
    crawler = get_crawler(Town, settings)
    crawler.spider = Town.from_crawler(crawler)
    return Journal(path, crawler)


@contextmanager
def killed(path: Path) -> Iterator[Journal]:
    """Yield a journal. After the ``with``, the files are as if its process was killed there."""
    with TemporaryDirectory() as name:
        folder = Path(name) / "new"
        journal = journal_at(folder / path.name)
        yield journal
        journal._thread.shutdown()  # waits until all is saved
        shutil.copytree(folder, path.parent, dirs_exist_ok=True)
        journal._close_file()


def kill_with_requests(path: Path) -> None:
    with killed(path) as journal:
        for request in REQUESTS:
            journal.add(request)


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def in_time() -> None:
        await asyncio.wait_for(work(), 60)

    asyncio.run(in_time())


def test_requests_that_were_not_removed_are_recovered_in_order(tmp_path: Path) -> None:
    async def work() -> None:
        with killed(tmp_path / "new" / "waiting.sqlite") as before:
            for request in REQUESTS:
                before.add(request)
            before.remove([REQUESTS[1], REQUESTS[3], Request("http://other.example/")])
        journal = journal_at(tmp_path / "new" / "waiting.sqlite")
        recovered = await journal.recover()
        assert [request.to_dict() for request in recovered] == [REQUESTS[i].to_dict() for i in (0, 2, 4)]
        assert await journal.recover() == []
        await journal.close()
        assert not list((tmp_path / "new").iterdir())

    run(work)


def test_only_a_kept_request_is_there_for_the_next_run(tmp_path: Path) -> None:
    async def work() -> None:
        journal = journal_at(tmp_path / "waiting.sqlite")
        journal.add(REQUESTS[0])
        journal.remove([REQUESTS[0]])
        journal.keep(REQUESTS[1])
        journal.add(REQUESTS[2])  # the scheduler has it when the crawl ends
        await journal.close()
        later = journal_at(tmp_path / "waiting.sqlite")
        assert [request.url for request in await later.recover()] == [REQUESTS[1].url]
        await later.close()
        assert not list(tmp_path.iterdir())

    run(work)


def test_callbacks_are_recovered(tmp_path: Path) -> None:
    async def work() -> None:
        with killed(tmp_path / "waiting.sqlite") as before:
            spider: Any = before._crawler.spider
            before.add(Request("http://town.example/", callback=spider.house))
        journal = journal_at(tmp_path / "waiting.sqlite")
        [request] = await journal.recover()
        assert request.callback == journal._crawler.spider.house  # type: ignore[union-attr]
        await journal.close()

    run(work)


def test_there_is_no_file_without_requests(tmp_path: Path) -> None:
    async def work() -> None:
        journal = journal_at(tmp_path / "waiting.sqlite")
        assert await journal.recover() == []
        await journal.close()
        assert not list(tmp_path.iterdir())

    run(work)


def test_an_unwritable_file_is_an_error_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        (tmp_path / "file").touch()
        journal = journal_at(tmp_path / "file" / "waiting.sqlite")
        for request in REQUESTS:
            journal.add(request)
        await journal.close()

    run(work)
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "NotADirectoryError" in caplog.text or "FileExistsError" in caplog.text


def test_an_unreadable_request_does_not_affect_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        kill_with_requests(tmp_path / "waiting.sqlite")
        with closing(sqlite3.connect(tmp_path / "waiting.sqlite")) as db, db:
            db.execute("UPDATE requests SET request = ? WHERE key in (2, 3)", (b"nonsense",))
        journal = journal_at(tmp_path / "waiting.sqlite")
        assert [request.priority for request in await journal.recover()] == [0, 3, 4]
        await journal.close()

    run(work)
    [record] = caplog.records
    assert record.levelname == "ERROR"
    assert record.getMessage().startswith("Requests that waited when this job was killed are lost")


def test_requests_are_recovered_from_a_file_in_which_nothing_can_be_deleted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        kill_with_requests(tmp_path / "waiting.sqlite")
        with closing(sqlite3.connect(tmp_path / "waiting.sqlite")) as db, db:
            db.execute(
                "CREATE TRIGGER full BEFORE DELETE ON requests "
                "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
            )
        journal = journal_at(tmp_path / "waiting.sqlite")
        assert [request.priority for request in await journal.recover()] == [0, 1, 2, 3, 4]
        journal.keep(Request("http://town.example/new"))
        await journal.close()
        later = journal_at(tmp_path / "waiting.sqlite")
        urls = [request.url for request in await later.recover()]
        assert urls == ["http://town.example/new", *(request.url for request in REQUESTS[1:])]
        await later.close()
        assert not list(tmp_path.iterdir())

    run(work)
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]


@pytest.mark.parametrize("debug", [False, True])
def test_requests_that_cannot_be_serialized_are_counted(
    debug: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        journal = journal_at(tmp_path / "waiting.sqlite", SCHEDULER_DEBUG=debug)
        requests = [
            Request("http://town.example/", meta={"of": (number for number in range(3))}),
            Request("http://town.example/", callback=print),
            Request("http://town.example/", meta={"of": Unpicklable()}),
            REQUESTS[0],
        ]
        for request in requests:
            journal.add(request)
        journal.remove(requests)
        stats: Any = journal._crawler.stats
        assert stats.get_value("norobots/retry/unserializable") == 3
        await journal.close()

    run(work)
    assert len(caplog.records) == debug


@cache
def waiting() -> tuple[bytes, list[tuple[int, bytes]]]:
    """Return the file and the rows that a killed process leaves."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "waiting.sqlite"
        kill_with_requests(path)
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            rows = db.execute("SELECT key, request FROM requests").fetchall()
        return path.read_bytes(), rows


def recovered_from(path: Path) -> list[dict[str, Any]]:
    found: list[Request] = []

    async def work() -> None:
        journal = journal_at(path)
        found.extend(await journal.recover())
        await journal.close()

    run(work)
    return [request.to_dict() for request in found]


# The time of an example depends on the disk.
FUZZ = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
WRITTEN = [request.to_dict() for request in REQUESTS]


@FUZZ
@given(st.data())
def test_any_change_of_a_row_loses_one_request_and_changes_none(data: st.DataObject) -> None:
    content, rows = waiting()
    key, row = data.draw(st.sampled_from(rows))
    start = data.draw(st.integers(0, len(row)))
    changed = row[:start] + data.draw(st.binary(max_size=3)) + row[start + data.draw(st.integers(0, 3)) :]
    value = data.draw(st.sampled_from([changed, changed, changed, 7, 0.5, "text"]))
    form = data.draw(st.sampled_from(["?", "CAST(? AS TEXT)"]))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "waiting.sqlite"
        path.write_bytes(content)
        with closing(sqlite3.connect(path)) as db, db:
            db.execute(f"UPDATE requests SET request = {form} WHERE key = ?", (value, key))
        found = recovered_from(path)
    assert found == [one for at, one in enumerate(WRITTEN, 1) if at != key or value == row]


@FUZZ
@given(st.data())
def test_any_change_of_the_file_loses_requests_and_changes_none(data: st.DataObject) -> None:
    content = bytearray(waiting()[0])
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        change = data.draw(st.binary(min_size=1, max_size=20))
        content[start : start + data.draw(st.sampled_from([len(change), len(change), 0, 4096]))] = change
    with TemporaryDirectory() as folder:
        path = Path(folder) / "waiting.sqlite"
        path.write_bytes(content)
        found = recovered_from(path)
    assert all(one in WRITTEN for one in found)
