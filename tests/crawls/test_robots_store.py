"""``scrapy robots-store`` and ``robots-check --store``: what they say of a store, and leave alone."""

from __future__ import annotations

import asyncio
import json
import shlex
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from scrapy_norobots.commands.robots_store import file_name
from scrapy_norobots.snapshot import Snapshot
from scrapy_norobots.standard import Origin
from scrapy_norobots.stores import open_store
from tests.commands import Done, command, conversation, run, run_in_shell, words
from tests.crawling import crawl
from tests.redisserver import RedisServer
from tests.sites import Site

HOUR = 3600
TOWN, CITY, VILLAGE = (Origin("http", f"{name}.example", 80) for name in ("town", "city", "village"))
SOCKET = Origin("https", "[::1]", 8443)
BODY = b"\xef\xbb\xbfUser-agent: *\r\nDisallow: /staff/\r\n# \xff\x1b[31m caf\xc3\xa9\n"


def snapshots(now: float) -> list[tuple[Snapshot, ...]]:
    """What a store has: rules, a site without a robots.txt, one that is down, and a stale copy."""
    found = Snapshot(TOWN, TOWN.robots_url, now - 3 * HOUR, 200, headers={"etag": '"1\x1b"'}, body=BODY)
    missing = Snapshot(CITY, CITY.robots_url, now - 30 * HOUR, 404)
    down = Snapshot(SOCKET, SOCKET.robots_url, now - 3 * HOUR, error="TimeoutError: \u2026", failures=1)
    old = replace(found, origin=VILLAGE, url=VILLAGE.robots_url, time=now - 50 * HOUR, headers={})
    failed = Snapshot(VILLAGE, VILLAGE.robots_url, now - 3 * HOUR, 503, failures=2)
    return [(found,), (missing,), (down,), (old, failed)]


