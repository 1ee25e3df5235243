"""Requests that wait for a closed site when a crawl ends, and the runs after it."""

from __future__ import annotations

import json
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.crawls.test_closing import read_until, running
from tests.crawls.test_sites import (
    CLOSED,
    FOR_EVER,
    LINKS,
    QUEUES,
    RETRY,
    ROBOTS,
    Closed,
    InTurn,
    told_to_wait,
    waiting,
)
from tests.helpers.running.crawling import FLEET, Crawl, crawl, wait_for
from tests.helpers.running.redisserver import RedisServer
from tests.helpers.sites import Answer, Hit, Site, page


def test_a_timeout_of_the_spider_ends_the_wait(mode: str) -> None:
    with Site(Closed(9)) as site:
        done = crawl(f"{site.url}/1", settings={**FOR_EVER, "CLOSESPIDER_TIMEOUT": 4})
        assert done.stats["finish_reason"] == "closespider_timeout"
        assert waiting(done) == {"waited": 1, "left": 1}
        assert done.drops == []


def test_an_item_limit_ends_the_wait(mode: str) -> None:
    with Site(Closed(9)) as closed, Site(ROBOTS) as healthy:
        done = crawl(
            f"{closed.url}/1",
            f"{healthy.url}/1",
            settings={**FOR_EVER, "CLOSESPIDER_ITEMCOUNT": 1},
            spider="items.Items",
        )
        assert done.stats["finish_reason"] == "closespider_itemcount"


def test_ctrl_c_ends_the_wait(mode: str) -> None:
    with Site(Closed(9)) as site, running(f"{site.url}/1", settings=FOR_EVER) as process:
        log = read_until("Waits for a closed site", process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.wait() == 0, log + err
        assert json.loads(out)["stats"]["finish_reason"] == "shutdown"
        assert json.loads(out)["stats"]["norobots/retry/left"] == 1


# Jobs


def test_requests_survive_a_stop(mode: str, tmp_path: Path) -> None:
    job = {"JOBDIR": str(tmp_path / "job")}
    with Site(Closed(1)) as site:
        requests = [{"url": f"{site.url}/{number}"} for number in range(20)]
        stopped = crawl(*requests, settings={**FOR_EVER, **job}, spider="scheduling.StopsWhenIdle")
        assert waiting(stopped) == {"waited": 20, "left": 20}
        resumed = crawl(settings={**RETRY, **job})
        assert sorted(resumed.pages) == sorted(request["url"] for request in requests)


@pytest.mark.parametrize("queue", QUEUES)
def test_requests_keep_their_order_after_a_stop(queue: str, tmp_path: Path) -> None:
    settings = {**QUEUES[queue], "JOBDIR": str(tmp_path / "job"), "CONCURRENT_REQUESTS": 1}
    with Site(Closed(1)) as closed, Site(ROBOTS) as healthy:
        healthy.answers["/"] = page(*(closed.url + link for link in LINKS))
        idle: dict[str, Any] = {"spider": "scheduling.StopsWhenIdle", "arguments": {"follow": True}}
        stopped = crawl(f"{healthy.url}/", settings={**FOR_EVER, **settings}, **idle)
        order = told_to_wait(stopped)
        assert sorted(order) == LINKS
        resumed = crawl(settings={**RETRY, **settings})
        assert resumed.pages == [closed.url + target for target in order]


def test_a_request_that_waited_at_a_stop_has_all_its_retries_in_the_next_run(tmp_path: Path) -> None:
    job = {"JOBDIR": str(tmp_path / "job")}
    for_long = Answer(status=503, headers={"Retry-After": "3600"})
    with Site(InTurn(CLOSED, for_long, CLOSED, CLOSED)) as site:
        with running(f"{site.url}/1", settings={**RETRY, **job}) as process:
            log = read_until("wait until", process, times=2)  # the first retry has failed
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            assert process.wait() == 0, log + err
            assert json.loads(out)["stats"]["norobots/retry/left"] == 1
            assert json.loads(out)["drops"] == []
        resumed = crawl(settings={**RETRY, **job, "NOROBOTS_STORE": "memory"})
        assert resumed.pages == [f"{site.url}/1"]
        assert len(site.robots_hits()) == 5


def test_a_request_that_waits_for_its_rules_survives_a_stop(mode: str, tmp_path: Path) -> None:
    job = {"JOBDIR": str(tmp_path / "job")}
    hits: list[Hit] = []

    def robots(hit: Hit) -> Answer:
        hits.append(hit)
        if len(hits) == 1:
            time.sleep(2)  # so that the crawl is stopped during the download
            return Answer(status=503)
        return Answer(ROBOTS)

    with Site(robots) as site:
        with running(f"{site.url}/1", settings={**FOR_EVER, **job}) as process:
            wait_for(lambda: bool(hits))
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            assert process.wait() == 0, err
            assert json.loads(out)["drops"] == []
        assert crawl(settings={**RETRY, **job}).pages == [f"{site.url}/1"]


def test_a_request_that_is_given_back_during_a_stop_survives_it(mode: str, tmp_path: Path) -> None:
    """A middleware keeps it while its site closes, and until the crawl does."""
    kept, release = threading.Event(), threading.Event()

    def token(hit: Hit) -> Answer:
        kept.set()
        release.wait(60)
        return page()

    def late(hit: Hit) -> Answer:
        kept.wait(60)
        time.sleep(0.5)  # until the rules have expired
        return page(f"{closed.url}/late")

    settings = {**FOR_EVER, "NOROBOTS_TTL": 0.3, "NOROBOTS_TTL_MIN": 0, "NOROBOTS_STALE_TTL": 0}
    settings |= {"JOBDIR": str(tmp_path / "job")}
    with Site(InTurn(Answer(ROBOTS), CLOSED)) as closed, Site(ROBOTS) as healthy:
        healthy.answers |= {"/token": token, "/links/token": late}
        keeping = {
            "OTHER": f"{healthy.url}/token",
            "DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.middlewares.AsksAnotherFirst": 50},
        }
        urls = [f"{closed.url}/kept", f"{healthy.url}/links/token"]
        with running(*urls, settings={**settings, **keeping}, arguments={"follow": True}) as process:
            log = read_until("Waits for a closed site", process)
            process.send_signal(signal.SIGINT)
            log += read_until("Closing spider", process)
            release.set()
            out, err = process.communicate(timeout=60)
            assert process.wait() == 0, log + err
        assert json.loads(out)["stats"]["norobots/retry/left"] == 2
        resumed = crawl(settings={**settings, **RETRY})
        assert sorted(resumed.pages) == [f"{closed.url}/kept", f"{closed.url}/late"]


