"""A fleet of four Scrapy processes with a shared scrapy-redis queue downloads each robots.txt once."""

from __future__ import annotations

import json
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.helpers.running.crawling import ADDON, Crawl, crawl
from tests.helpers.running.redisserver import RedisServer
from tests.helpers.sites import Answer, Hit, Site, page

PROCESSES = 4
HOSTS = [f"127.0.1.{number}" for number in range(1, 31)]
ROBOTS = "User-agent: *\nDisallow: /back/\nDisallow: /attic\n"
ALLOWED = [f"/page/{number}" for number in range(6)]
FORBIDDEN = ["/back/", "/back/1", "/attic", "/%61ttic/2"]


class Town(Site):
    """Hosts whose front pages link to their own pages and to pages of the next host.

    Front pages are sent after each process has sent a request, so that none finishes before all have started.
    """

    def __init__(self) -> None:
        super().__init__(host="0.0.0.0")
        self._all_are_here = threading.Event()

    def answer(self, hit: Hit) -> Answer:
        if not self._all_are_here.is_set() and len(self.workers()) == PROCESSES:
            self._all_are_here.set()
        if hit.target == "/robots.txt":
            return Answer(ROBOTS)
        if hit.target != "/":
            return page()
        self._all_are_here.wait(20)
        following = HOSTS[(HOSTS.index(hit.host) + 1) % len(HOSTS)]
        return page(*ALLOWED, *FORBIDDEN, f"{self.url_of(following)}/page/next")

    def workers(self) -> set[str]:
        return {hit.headers["user-agent"] for hit in list(self.hits)}


@pytest.fixture
def fleet(redis_server: RedisServer) -> Any:
    """The packages that a fleet needs."""
    pytest.importorskip("scrapy_redis", reason="scrapy-redis is not installed")
    return pytest.importorskip("redis")


def test_a_fleet_downloads_each_robots_txt_once(redis_server: RedisServer, fleet: Any) -> None:
    from tests.helpers.spiders.fleet import SETTINGS

    settings = {**ADDON, **SETTINGS, "REDIS_URL": redis_server.url, "NOROBOTS_STORE": redis_server.url}
    settings["CONCURRENT_REQUESTS"] = 4  # a process takes as many hosts at once

    def work(number: int) -> Crawl:
        return crawl(
            settings={**settings, "USER_AGENT": f"worker{number}"},
            spider="fleet.Worker",
            # From scrapy-redis.
            deprecated=r"Passing a .spider. argument|Spider\.log|scrapy_redis\.|scrapy\.http\.FormRequest",
            arguments={"follow": True},
            timeout=120,
        )

    with (
        Town() as site,
        fleet.Redis.from_url(redis_server.url) as client,
        ThreadPoolExecutor(PROCESSES) as pool,
    ):
        for host in HOSTS:
            client.rpush("fleet:start_urls", json.dumps({"url": f"{site.url_of(host)}/"}))
        seen = list(pool.map(work, range(PROCESSES)))

    assert len(site.workers()) == PROCESSES, [one.log for one in seen]
    assert Counter(hit.host for hit in site.robots_hits()) == Counter(HOSTS)
    pages = Counter((hit.host, hit.target) for hit in site.hits if hit.target != "/robots.txt")
    assert pages == Counter((host, target) for host in HOSTS for target in ["/", "/page/next", *ALLOWED])
    assert sum(one.stats.get("robotstxt/forbidden", 0) for one in seen) == len(HOSTS) * len(FORBIDDEN)
    assert sum(one.stats.get("robotstxt/request_count", 0) for one in seen) == len(HOSTS)
    assert sum(one.stats.get("norobots/store/hits", 0) for one in seen) > 0
