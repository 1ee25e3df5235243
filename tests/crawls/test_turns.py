"""A fleet downloads each robots.txt once, and keeps the Crawl-delay of a site together
(`NOROBOTS_CRAWL_DELAY_SHARED`).
"""

from __future__ import annotations

import itertools
import json
import signal
import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.helpers.running.crawling import ADDON, FLEET, Crawl, crawl, run_crawl
from tests.helpers.running.redisserver import RedisServer
from tests.helpers.sites import Answer, Hit, Site, page

PROCESSES = 4
HOSTS = [f"127.0.2.{number}" for number in range(1, 21)]
PAGES = [f"/page/{number}" for number in range(3)]
FORBIDDEN = ["/back/", "/back/1", "/attic", "/%61ttic/2"]
SHARED = {**ADDON, "NOROBOTS_CRAWL_DELAY_MAX": 5, "NOROBOTS_CRAWL_DELAY_SHARED": True}


class Town(Site):
    """Hosts with a Crawl-delay, whose front pages link to their own pages and to a page of the next host.

    Front pages wait for a request of each process, at most 5 seconds.
    """

    def __init__(self, delay: float) -> None:
        super().__init__(host="0.0.0.0")
        self._robots = f"User-agent: *\nDisallow: /back/\nDisallow: /attic\nCrawl-delay: {delay}\n"
        self._all_are_here = threading.Event()
        self.workers: set[str] = set()

    def answer(self, hit: Hit) -> Answer:
        if hit.target == "/robots.txt":
            return Answer(self._robots)
        self.workers.add(hit.headers["user-agent"])
        if len(self.workers) == PROCESSES:
            self._all_are_here.set()
        if hit.target != "/":
            return page()
        self._all_are_here.wait(5)  # on a busy machine, a process may be too late for its share
        following = HOSTS[(HOSTS.index(hit.host) + 1) % len(HOSTS)]
        return page(*PAGES, *FORBIDDEN, f"{self.url_of(following)}/page/next")

    def gaps(self) -> dict[str, list[float]]:
        """The seconds between requests to each host, in order."""
        times = defaultdict(list)
        for hit in self.hits:
            times[hit.host].append(hit.time)
        return {
            host: [after - before for before, after in itertools.pairwise(all_)]
            for host, all_ in ((host, sorted(found)) for host, found in times.items())
        }


def test_a_fleet_downloads_each_robots_txt_once_and_keeps_its_delay(
    redis_server: RedisServer,
) -> None:
    pytest.importorskip("scrapy_redis", reason="scrapy-redis is not installed")
    redis = pytest.importorskip("redis")
    from tests.helpers.spiders.fleet import SETTINGS

    settings = {**SHARED, **SETTINGS, "REDIS_URL": redis_server.url, "NOROBOTS_STORE": redis_server.url}

    def work(number: int) -> Crawl:
        return crawl(
            settings={**settings, "USER_AGENT": f"worker{number}", "CONCURRENT_REQUESTS": 5},
            arguments={"follow": True},
            timeout=120,
            **FLEET,
        )

    with (
        Town(delay=2) as site,
        redis.Redis.from_url(redis_server.url) as client,
        ThreadPoolExecutor(PROCESSES) as pool,
    ):
        for host in HOSTS:
            client.rpush("fleet:start_urls", json.dumps({"url": f"{site.url_of(host)}/"}))
        seen = list(pool.map(work, range(PROCESSES)))
        gaps = site.gaps()
    requested = Counter((hit.host, hit.target) for hit in site.hits)
    targets = ["/robots.txt", "/", "/page/next", *PAGES]
    assert requested == Counter((host, target) for host in HOSTS for target in targets)
    assert sum(one.stats.get("robotstxt/forbidden", 0) for one in seen) == len(HOSTS) * len(FORBIDDEN)
    assert sum(one.stats.get("robotstxt/request_count", 0) for one in seen) == len(HOSTS)
    assert sum(one.stats.get("norobots/store/hits", 0) for one in seen) > 0
    assert len(site.workers) > 1
    assert min(min(found) for found in gaps.values()) > 1  # the machine may be busy
    assert not any(one.log_lines("WARNING", "NOROBOTS_CRAWL_DELAY_SHARED") for one in seen)


@pytest.mark.parametrize(
    ("how", "problem"), [(signal.SIGKILL, "ConnectionError"), (signal.SIGSTOP, "TimeoutError")]
)
def test_while_redis_fails_each_process_keeps_the_delay_by_itself(
    how: signal.Signals, problem: str, redis_server: RedisServer
) -> None:
    """The first page is asked for while Redis is there; then it is stopped, or hangs."""
    pytest.importorskip("redis")

    def fail(hit: Hit) -> Answer:
        redis_server.send_signal(how)
        return page(*PAGES)

    with Site("User-agent: *\nCrawl-delay: 1\n", answers={"/": fail}) as site:
        settings = {**SHARED, "NOROBOTS_STORE": redis_server.url}
        seen = crawl(f"{site.url}/", settings=settings, arguments={"follow": True})
    assert len(seen.pages) == 1 + len(PAGES)
    [line] = seen.log_lines("WARNING", "NOROBOTS_CRAWL_DELAY_SHARED", problem)
    assert "each process keeps the Crawl-delay of a site by itself" in line
    times = [hit.time for hit in site.hits]
    assert min(after - before for before, after in itertools.pairwise(times)) > 0.95


@pytest.mark.parametrize("ahead", [45, 86_400, 10**300], ids=["more than ten delays", "a day", "more"])
def test_a_turn_far_in_the_future_is_ignored(ahead: int, redis_server: RedisServer) -> None:
    """The clock of a machine was wrong, or another program writes there."""
    redis = pytest.importorskip("redis")
    turn = 1000 * (int(time.time()) + ahead)
    with (
        Site("User-agent: *\nCrawl-delay: 0.2\n", answers={"/": page(*PAGES)}) as site,
        redis.Redis.from_url(redis_server.url) as client,
    ):
        client.set(f"norobots:turn:{site.host}", f"{turn} {turn} other")
        settings = {**SHARED, "NOROBOTS_STORE": redis_server.url, "CLOSESPIDER_TIMEOUT": 40}
        seen = crawl(f"{site.url}/", settings=settings, arguments={"follow": True})
    assert seen.stats["finish_reason"] == "finished"
    assert len(seen.pages) == 1 + len(PAGES)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"NOROBOTS_CRAWL_DELAY_MAX": 0}, "needs NOROBOTS_CRAWL_DELAY_MAX, which is 0"),
        ({}, "NOROBOTS_STORE = 'memory' is not a Redis store; expected redis://host:port/db"),
        (
            {"NOROBOTS_STORE": "redis://:secret@host:port"},
            "NOROBOTS_STORE = 'redis://***' invalid Redis URL: hosts must have names",
        ),
    ],
)
def test_a_shared_delay_needs_a_delay_and_redis(changes: dict[str, Any], problem: str) -> None:
    pytest.importorskip("redis")
    done = run_crawl("data:,", settings={**SHARED, **changes})
    assert f"NOROBOTS_CRAWL_DELAY_SHARED = True: {problem}" in done.stderr
    assert "secret" not in done.stderr
