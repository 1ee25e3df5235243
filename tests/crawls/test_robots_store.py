"""``scrapy robots-store``: list, show, export and delete the entries of a store."""

from __future__ import annotations

import json
import shlex
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from scrapy_norobots.commands.robots_store import file_name
from scrapy_norobots.standard import Origin
from tests.helpers.running.commands import Done, conversation, run
from tests.helpers.running.redisserver import RedisServer
from tests.helpers.samples.filled_stores import BODY, HOUR, SLOW, TOWN, fill, snapshots


def of(done: Done) -> dict[str, dict[str, object]]:
    """Return the objects of an output in JSON, by origin."""
    return {one["origin"]: one for one in map(json.loads, done.stdout.splitlines())}


def test_the_origins_of_a_store_are_listed(tmp_path: Path, store: str) -> None:
    done = run(tmp_path, "robots-store", *SLOW, store, "list")
    lines = done.stdout.splitlines()
    assert sorted(lines) == [
        "http://city.example: open (4xx), 0 bytes, 30 h old, no longer fresh",
        f"http://town.example: rules, {len(BODY)} bytes, 3 h old, fresh for 20 h",
        f"http://village.example: rules (stale), {len(BODY)} bytes, 2 days old, fresh for 7 h",
        "https://[::1]:8443: closed (error), 0 bytes, 3 h old, fresh for 7 h",
    ]
    if store.startswith("sqlite"):
        assert lines == sorted(lines)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_list_follows_the_settings(tmp_path: Path, store: str) -> None:
    settings = ("-s", "NOROBOTS_TTL=600", "-s", "NOROBOTS_STATUS_POLICY=allow")
    done = run(tmp_path, "robots-store", *settings, store, "list")
    assert f"http://town.example: rules, {len(BODY)} bytes, 3 h old, no longer fresh\n" in done.stdout
    assert "https://[::1]:8443: open (error)" in done.stdout


def test_list_in_json_has_all_facts(tmp_path: Path, store: str) -> None:
    facts = of(run(tmp_path, "robots-store", "--json", store, "list"))
    village = facts["http://village.example"]
    age, fresh_for, when = village.pop("age"), village.pop("fresh_for"), village.pop("time")
    assert isinstance(age, float)
    assert isinstance(when, float)
    assert isinstance(fresh_for, float)
    assert 50 * HOUR <= age < 51 * HOUR
    assert abs(time.time() - age - when) < HOUR
    assert fresh_for < 0
    assert village == {
        "origin": "http://village.example",
        "outcome": "rules (stale)",
        "url": "http://village.example/robots.txt",
        "status": 200,
        "error": "",
        "failures": 2,
        "size": len(BODY),
    }
    assert facts["https://[::1]:8443"]["status"] is None
    assert facts["https://[::1]:8443"]["error"] == "TimeoutError: \u2026"


def test_an_origin_is_shown_with_its_file(tmp_path: Path, store: str) -> None:
    done = run(tmp_path, "robots-store", store, "show", "http://town.example/staff/rota?x")
    lines = done.stdout.splitlines()
    when = lines.pop(3)
    assert when.startswith("time: 20")
    assert when.endswith("+00:00, 3 h old, fresh for 20 h")
    assert lines == [
        "origin: http://town.example",
        "outcome: rules: http://town.example/robots.txt answered 200",
        "url: http://town.example/robots.txt",
        "failures in a row: 0",
        'etag: "1\\x1b"',
        f"size: {len(BODY)} bytes",
        "",
        "User-agent: *",
        "Disallow: /staff/",
        "# \\udcff\\x1b[31m caf\u00e9",
        "",
    ]
    assert (done.returncode, done.stderr) == (0, "")


def test_show_in_json_has_the_file(tmp_path: Path, store: str) -> None:
    done = run(tmp_path, "robots-store", "--json", store, "show", "http://town.example")
    (shown,) = of(done).values()
    assert isinstance(shown["body"], str)
    assert shown["body"].encode("utf-8", "surrogateescape") == BODY.removeprefix(b"\xef\xbb\xbf")
    assert shown["headers"] == {"etag": '"1\x1b"'}
    assert done.stdout.isascii()