def fill(value: str, entries: Sequence[tuple[Snapshot, ...]]) -> None:
    async def work() -> None:
        store = open_store(value, 2**30)
        for entry in entries:
            await store.save(entry, time.time() + HOUR)
        await store.close()

    asyncio.run(work())


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Each kind of store, filled; its value."""
    if request.param == "sqlite":
        value = "sqlite:///robots.sqlite"
        fill(f"sqlite:///{tmp_path}/robots.sqlite", snapshots(time.time()))
        return value
    pytest.importorskip("redis")
    value = str(request.getfixturevalue("redis_server").url)
    fill(value, snapshots(time.time()))
    return value


def of(done: Done) -> dict[str, dict[str, object]]:
    """The objects of an output in JSON, by origin."""
    return {one["origin"]: one for one in map(json.loads, done.stdout.splitlines())}


# So that what a test shows does not change within minutes.
SLOW = ("-s", f"NOROBOTS_ERROR_TTL={10 * HOUR}")


def test_the_origins_of_a_store_are_listed(tmp_path: Path, store: str) -> None:
    done = run(tmp_path, "robots-store", *SLOW, store, "list")
    lines = done.stdout.splitlines()
    assert sorted(lines) == [
        "http://city.example: open (4xx), 0 bytes, 30 h old, no longer fresh",
        f"http://town.example: rules, {len(BODY)} bytes, 3 h old, fresh for 21 h",
        f"http://village.example: rules of a stale copy, {len(BODY)} bytes, 2 days old, fresh for 7 h",
        "https://[::1]:8443: closed (error), 0 bytes, 3 h old, fresh for 7 h",
    ]
    if store.startswith("sqlite"):
        assert lines == sorted(lines)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_list_goes_by_the_settings_of_a_crawl(tmp_path: Path, store: str) -> None:
    settings = ("-s", "NOROBOTS_TTL=600", "-s", "NOROBOTS_STATUS_POLICY=allow")
    done = run(tmp_path, "robots-store", *settings, store, "list")
    assert f"http://town.example: rules, {len(BODY)} bytes, 3 h old, no longer fresh\n" in done.stdout
    assert "https://[::1]:8443: open (error)" in done.stdout


def test_programs_get_the_facts_of_each_origin(tmp_path: Path, store: str) -> None:
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
        "outcome": "rules of a stale copy",
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
    assert when.endswith("+00:00, 3 h old, fresh for 21 h")
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
        "# \\xff\\x1b[31m caf\u00e9",
    ]
    assert (done.returncode, done.stderr) == (0, "")


def test_programs_get_the_file_of_an_origin(tmp_path: Path, store: str) -> None:
    done = run(tmp_path, "robots-store", "--json", store, "show", "http://town.example")
    (shown,) = of(done).values()
    assert isinstance(shown["body"], str)
    assert shown["body"].encode("utf-8", "surrogateescape") == BODY.removeprefix(b"\xef\xbb\xbf")
    assert shown["headers"] == {"etag": '"1\x1b"'}
    assert done.stdout.isascii()


def test_an_origin_without_a_file_is_shown(tmp_path: Path, store: str) -> None:
    done = run(tmp_path, "robots-store", store, "show", "https://[::1]:8443")
    assert (
        "outcome: closed (error): https://[::1]:8443/robots.txt could not be had (TimeoutError: \u2026), "
        "and NOROBOTS_STATUS_POLICY denies 'error'\n"
    ) in done.stdout
    assert done.stdout.endswith("size: 0 bytes\n")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_an_origin_that_is_forgotten_is_gone(tmp_path: Path, store: str, options: list[str]) -> None:
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
    assert (again.returncode, again.stderr) == (2, "deep/er is not empty; export to a new folder\n")
    onto_file = run(tmp_path, "robots-store", store, "export", "deep/er/index.jsonl")
    assert (onto_file.returncode, onto_file.stderr) == (2, "deep/er/index.jsonl: File exists\n")


def test_a_name_of_a_file_is_safe_and_one_origins_alone() -> None:
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


def test_urls_are_checked_by_a_store(tmp_path: Path, store: str, mode: str) -> None:
    if mode == "select" and store.startswith("redis"):
        pytest.skip("Redis needs asyncio")
    urls = [
        f"{origin}/staff/" for origin in (TOWN, CITY, VILLAGE, SOCKET, Origin("http", "other.example", 80))
    ]
    done = run(tmp_path, "robots-check", *SLOW, "--store", store, "-", stdin="\n".join(2 * urls), mode=mode)
    assert words(done) == 2 * ["forbidden", "allowed", "forbidden", "unknown", "unknown"]
    ends = [line.partition(" [")[2] for line in done.stdout.splitlines()[:3]]
    assert ends == ["3 h old]", "30 h old, no longer fresh]", "2 days old]"]
    assert "http://other.example is not in the store" in done.stdout
    assert (done.returncode, done.stderr) == (2, "")


def test_programs_get_the_age_of_what_a_store_kept(tmp_path: Path, store: str) -> None:
    urls = [f"{TOWN}/", f"{CITY}/", "http://other.example/"]
    done = run(tmp_path, "robots-check", "--json", "--compare", "--store", store, *urls, mode="asyncio")
    town, city, other = map(json.loads, done.stdout.splitlines())
    assert 3 * HOUR <= town["age"] < 4 * HOUR
    assert (town["fresh"], city["fresh"], other["fresh"]) == (True, False, None)
    assert (town["rfc9309"], city["rfc9309"], other["rfc9309"]) == ("allowed", "allowed", None)
    assert (other["answer"], other["reason"], other["age"]) == ("unknown", "error", None)


def test_no_site_is_asked_for_what_a_store_lacks(tmp_path: Path) -> None:
    fill(f"sqlite:///{tmp_path}/robots.sqlite", snapshots(time.time()))
    with Site("User-agent: *\nDisallow: /") as site:
        done = run(tmp_path, "robots-check", "--store", "sqlite:///robots.sqlite", f"{site.url}/")
    assert (words(done), site.hits) == (["unknown"], [])


def test_what_a_crawl_has_kept_is_found(tmp_path: Path, mode: str) -> None:
    value = f"sqlite:///{tmp_path}/robots.sqlite"
    with Site("User-agent: *\nDisallow: /staff/") as site:
        settings = {"ADDONS": {"scrapy_norobots.Addon": 500}, "NOROBOTS_STORE": value}
        crawl(f"{site.url}/", mode=mode, settings=settings)
        done = run(
            tmp_path, "robots-check", "--store", value, f"{site.url}/staff/", f"{site.url}/", mode=mode
        )
        listed = run(tmp_path, "robots-store", value, "list")
    assert words(done) == ["forbidden", "allowed"]
    assert listed.stdout.startswith(f"{site.url}: rules, 31 bytes, ")
    assert site.targets() == ["/robots.txt", "/"]


def damaged(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 5000)


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE theirs (text)")
    db.close()


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda _: None, "No such file or directory"),
    "a folder": (Path.mkdir, "robots.sqlite is a folder"),
    "empty": (Path.touch, "robots.sqlite is empty and not a store"),
    "damaged": (damaged, "robots.sqlite is damaged (file is not a database)"),
    "foreign": (foreign, "robots.sqlite is another program's database"),
}
USES = {
    "robots-store {} list": "",
    "robots-store {} show http://a.example": "",
    "robots-store {} forget http://a.example": "",
    "robots-store {} export out": "out",
    "robots-check --store {} http://a.example/": "",
}


@pytest.mark.parametrize("line", USES)
@pytest.mark.parametrize("fault", BROKEN)
def test_a_store_that_cannot_be_used_is_an_error_and_left_alone(
    tmp_path: Path, fault: str, line: str
) -> None:
    make, problem = BROKEN[fault]
    path = tmp_path / "robots.sqlite"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    done = run(tmp_path, *shlex.split(line.format("sqlite:///robots.sqlite")))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"sqlite:///robots.sqlite: {problem}\n"
    assert (path.read_bytes() if path.is_file() else None) == before
    left = {one.name for one in tmp_path.iterdir()} - {USES[line]}
    assert left == set() if fault == "missing" else {"robots.sqlite"}


@pytest.mark.parametrize("line", USES)
def test_a_redis_that_is_not_there_is_an_error(tmp_path: Path, line: str) -> None:
    pytest.importorskip("redis")
    url, shown = "redis://:secret@127.0.0.1:1/0", "redis://:***@127.0.0.1:1/0"
    done = run(tmp_path, *shlex.split(line.format(url)), mode="asyncio")
    assert (done.returncode, done.stdout) == (2, "")
    (error,) = done.stderr.splitlines()
    assert error.startswith(f"{shown}: Error ")
    assert "secret" not in done.stderr


BAD_INPUT = {
    "robots-store": "nothing to do: write a store and list, show ORIGIN, export FOLDER or forget ORIGIN",
    "robots-store sqlite:///x": "nothing to do: write a store and list",
    "robots-store sqlite:///x empty": "unknown action 'empty': write a store and list",
    "robots-store sqlite:///x list all": "list takes nothing more",
    "robots-store sqlite:///x show": "show takes one ORIGIN",
    "robots-store sqlite:///x show town.example": "town.example: not an origin; write a scheme and a host",
    "robots-store sqlite:///x forget http://a:b": "http://a:b: not an origin",
    "robots-store memory list": "memory: each process has its own",
    "robots-store mysql://x list": "mysql://x: ",
    "robots-store --nonsense sqlite:///x list": "no such option: --nonsense",
    "robots-check --store memory http://a/": "memory: each process has its own",
    "robots-check --store sqlite:///x --file y http://a/": "--file and --store cannot be combined",
}


@pytest.mark.parametrize("line", BAD_INPUT)
def test_bad_input_gets_a_clear_answer(tmp_path: Path, line: str) -> None:
    done = run(tmp_path, *shlex.split(line))
    assert (done.returncode, done.stdout) == (2, "")
    assert BAD_INPUT[line] in done.stderr.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_help_says_how_it_ends(tmp_path: Path) -> None:
    done = run(tmp_path, "robots-store", "-h")
    assert "exit status is 2 if" in " ".join(done.stdout.split())
    assert "--json" in done.stdout


def test_a_reader_who_has_seen_enough_ends_the_list(tmp_path: Path) -> None:
    found = Snapshot(TOWN, TOWN.robots_url, time.time(), 200)
    many = [(replace(found, origin=Origin("http", f"{n}.example", 80)),) for n in range(5000)]
    fill(f"sqlite:///{tmp_path}/robots.sqlite", many)
    list_all = shlex.join(command("robots-store", "sqlite:///robots.sqlite", "list"))
    done = run_in_shell(tmp_path, f'{list_all} | head -1; echo "${{PIPESTATUS[0]}}"')
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""


def test_a_store_that_fails_ends_a_check_while_standard_input_is_open(
    tmp_path: Path, redis_server: RedisServer, mode: str
) -> None:
    pytest.importorskip("redis")
    if mode == "select":
        pytest.skip("Redis needs asyncio")
    fill(redis_server.url, snapshots(time.time()))
    with conversation(tmp_path, "--store", redis_server.url, mode=mode) as talk:
        assert talk.ask(f"{TOWN}/").startswith("allowed ")
        redis_server.stop()
        talk.write("http://other.example/\n")
        assert talk.wait() == 2
    redis_server.start()
    assert talk.errors.startswith(f"{redis_server.url}: Error ")
