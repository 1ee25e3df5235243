"""Commands that read a store: stores that are missing, damaged, of another program, or fail."""

from __future__ import annotations

import shlex
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.running.commands import conversation, run
from tests.helpers.running.redisserver import RedisServer
from tests.helpers.samples.filled_stores import TOWN, fill, snapshots


def damaged(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 5000)


def text(path: Path) -> None:
    path.write_text("[settings]\ndefault = town.settings\n")


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE theirs (text)")
    db.close()


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda _: None, "No such file or directory"),
    "a folder": (Path.mkdir, "{} is a directory"),
    "empty": (Path.touch, "{} is not a store: it is empty"),
    "text": (text, "{} is not a SQLite database"),
    "damaged": (damaged, "{} is damaged (file is not a database)"),
    "foreign": (foreign, "{} is the database of another program"),
}
USES = {
    "robots-store {} list": "",
    "robots-store {} show http://a.example": "",
    "robots-store {} forget http://a.example": "",
    "robots-store {} export out": "out",
    "robots-check --store {} http://a.example/": "",
}


@pytest.mark.parametrize(
    ("fault", "line"),
    [*((fault, next(iter(USES))) for fault in BROKEN), *(("damaged", line) for line in USES)],
)
def test_unusable_store_is_an_error_and_is_not_changed(tmp_path: Path, fault: str, line: str) -> None:
    make, problem = BROKEN[fault]
    path = tmp_path / "robots.sqlite"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    done = run(tmp_path, *shlex.split(line.format("sqlite:///robots.sqlite")))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"sqlite:///robots.sqlite: {problem.format(path)}\n"
    assert (path.read_bytes() if path.is_file() else None) == before
    left = {one.name for one in tmp_path.iterdir()} - {USES[line]}
    assert left == set() if fault == "missing" else {"robots.sqlite"}


@pytest.mark.parametrize("line", USES)
def test_unreachable_redis_is_an_error(tmp_path: Path, line: str) -> None:
    pytest.importorskip("redis")
    url, shown = "redis://:secret@127.0.0.1:1/0", "redis://***"
    done = run(tmp_path, *shlex.split(line.format(url)), mode="asyncio")
    assert (done.returncode, done.stdout) == (2, "")
    (error,) = done.stderr.splitlines()
    assert error.startswith(f"{shown}: Error ")
    assert "secret" not in done.stderr


def test_store_that_fails_ends_a_check_while_standard_input_is_open(
    tmp_path: Path, redis_server: RedisServer, mode: str
) -> None:
    pytest.importorskip("redis")
    fill(redis_server.url, snapshots(time.time()))
    with conversation(tmp_path, "--store", redis_server.url, mode=mode) as talk:
        assert talk.ask(f"{TOWN}/").startswith("allowed ")
        redis_server.stop()
        talk.write("http://other.example/\n")
        assert talk.wait() == 2
    redis_server.start()
    assert talk.errors.startswith(f"{redis_server.url}: Error ")