def test_an_origin_without_a_file_is_shown(tmp_path: Path, store: str) -> None:
    done = run(tmp_path, "robots-store", store, "show", "https://[::1]:8443")
    assert (
        "outcome: closed (error): https://[::1]:8443/robots.txt could not be downloaded "
        "(TimeoutError: \u2026), and NOROBOTS_STATUS_POLICY denies 'error'\n"
    ) in done.stdout
    assert done.stdout.endswith("size: 0 bytes\n\n\n")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_forgotten_origin_is_deleted(tmp_path: Path, store: str, options: list[str]) -> None:
    forget = ("robots-store", *options, store, "forget", "http://town.example/")
    first, second = run(tmp_path, *forget), run(tmp_path, *forget)
    assert (first.returncode, second.returncode) == (0, 1)
    if options:
        assert of(first)["http://town.example"]["outcome"] == "forgotten"
        assert of(second)["http://town.example"]["outcome"] == "not in the store"
    else:
        assert first.stdout == "http://town.example: forgotten\n"
        assert second.stdout == "http://town.example: not in the store\n"
    shown = run(tmp_path, "robots-store", *options, store, "show", "http://town.example")
    assert (shown.returncode, shown.stdout) == (1, second.stdout)
    assert len(of(run(tmp_path, "robots-store", "--json", store, "list"))) == 3


def test_files_are_exported_with_an_index(tmp_path: Path, store: str) -> None:
    done = run(tmp_path, "robots-store", store, "export", "deep/er")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    folder = tmp_path / "deep" / "er"
    index = {one["origin"]: one for one in map(json.loads, (folder / "index.jsonl").read_text().splitlines())}
    assert {origin: one["file"] for origin, one in index.items()} == {
        "http://town.example": "http_town.example_80.txt",
        "http://village.example": "http_village.example_80.txt",
        "http://city.example": None,
        "https://[::1]:8443": None,
    }
    assert index["http://city.example"]["outcome"] == "open (4xx)"
    files = sorted(path.name for path in folder.iterdir())
    assert files == ["http_town.example_80.txt", "http_village.example_80.txt", "index.jsonl"]
    assert (folder / files[0]).read_bytes() == (folder / files[1]).read_bytes() == BODY
    again = run(tmp_path, "robots-store", store, "export", "deep/er")
    assert (again.returncode, again.stderr) == (2, "deep/er: File exists\n")
    onto_file = run(tmp_path, "robots-store", store, "export", "deep/er/index.jsonl")
    assert (onto_file.returncode, onto_file.stderr) == (2, "deep/er/index.jsonl: File exists\n")


def test_file_names_are_safe_and_unique() -> None:
    hosts = [
        "town.example", "[::1]", "[::11]", "..", "a/../b", "con", "caf\u00e9", "cafe", "a_b", "a%5Fb", "a\\b",
        "A".lower(), "\ud800", "x" * 150, "x" * 151, "x" * 3000, "x" * 3000 + "y", "\u00e9" * 70,
    ]  # fmt: skip
    origins = [
        Origin(scheme, host, port) for host in hosts for scheme in ("http", "https") for port in (80, 8)
    ]
    names = [file_name(origin) for origin in origins]
    assert len({name.casefold() for name in names}) == len(origins)
    for name in names:
        assert len(name) < 255
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789ABCDEF.-_%")
        assert name.startswith(("http_", "https_"))
        assert name.endswith(".txt")


BAD_INPUT = {
    "robots-store": "nothing to do: expected URL list|show ORIGIN|export FOLDER|forget ORIGIN",
    "robots-store sqlite:///x": "expected URL list",
    "robots-store sqlite:///x empty": "expected URL list",
    "robots-store sqlite:///x list all": "expected URL list",
    "robots-store sqlite:///x show": "expected URL list",
    "robots-store sqlite:///x show town.example": "town.example: 'town.example' is neither a URL nor",
    "robots-store sqlite:///x forget http://a:b": "http://a:b: port 'b' in 'a:b' is not a number up to 65535",
    "robots-store memory list": "memory: unsupported store URL; expected sqlite:///path",
    "robots-store mysql://x list": "mysql://x: ",
    "robots-store --nonsense sqlite:///x list": "no such option: --nonsense",
    "robots-check --store memory http://a/": "memory: unsupported store URL",
    "robots-check --store sqlite:///x --file y http://a/": "--file: not allowed with argument --store",
}


@pytest.mark.parametrize("line", BAD_INPUT)
def test_invalid_arguments_are_errors(tmp_path: Path, line: str) -> None:
    done = run(tmp_path, *shlex.split(line))
    assert (done.returncode, done.stdout) == (2, "")
    assert BAD_INPUT[line] in done.stderr.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


# Stores that are missing, damaged, of another program, or fail


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
