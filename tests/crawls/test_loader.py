"""Crawls that share a store share one download: after restarts, in parallel, and when one dies."""

from __future__ import annotations

import gzip
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from scrapy_norobots.standard import Origin
from tests.helpers.running.crawling import ADDON, Crawl, crawl, run_crawl, started
from tests.helpers.running.redisserver import RedisSentinel, RedisServer
from tests.helpers.samples.filled_stores import age
from tests.helpers.samples.settings import NUMBERS, upper_end
from tests.helpers.sites import Answer, Hit, Site, page

RULES = "User-agent: *\nDisallow: /back/\n"


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Settings with each kind of store."""
    if request.param == "sqlite":
        return {**ADDON, "NOROBOTS_STORE": f"sqlite:///{tmp_path}/robots.sqlite"}
    return {**ADDON, "NOROBOTS_STORE": request.getfixturevalue("redis_server").url}


def stats_of(seen: Crawl) -> dict[str, Any]:
    return {
        name.removeprefix("norobots/store/"): value
        for name, value in seen.stats.items()
        if name.startswith("norobots/store/")
    }


def test_a_restart_downloads_nothing_again(mode: str, store: dict[str, Any]) -> None:
    if mode == "select" and "redis" in store["NOROBOTS_STORE"]:
        pytest.skip("Redis needs asyncio")
    with Site(RULES) as site:
        urls = [f"{site.url}/", f"{site.url}/back/"]
        first = crawl(*urls, settings=store)
        second = crawl(*urls, settings=store)
    assert len(site.robots_hits()) == 1
    assert site.pages() == ["/", "/"]
    assert first.drops == second.drops
    assert stats_of(first) == {"misses": 1}
    assert stats_of(second) == {"hits": 1}
    assert "robotstxt/request_count" not in second.stats
    assert second.log_lines("INFO: Storing robots.txt files in ")


def test_redis_needs_asyncio() -> None:
    done = run_crawl(
        "data:,", mode="select", settings={**ADDON, "NOROBOTS_STORE": "redis://:secret@127.0.0.1:1/0"}
    )
    assert "NOROBOTS_STORE = 'redis://***': needs asyncio: use the asyncio reactor" in done.stderr
    assert "secret" not in done.stderr


HOSTS = [f"127.0.0.{number}" for number in range(2, 12)]


def test_a_resumed_job_downloads_nothing_again(tmp_path: Path) -> None:
    """Each page links to a page of the next host; the crawl stops after three pages, several times."""

    def next_page(hit: Hit) -> Answer:
        place = HOSTS.index(hit.host)
        return page(*(f"{site.url_of(host)}/{place}" for host in HOSTS[place + 1 : place + 3]))

    settings = {
        **ADDON,
        "JOBDIR": str(tmp_path / "job"),
        "CLOSESPIDER_PAGECOUNT": 3,
        "CONCURRENT_REQUESTS": 1,
    }
    with Site(RULES, host="0.0.0.0") as site:
        site.answer = lambda hit: (  # type: ignore[method-assign]
            Answer(RULES) if hit.target == "/robots.txt" else next_page(hit)
        )
        runs = 0
        pages: list[str] = []
        while runs < 20:
            runs += 1
            seen = crawl(f"{site.url_of(HOSTS[0])}/", settings=settings, arguments={"follow": True})
            pages += seen.pages
            if seen.stats["finish_reason"] == "finished":
                break
    assert runs > 2
    assert {hit.host for hit in site.hits} == set(HOSTS)
    assert sorted(hit.host for hit in site.robots_hits()) == sorted(HOSTS)
    assert (tmp_path / "job" / "robots.sqlite").exists()


def test_parallel_processes_share_one_download(store: dict[str, Any]) -> None:
    """All processes wait before the response to robots.txt is sent."""
    everybody_asks = threading.Barrier(4)
    answered = threading.Event()

    def robots(hit: Hit) -> Answer:
        answered.wait(10)
        return Answer(RULES)

    def start(hit: Hit) -> Answer:
        everybody_asks.wait(30)
        answered.set()
        return page(f"{site.url}/", f"{site.url}/back/")

    with Site(robots) as site, Site(answers={"/": start}) as other, ThreadPoolExecutor(4) as pool:
        seen = list(
            pool.map(lambda _: crawl(f"{other.url}/", settings=store, arguments={"follow": True}), range(4))
        )
    assert len(site.robots_hits()) == 1
    assert site.pages() == ["/"] * 4
    assert [[drop.type for drop in one.drops] for one in seen] == [["RobotsForbidden"]] * 4
    assert sum(stats_of(one).get("hits", 0) for one in seen) == 3 * 2  # both sites


def test_two_crawls_of_one_process_share_one_download(tmp_path: Path) -> None:
    settings = {**ADDON, "NOROBOTS_STORE": f"sqlite:///{tmp_path}/robots.sqlite"}
    with Site(RULES) as site:
        seen = crawl(f"{site.url}/", settings=settings, beside={"USER_AGENT": "other"})
    assert len(site.robots_hits()) == 1, seen.log
    assert site.pages() == ["/", "/"]


def test_a_process_that_dies_while_downloading_is_replaced(store: dict[str, Any]) -> None:
    asked, dead = threading.Event(), threading.Event()

    def robots(hit: Hit) -> Answer:
        if not asked.is_set():
            asked.set()
            dead.wait(30)
        return Answer(RULES)

    with Site(robots) as site:
        with started(f"{site.url}/", settings=store) as first:
            assert asked.wait(30)
            first.kill()
        dead.set()
        # The lock of the first is held longer than this one waits.
        seen = crawl(f"{site.url}/", f"{site.url}/back/", settings=store, spider="asking.Hasty")
    assert [drop.type for drop in seen.drops] == ["RobotsForbidden"]
    assert len(site.robots_hits()) == 2
    assert site.pages() == ["/"]


def test_processes_share_the_back_off_of_a_failing_host(store: dict[str, Any]) -> None:
    settings = {**store, "RETRY_ENABLED": False}
    with Site(Answer(status=503)) as site:
        origin = Origin.of(site.url)
        assert origin is not None
        seen = [crawl(f"{site.url}/", settings=settings) for _ in range(2)]
        assert len(site.robots_hits()) == 1
        age(store["NOROBOTS_STORE"], origin, 60)
        seen.append(crawl(f"{site.url}/", settings=settings))
        assert len(site.robots_hits()) == 2
    assert [one.drops[0].type for one in seen] == ["RobotsUnreachable"] * 3
    assert "answered 503" in seen[1].drops[0].text
    first, second, third = (float(re.findall(r"again after ([\d.]+) s", one.log)[0]) for one in seen)
    assert (first, third) == (60, 120)  # the second failure in a row
    assert 0 < second <= 60  # rounded


def test_a_copy_of_the_last_crawl_stays_in_use_while_a_host_fails(store: dict[str, Any]) -> None:
    answers = [Answer(RULES, headers={"ETag": '"1"'}), Answer(status=503), Answer(status=304)]
    settings = {**store, "RETRY_ENABLED": False, "NOROBOTS_TTL": 0}
    with Site(lambda hit: answers.pop(0)) as site:
        urls = f"{site.url}/", f"{site.url}/back/"
        seen = [crawl(*urls, settings={**settings, "NOROBOTS_ERROR_TTL": ttl}) for ttl in (0, 60, 60, 0)]
    assert [[drop.type for drop in one.drops] for one in seen] == [["RobotsForbidden"]] * 4
    assert [one.stats.get("norobots/stale", 0) for one in seen] == [0, 1, 0, 0]
    assert seen[1].log_lines("WARNING", "still follow the cached rules", "answered 503")
    assert [hit.headers.get("if-none-match") for hit in site.robots_hits()] == [None, '"1"', '"1"']


@pytest.mark.parametrize(
    "trouble",
    [
        {"DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.middlewares.NoRobotsTxt": 50}},
        {
            "DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.middlewares.DeadProxy": 50},
            "RETRY_ENABLED": False,
        },
        {"DOWNLOAD_HANDLERS": {"http": None}},
        {"ROBOTSTXT_PARSER": "tests.helpers.components.parsers.BrokenParser"},
    ],
    ids=["a middleware", "a proxy", "no handler", "a parser"],
)
def test_a_local_failure_is_not_shared(tmp_path: Path, trouble: dict[str, Any]) -> None:
    settings = {**ADDON, "NOROBOTS_STORE": f"sqlite:///{tmp_path}/robots.sqlite"}
    with Site(RULES) as site:
        broken = crawl(f"{site.url}/", settings={**settings, **trouble})
        mended = crawl(f"{site.url}/", settings=settings)
    assert [drop.type for drop in broken.drops] == ["RobotsUnreachable"]
    assert mended.pages == [f"{site.url}/"]
    assert len(site.robots_hits()) == (2 if "ROBOTSTXT_PARSER" in trouble else 1)


def test_a_crawl_with_each_number_at_its_upper_end_obeys_and_saves(mode: str, store: dict[str, Any]) -> None:
    if mode == "select" and "redis" in store["NOROBOTS_STORE"]:
        pytest.skip("Redis needs asyncio")
    settings = {**store, **{name: upper_end(name) for name in NUMBERS}}
    compressed = Answer(gzip.compress(RULES.encode()), headers={"Content-Encoding": "gzip"})
    with Site(compressed) as site:
        urls = [f"{site.url}/", f"{site.url}/back/"]
        seen = [crawl(*urls, settings=settings) for _ in range(2)]
    assert [[drop.line for drop in one.drops] for one in seen] == [[2], [2]]
    assert len(site.robots_hits()) == 1


@pytest.mark.parametrize("proxy", [None, ""])
def test_a_failure_without_a_proxy_is_shared(tmp_path: Path, proxy: str | None) -> None:
    """The meta of a page may disable the proxy."""
    settings = {
        **ADDON,
        "NOROBOTS_STORE": f"sqlite:///{tmp_path}/robots.sqlite",
        "RETRY_ENABLED": False,
    }
    with Site(Answer(RULES, headers={"Content-Length": "9999"})) as site:
        for _ in range(2):
            crawl({"url": f"{site.url}/", "meta": {"proxy": proxy}}, settings=settings)
    assert site.targets() == ["/robots.txt"]


def test_waiting_processes_share_a_file_with_a_lifetime_of_zero(store: dict[str, Any]) -> None:
    settings = {**store, "NOROBOTS_TTL": 0}
    with Site(RULES) as site:
        crawl(*(f"{site.url}/{number}" for number in range(5)), settings=settings)
    assert 1 <= len(site.robots_hits()) <= 5


def chain(site: Site, goes_on: Callable[[str], bool]) -> Callable[[Hit], Answer]:
    """Respond with pages of one host after another, while `goes_on` returns true for a host."""

    def answer(hit: Hit) -> Answer:
        if hit.target == "/robots.txt":
            return Answer(RULES)
        number = int(hit.host.rpartition(".")[2]) + 256 * int(hit.host.split(".")[2])
        if not goes_on(hit.host):
            return page()
        following = number + 1
        return page(f"{site.url_of(f'127.0.{following // 256}.{following % 256}')}/")

    return answer


def test_a_lock_that_never_expires_holds_up_no_crawl(redis_server: RedisServer) -> None:
    redis = pytest.importorskip("redis")
    with Site(RULES) as site, redis.Redis.from_url(redis_server.url) as client:
        lock = f"norobots:lock:{site.url}"
        client.set(lock, "of another program")
        settings = {**ADDON, "NOROBOTS_STORE": redis_server.url, "CLOSESPIDER_TIMEOUT": 40}
        seen = crawl(f"{site.url}/", settings=settings)
        assert seen.pages == [f"{site.url}/"]
        assert not client.exists(lock)


def test_a_restart_of_redis_does_not_stop_a_crawl(redis_server: RedisServer) -> None:
    """The crawl continues from host to host until the restarted server is in use.

    The first repeated call may save, so two snapshots prove that a load succeeded too.
    """
    import redis

    def goes_on(host: str) -> bool:
        if host == "127.0.0.10":
            redis_server.stop()
        elif host == "127.0.0.20":
            redis_server.start()
        elif int(host.rpartition(".")[2]) > 20 or not host.startswith("127.0.0."):
            with redis.Redis.from_url(redis_server.url) as client:
                return len(client.keys("norobots:snapshots:*")) < 2
        return True

    settings = {**ADDON, "NOROBOTS_STORE": redis_server.url, "DOWNLOAD_DELAY": 0.02}
    with Site(host="0.0.0.0") as site:
        site.answer = chain(site, goes_on)  # type: ignore[assignment, method-assign]
        seen = crawl(f"{site.url_of('127.0.0.2')}/", settings=settings, arguments={"follow": True})
    hosts = {hit.host for hit in site.hits}
    assert len(hosts) > 20
    assert len(seen.pages) == len(hosts)
    assert len(site.robots_hits()) == len(hosts)
    assert len(seen.log_lines("WARNING", "the crawl continues without the store")) == 1
    assert len(seen.log_lines("WARNING", "works again and is in use")) == 1
    assert seen.stats["norobots/store/failures"] >= 1


def test_a_failover_of_redis_loses_no_request(redis_sentinel: RedisSentinel) -> None:
    """The master is killed in the middle; the crawl continues until the replica has taken its place."""
    import redis

    def keys() -> set[str]:
        with redis.Redis.from_url(redis_sentinel.replica.url, decode_responses=True) as client:
            return {
                str(key).removeprefix("norobots:snapshots:") for key in client.keys("norobots:snapshots:*")
            }

    saved_before: set[str] = set()

    def goes_on(host: str) -> bool:
        if host == "127.0.0.20":
            saved_before.update(keys())
            redis_sentinel.master.stop()
        return len(saved_before) == 0 or len(keys() - saved_before) < 2

    settings = {**ADDON, "NOROBOTS_STORE": redis_sentinel.url, "DOWNLOAD_DELAY": 0.02}
    with Site(host="0.0.0.0") as site:
        site.answer = chain(site, goes_on)  # type: ignore[assignment, method-assign]
        seen = crawl(
            f"{site.url_of('127.0.0.2')}/", settings=settings, arguments={"follow": True}, timeout=120
        )
        urls = list(seen.pages)
        kept = keys()
        site.answer = chain(site, lambda _: False)  # type: ignore[assignment, method-assign]
        again = crawl(*urls, *(f"{url}back/" for url in urls), settings=settings)
    assert len(urls) > 20
    assert len(seen.pages) == len({hit.host for hit in site.hits})
    assert sorted(again.pages) == sorted(urls)
    assert len(again.drops) == len(urls)
    assert set(site.pages()) == {"/"}
    assert len(seen.log_lines("WARNING", "the crawl continues without the store")) >= 1
    downloads = Counter(hit.host for hit in site.robots_hits())
    kept_hosts = {urlsplit(key).hostname for key in kept}
    assert {host for host, count in downloads.items() if count > 1} == set(downloads) - kept_hosts
    assert max(downloads.values()) == 2
    assert {urlsplit(key).hostname for key in saved_before} <= kept_hosts


def test_a_store_that_cannot_be_opened_does_not_stop_a_crawl(mode: str, tmp_path: Path) -> None:
    with Site(RULES) as site:
        seen = crawl(
            f"{site.url}/", f"{site.url}/back/", settings={**ADDON, "NOROBOTS_STORE": f"sqlite:///{tmp_path}"}
        )
    assert [drop.type for drop in seen.drops] == ["RobotsForbidden"]
    assert seen.pages == [f"{site.url}/"]
    [line] = seen.log_lines("WARNING", "the crawl continues without the store")
    assert f"NOROBOTS_STORE sqlite:///{tmp_path} failed (IsADirectoryError: " in line
    assert seen.stats["norobots/store/failures"] == 1


def test_a_store_that_is_a_file_of_the_user_is_a_warning_and_not_changed(tmp_path: Path) -> None:
    file = tmp_path / "scrapy.cfg"
    file.write_text("[settings]\ndefault = town.settings\n")
    with Site(RULES) as site:
        settings = {**ADDON, "NOROBOTS_STORE": f"sqlite:///{file}"}
        seen = crawl(f"{site.url}/", f"{site.url}/back/", settings=settings)
    assert seen.pages == [f"{site.url}/"]
    assert len(seen.drops) == 1
    [line] = seen.log_lines("WARNING", "NOROBOTS_STORE")
    problem = f"NotAStoreError: {file} is not a SQLite database"
    assert f"NOROBOTS_STORE sqlite:///{file} failed ({problem}): the crawl continues without" in line
    assert not seen.log_lines("was renamed")
    assert file.read_text() == "[settings]\ndefault = town.settings\n"
    assert list(tmp_path.iterdir()) == [file]


def test_an_interrupted_crawl_does_not_wait_for_others(tmp_path: Path) -> None:
    """Another process holds the lock of the host for minutes. A page under way keeps the crawl open.

    That page takes longer than the pause between two looks into the store.
    """
    import asyncio

    from scrapy_norobots.stores.sqlite import SqliteStore

    path = tmp_path / "robots.sqlite"
    answers = {"/slow": Answer(before=lambda: time.sleep(3))}
    with Site(RULES) as site, Site(answers=answers) as other:
        other.answers["/"] = page(f"{site.url}/", f"{other.url}/slow")

        async def lock() -> None:
            store = SqliteStore(str(path), 2**20)
            origin = Origin.of(site.url)
            assert origin is not None
            assert (await store.lock(origin, 150)).is_held
            await store.close()

        asyncio.run(lock())
        settings = {**ADDON, "NOROBOTS_STORE": f"sqlite:///{path}"}
        spider, arguments = "stopping.StopsEarly", {"pause": 1}
        seen = crawl(f"{other.url}/", settings=settings, spider=spider, arguments=arguments)
    assert seen.stats["finish_reason"] == "enough"
    assert f"{other.url}/slow" in seen.pages, seen.log
    assert not site.robots_hits()


def test_reads_large_files_in_a_thread(mode: str) -> None:
    large = RULES + "# A word on our robots.\n" * 2000
    settings = {**ADDON, "ROBOTSTXT_PARSER": "tests.helpers.components.parsers.TellsItsThread"}
    with Site(RULES) as site, Site(large) as other:
        urls = [f"{one.url}{target}" for one in (site, other) for target in ("/", "/back/")]
        seen = crawl(*urls, settings=settings)
    assert seen.log_lines(f"{len(RULES)} bytes read in thread main")
    assert seen.log_lines(f"{len(large)} bytes read in thread norobots-reader_0")
    assert len(seen.pages) == 2
    assert [drop.type for drop in seen.drops] == ["RobotsForbidden"] * 2


def test_reads_a_large_file_in_a_thread_for_a_second_robot_and_for_reasons_too(mode: str) -> None:
    """The second robot needs the file when it is in memory; the reason of a drop needs the file again."""
    large = (
        "User-agent: FooBot\nDisallow: /back/\n\nUser-agent: *\nDisallow: /nest/\n" + "# A word.\n" * 8_000
    )
    with Site(large) as site:
        requests: list[dict[str, Any]] = [
            {"url": f"{site.url}{target}", "headers": {"User-Agent": robot}, "priority": -number}
            for number, robot in enumerate(("FooBot/1.0", "BarBot/1.0", "FooBot/2.0"))
            for target in ("/", "/back/", "/nest/")
        ]
        for request in requests:
            request["dont_filter"] = True
        settings = {**ADDON, "CONCURRENT_REQUESTS": 1}
        seen = crawl(*requests, settings=settings, spider="noting.NotesThreadsOfTheParser")
        assert len(site.robots_hits()) == 1
    assert set(seen.notes["threads"]) == {"norobots-reader_0"}
    assert sorted(urlsplit(url).path for url in seen.pages) == ["/"] * 3 + ["/back/"] + ["/nest/"] * 2
    assert sorted(drop.line or 0 for drop in seen.drops) == [2, 2, 5]