def test_a_stop_while_a_retry_hangs_drops_no_request(mode: str, tmp_path: Path) -> None:
    job = {"JOBDIR": str(tmp_path / "job")}
    asked, release = threading.Event(), threading.Event()
    hits: list[Hit] = []

    def robots(hit: Hit) -> Answer:
        hits.append(hit)
        if len(hits) == 2:
            asked.set()
            release.wait(60)
        return Answer(status=503) if len(hits) <= 2 else Answer(ROBOTS)

    def late(hit: Hit) -> Answer:
        asked.wait(60)
        return page(f"{closed.url}/late", f"{healthy.url}/then")

    once = {"NOROBOTS_RETRY_CLOSED": 1, "NOROBOTS_ERROR_TTL": 0.2}
    with Site(robots) as closed, Site(ROBOTS) as healthy:
        healthy.answers["/"] = late
        urls = [f"{closed.url}/early", f"{healthy.url}/"]
        with running(*urls, settings={**FOR_EVER, **once, **job}, arguments={"follow": True}) as process:
            # The late request waits for the retry, which does not end. The other one is sent at that time.
            log = read_until(f"Crawled (200) <GET {healthy.url}/then>", process)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            assert process.wait() == 0, log + err
        release.set()
        seen = json.loads(out)
        assert seen["drops"] == []
        assert seen["stats"]["norobots/retry/left"] == 2
        resumed = crawl(settings={**RETRY, **job})
        assert sorted(resumed.pages) == [f"{closed.url}/early", f"{closed.url}/late"]


# scrapy-redis


def test_processes_that_share_a_queue_retry_requests(redis_server: RedisServer) -> None:
    pytest.importorskip("scrapy_redis", reason="scrapy-redis is not installed")
    redis = pytest.importorskip("redis")
    from tests.helpers.spiders.fleet import SETTINGS

    with (
        Site(Closed(2)) as closed,
        Site(ROBOTS) as healthy,
        redis.Redis.from_url(redis_server.url) as client,
    ):
        urls = [f"{site.url}/{number}" for number in range(20) for site in (closed, healthy)]
        for url in urls:
            client.rpush("fleet:start_urls", json.dumps({"url": url}))
        settings = {**RETRY, **SETTINGS, "REDIS_URL": redis_server.url, "NOROBOTS_STORE": redis_server.url}
        # The first is stopped while requests wait, and they go back to the shared queue.
        stopped = crawl(settings={**settings, "NOROBOTS_ERROR_TTL": 3600, "CLOSESPIDER_TIMEOUT": 8}, **FLEET)
        left = waiting(stopped)["left"]
        assert left > 0
        assert stopped.drops == []
        done = crawl(settings=settings, timeout=120, **FLEET)
        assert sorted(stopped.pages + done.pages) == sorted(urls)


# The wrapped scheduler


def scheduled(done: Crawl) -> tuple[int, int]:
    """Return how many requests went into the scheduler, and how many came out, by its stats."""
    return done.stats.get("scheduler/enqueued", 0), done.stats.get("scheduler/dequeued", 0)


@pytest.mark.parametrize("has_job", [False, True], ids=["in memory", "with JOBDIR"])
def test_the_stats_of_the_scheduler_count_each_request_once(has_job: bool, tmp_path: Path) -> None:
    job = {"JOBDIR": str(tmp_path / "job")} if has_job else {}
    with Site(Closed(1)) as closed, Site(ROBOTS) as healthy:
        urls = [f"{site.url}/{number}" for number in range(6) for site in (closed, healthy)]
        done = crawl(*urls, settings={**RETRY, **job})
        assert waiting(done)["came_back"] > 0
        assert scheduled(done) == (12, 12)
        kind = "disk" if has_job else "memory"
        assert done.stats[f"scheduler/enqueued/{kind}"] == done.stats[f"scheduler/dequeued/{kind}"] == 12


@pytest.mark.parametrize("has_job", [False, True], ids=["in memory", "with JOBDIR"])
def test_the_stats_of_the_scheduler_count_each_request_once_after_a_stop(
    has_job: bool, tmp_path: Path
) -> None:
    job = {"JOBDIR": str(tmp_path / "job")} if has_job else {}
    with Site(Closed(1)) as closed, Site(ROBOTS) as healthy:
        urls = [f"{site.url}/{number}" for number in range(6) for site in (closed, healthy)]
        stopped = crawl(*urls, settings={**FOR_EVER, **job}, spider="scheduling.StopsWhenIdle")
        assert waiting(stopped) == {"waited": 6, "left": 6}
        assert scheduled(stopped) == (12, 6)
        if has_job:
            resumed = crawl(settings={**RETRY, **job})
            assert sorted(stopped.pages + resumed.pages) == sorted(urls)
            assert scheduled(resumed) == (0, 6)
            assert resumed.stats["scheduler/dequeued/disk"] == 6
