"""Requests to temporarily closed sites wait in the scheduler until robots.txt is downloaded again."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import default_settings

from tests.crawls.test_closing import read_until, running
from tests.crawls.test_components import scrapy
from tests.helpers.running.commands import run, words
from tests.helpers.running.crawling import ADDON, BY_HAND, Crawl, crawl, uses_httpx, with_report
from tests.helpers.running.project import make_project
from tests.helpers.sites import Answer, ForwardProxy, Hit, Site, page

ROBOTS = "User-agent: *\nDisallow: /back/\n"
RETRY = {**ADDON, "NOROBOTS_RETRY_CLOSED": 2, "NOROBOTS_ERROR_TTL": 0.2, "NOROBOTS_RETRY_TIMES": 0}
# The back-off does not end during a test.
FOR_EVER = {**RETRY, "NOROBOTS_ERROR_TTL": 3600}


class Closed:
    """A robots.txt whose first few downloads fail."""

    def __init__(self, times: int, status: int = 503, headers: dict[str, str] | None = None) -> None:
        self._times = times
        self._failure = Answer(status=status, headers=headers or {})

    def __call__(self, hit: Hit) -> Answer:
        self._times -= 1
        return self._failure if self._times >= 0 else Answer(ROBOTS)


def waiting(done: Crawl) -> dict[str, int]:
    """Return the stats about requests that waited."""
    start = "norobots/retry/"
    return {name.removeprefix(start): n for name, n in done.stats.items() if name.startswith(start)}


def told_to_wait(done: Crawl) -> list[str]:
    """Return the paths of the requests that have waited, in order."""
    return re.findall(r"Waits for a closed site: <GET http://[^/]+(/\S+)>", done.log)


def test_no_request_is_lost_when_robots_txt_fails_for_a_moment() -> None:
    with Site(Closed(1)) as once, Site(Closed(2)) as twice, Site(ROBOTS) as healthy:
        urls = [f"{site.url}/{number}" for number in range(30) for site in (once, twice, healthy)]
        done = crawl(*urls, settings=RETRY)
        assert sorted(done.pages) == sorted(urls)
        assert done.drops == []
        assert [len(site.robots_hits()) for site in (once, twice, healthy)] == [2, 3, 1]
        # Some requests may have arrived only when the site was open again.
        assert 0 < waiting(done)["waited"] == waiting(done)["came_back"] <= 60


def test_the_log_says_now_and_then_what_waits(mode: str) -> None:
    with Site(Closed(1)) as site:
        settings = {**RETRY, "NOROBOTS_ERROR_TTL": 1.5, "LOGSTATS_INTERVAL": 0.3}
        done = crawl(f"{site.url}/1", f"{site.url}/2", settings=settings)
        assert len(done.pages) == 2
    assert done.log_lines("INFO: Requests that wait: 2; closed sites: 1 (next try in ", " s); ")
    assert "closed sites: 1" not in done.log.partition("INFO: Closing spider")[2]


def test_the_log_says_now_and_then_that_a_robots_txt_is_still_being_downloaded() -> None:
    is_said = threading.Event()
    settings = {**RETRY, "LOGSTATS_INTERVAL": 0.3, "CONCURRENT_REQUESTS": 2}
    line = "INFO: Requests that wait: 2; closed sites: 0; robots.txt files being downloaded: 1"
    with (
        Site(Answer(ROBOTS, before=is_said.wait)) as site,
        running(f"{site.url}/1", f"{site.url}/2", settings=settings) as process,
    ):
        read_until(line, process)
        is_said.set()
        assert len(json.loads(process.communicate(60)[0])["pages"]) == 2


def test_a_request_that_rules_forbid_after_the_wait_is_dropped() -> None:
    with Site(Closed(1)) as site:
        done = crawl(f"{site.url}/back/1", f"{site.url}/1", settings=RETRY)
        assert done.pages == [f"{site.url}/1"]
        assert [drop.type for drop in done.drops] == ["RobotsForbidden"]
        assert waiting(done) == {"waited": 2, "came_back": 2}


def test_a_request_without_an_errback_is_counted_when_it_comes_back(mode: str) -> None:
    with Site(Closed(1)) as closed, Site(ROBOTS) as healthy:
        healthy.answers["/"] = page(f"{closed.url}/back/1", f"{closed.url}/back/2")
        work: dict[str, Any] = {
            "spider": "following.WithoutErrback",
            "arguments": {"follow": True},
        }
        settings = {**RETRY, "NOROBOTS_ERROR_TTL": 1}
        done = crawl(f"{healthy.url}/", settings=settings, **work)
        assert waiting(done) == {"waited": 2, "came_back": 2}
        assert done.stats["robotstxt/forbidden"] == 2


def test_the_errback_is_called_when_the_request_is_given_up(mode: str) -> None:
    with Site(Closed(9)) as site:
        done = crawl(f"{site.url}/1", f"{site.url}/2", settings=RETRY)
    assert Counter(drop.type for drop in done.drops) == {"RobotsUnreachable": 2}
    assert all(drop.retry_after and drop.retry_after <= 0.8 for drop in done.drops)  # the third back-off
    assert site.targets() == ["/robots.txt"] * 3
    assert waiting(done) == {"waited": 2, "given_up": 2}
    assert done.stats["norobots/unreachable"] == done.stats["robotstxt/forbidden"] == 2


@pytest.mark.parametrize("has_expired", [False, True])
def test_failures_of_an_earlier_crawl_use_up_no_retries_and_make_none_later(
    has_expired: bool, tmp_path: Path
) -> None:
    settings = {**RETRY, "NOROBOTS_STORE": f"sqlite:///{tmp_path / 'robots.sqlite'}"}
    with Site(Closed(6)) as site:
        for _ in range(2):
            done = crawl(f"{site.url}/1", settings=settings)
            assert waiting(done) == {"waited": 1, "given_up": 1}
            assert 0 < (done.drops[0].retry_after or 0) < 2  # 6.4 s with the failures of the first crawl
            if has_expired:
                time.sleep(1)  # longer than the last back-off, 0.8 s
        assert crawl(f"{site.url}/1", settings=settings).pages == [f"{site.url}/1"]


def test_new_requests_do_not_wait_for_a_site_that_stays_closed() -> None:
    with Site(Closed(9)) as site:
        arguments = {"then": f"{site.url}/2"}
        done = crawl(f"{site.url}/1", settings=RETRY, spider="following.ThenAnyway", arguments=arguments)
    assert [drop.url for drop in done.drops] == [f"{site.url}/1", f"{site.url}/2"]
    assert waiting(done) == {"waited": 1, "given_up": 1}
    # The second request may have arrived after the third back-off.
    assert set(site.targets()) == {"/robots.txt"}


def test_a_small_memory_gives_closed_sites_no_more_retries() -> None:
    """Each of the two sites displaces the other from memory."""
    with Site(Closed(20)) as one, Site(Closed(20)) as other:
        done = crawl(f"{one.url}/", f"{other.url}/", settings={**RETRY, "NOROBOTS_MEMORY_MAX": 1})
        assert [len(site.robots_hits()) for site in (one, other)] == [3, 3]
    assert waiting(done) == {"waited": 2, "given_up": 2}


def test_no_retries_drop_a_request_at_once() -> None:
    with Site(Closed(1)) as site:
        done = crawl(f"{site.url}/1", settings={**RETRY, "NOROBOTS_RETRY_CLOSED": 0})
        assert [drop.type for drop in done.drops] == ["RobotsUnreachable"]
        assert site.targets() == ["/robots.txt"]
        assert waiting(done) == {}


@pytest.mark.parametrize("status", [401, 403])
def test_requests_to_a_site_that_refuses_access_are_not_retried(status: int) -> None:
    with Site(Closed(1, status)) as site:
        done = crawl(f"{site.url}/1", settings=RETRY)
        assert [drop.type for drop in done.drops] == ["RobotsUnreachable"]
        assert site.targets() == ["/robots.txt"]


def test_requests_come_back_after_an_incomplete_robots_txt(mode: str) -> None:
    hits: list[Hit] = []

    def robots(hit: Hit) -> Answer:
        hits.append(hit)
        return Answer(ROBOTS, headers={"Content-Length": "999"} if len(hits) == 1 else {})

    with Site(robots) as site:
        done = crawl(f"{site.url}/1", settings=RETRY)
        assert done.pages == [f"{site.url}/1"]


def test_filters_apply_to_the_redirects_of_a_request_that_waited(mode: str) -> None:
    with Site(Closed(1)) as closed, Site(ROBOTS) as healthy:
        closed.answers["/moved"] = Answer(status=302, headers={"Location": f"{healthy.url}/known"})
        urls = [f"{healthy.url}/known", f"{closed.url}/moved"]
        done = crawl(*urls, settings=RETRY)
        assert told_to_wait(done) == ["/moved"]
        assert done.pages == [f"{healthy.url}/known"]
        assert done.stats["dupefilter/filtered"] == 1


def test_a_request_that_is_redirected_comes_back_once(mode: str) -> None:
    with Site(Closed(1)) as site:
        site.answers["/moved"] = Answer(status=302, headers={"Location": "/1"})
        done = crawl(f"{site.url}/moved", settings=RETRY)
        assert done.pages == [f"{site.url}/1"]
        assert waiting(done) == {"waited": 1, "came_back": 1}


# Only failures in a row use up retries


class InTurn:
    """A robots.txt that gives these answers in turn, and then rules for ever."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)

    def __call__(self, hit: Hit) -> Answer:
        return self._answers.pop(0) if self._answers else Answer(ROBOTS)


CLOSED = Answer(status=503)
# Rules expire soon, so that robots.txt is downloaded again during the crawl.
SHORT_LIVED = {
    **RETRY,
    "NOROBOTS_ERROR_TTL": 0.05,
    "NOROBOTS_TTL": 0.3,
    "NOROBOTS_TTL_MIN": 0,
    "DOWNLOAD_DELAY": 0.1,
}


def go_on_until(downloads: int, site: Site) -> None:
    """Give the site pages that link to each other until its robots.txt has been downloaded so often."""

    def next_page(hit: Hit) -> Answer:
        return page(f"/{int(hit.target[1:]) + 3}") if len(site.robots_hits()) < downloads else page()

    site.answers.update({f"/{number}": next_page for number in range(300)})


def test_a_site_that_has_been_open_has_all_its_retries_again() -> None:
    with Site(InTurn(CLOSED, CLOSED, Answer(status=404), CLOSED, CLOSED)) as site:
        go_on_until(6, site)
        urls = [f"{site.url}/{number}" for number in range(3)]
        done = crawl(*urls, settings=SHORT_LIVED, arguments={"follow": True})
        assert done.drops == []
        assert len(site.robots_hits()) >= 6
        assert 0 < waiting(done)["waited"] == waiting(done)["came_back"]


def test_failures_of_a_stale_copy_use_up_no_retries() -> None:
    copy_ends = 3.0

    def until_copy_ends() -> None:
        time.sleep(max(0.0, site.robots_hits()[0].time + copy_ends + 0.5 - time.monotonic()))

    with Site() as site:
        late = Answer(status=503, before=until_copy_ends)
        site.answers["/robots.txt"] = InTurn(Answer(ROBOTS), CLOSED, CLOSED, CLOSED, late, CLOSED)
        go_on_until(7, site)
        urls = [f"{site.url}/{number}" for number in range(3)]
        settings = {**SHORT_LIVED, "NOROBOTS_STALE_TTL": copy_ends}
        done = crawl(*urls, settings=settings, arguments={"follow": True})
        assert done.drops == []
        assert len(site.robots_hits()) >= 7
        assert done.stats["norobots/stale"] == 3
        assert 0 < waiting(done)["waited"] == waiting(done)["came_back"]


def test_a_request_is_given_up_if_its_site_refuses_access_after_the_wait() -> None:
    with Site(InTurn(CLOSED, Answer(status=403))) as site:
        done = crawl(f"{site.url}/1", settings=RETRY)
        assert [drop.type for drop in done.drops] == ["RobotsUnreachable"]
        assert waiting(done) == {"waited": 1, "given_up": 1}


# Proxies


@pytest.mark.parametrize("settings", [RETRY, FOR_EVER], ids=["short back-off", "long back-off"])
def test_a_dead_proxy_closes_the_site_to_no_request_with_another_proxy(
    mode: str, settings: dict[str, Any]
) -> None:
    if uses_httpx(mode):
        pytest.skip("requests have no proxies of their own")
    with Site(ROBOTS) as site, ForwardProxy() as proxy:
        urls = [f"{site.url}/{number}" for number in range(5)]
        proxies = ["http://127.0.0.1:1", *[proxy.url] * 4]
        requests = [
            {"url": url, "meta": {"proxy": one}, "priority": -number}
            for number, (url, one) in enumerate(zip(urls, proxies, strict=True))
        ]
        done = crawl(*requests, settings={**settings, "RETRY_TIMES": 0})
        assert sorted(done.pages) == urls[1:]
        assert {drop.url for drop in done.drops} == {urls[0]}
        assert set(told_to_wait(done)) <= {"/0"}


def test_a_request_whose_proxy_is_dead_is_given_up() -> None:
    with Site(ROBOTS) as site:
        dead = {"url": f"{site.url}/1", "meta": {"proxy": "http://127.0.0.1:1"}}
        done = crawl(dead, settings={**RETRY, "RETRY_TIMES": 0})
        assert [drop.type for drop in done.drops] == ["RobotsUnreachable"]
        assert waiting(done) == {"waited": 1, "given_up": 1}
        assert done.stats["robotstxt/request_count"] == 3


class FailsOnce(ForwardProxy):
    """A proxy that refuses its first request."""

    def answer(self, hit: Hit) -> Answer:
        return Answer(status=407) if len(self.hits) == 1 else super().answer(hit)


def test_each_proxy_has_its_own_retries() -> None:
    """If the first one is dead, the other is tried all the same when their wait is over."""
    with Site(ROBOTS) as site, FailsOnce() as proxy:
        requests = [
            {"url": f"{site.url}/{number}", "meta": {"proxy": one}, "priority": -number}
            for number, one in enumerate(["http://127.0.0.1:1", proxy.url])
        ]
        settings = {**RETRY, "NOROBOTS_ERROR_TTL": 1, "NOROBOTS_RETRY_CLOSED": 1, "RETRY_TIMES": 0}
        done = crawl(*requests, settings=settings)
        assert done.pages == [f"{site.url}/1"]
        assert waiting(done)["waited"] == 2


def test_a_site_that_fails_uses_up_the_retries_of_all_proxies() -> None:
    """A request without a proxy that comes later is dropped at once."""
    with Site(Closed(9)) as site, ForwardProxy() as proxy:
        first = {"url": f"{site.url}/1", "meta": {"proxy": proxy.url}}
        settings = {**RETRY, "NOROBOTS_ERROR_TTL": 1}
        done = crawl(
            first, settings=settings, spider="following.ThenAnyway", arguments={"then": f"{site.url}/late"}
        )
        assert Counter(drop.type for drop in done.drops) == {"RobotsUnreachable": 2}
        assert len(site.robots_hits()) == 3
        assert waiting(done) == {"waited": 1, "given_up": 1}


def test_a_site_that_is_closed_to_two_proxies_counts_once() -> None:
    with Site(ROBOTS) as site:
        proxies = ["http://127.0.0.1:1", "http://127.0.0.1:2"]
        requests = [{"url": f"{site.url}/{proxy[-1]}", "meta": {"proxy": proxy}} for proxy in proxies]
        done = crawl(*requests, settings={**RETRY, "RETRY_TIMES": 0})
        assert len(done.drops) == 2
    assert done.stats["robotstxt/request_count"] > 2
    assert done.stats["norobots/origins/closed"] == 1


@pytest.mark.parametrize(
    ("seconds", "back_off"), [(0, 3), (2, 0.2)], ids=["while it waits", "after it was dropped"]
)
def test_a_dead_proxy_uses_up_no_retries_of_a_request_without_a_proxy(seconds: int, back_off: float) -> None:
    settings = {**RETRY, "NOROBOTS_RETRY_CLOSED": 1, "RETRY_TIMES": 0, "CONCURRENT_REQUESTS": 1}
    settings["NOROBOTS_ERROR_TTL"] = back_off
    with Site(Closed(1)) as site, Site(ROBOTS) as start:
        direct = f"{site.url}/direct"
        start.answers["/"] = replace(page(direct), before=lambda: time.sleep(seconds))
        dead = {"url": f"{site.url}/proxy", "meta": {"proxy": "http://127.0.0.1:1"}, "priority": 1}
        done = crawl(dead, f"{start.url}/", settings=settings, arguments={"follow": True})
        assert direct in done.pages
        assert [drop.url for drop in done.drops] == [dead["url"]]
        assert len(site.robots_hits()) == 2


def test_a_request_without_a_proxy_takes_no_place_while_it_waits_and_a_proxy_has_failed() -> None:
    asked, meanwhile = threading.Event(), list[bool]()
    robots = Answer(ROBOTS, before=lambda: meanwhile.append(asked.wait(9)))
    with Site(robots) as site, Site(ROBOTS, {"/page": Answer(before=asked.set)}) as start:
        # The proxy fails meanwhile; no server of ours can tell when.
        start.answers["/"] = replace(page(f"{start.url}/page", site.url), before=lambda: time.sleep(1))
        dead = {"url": f"{site.url}/proxy", "meta": {"proxy": "http://127.0.0.1:1"}, "priority": 1}
        settings = {**FOR_EVER, "NOROBOTS_RETRY_CLOSED": 0, "RETRY_TIMES": 0, "CONCURRENT_REQUESTS": 1}
        crawl(dead, f"{start.url}/", settings=settings, arguments={"follow": True})
    assert meanwhile == [True]


def test_a_dead_proxy_opens_the_site_to_no_request_with_another_proxy() -> None:
    with Site("User-agent: *\nDisallow: /back/\n") as site, ForwardProxy() as proxy:
        requests: list[dict[str, Any]] = [
            {"url": f"{site.url}/0", "meta": {"proxy": "http://127.0.0.1:1"}, "priority": 1},
            {"url": f"{site.url}/back/", "meta": {"proxy": proxy.url}},
        ]
        settings = {**FOR_EVER, "RETRY_TIMES": 0, "NOROBOTS_STATUS_POLICY": "allow", "CONCURRENT_REQUESTS": 1}
        done = crawl(*requests, settings=settings)
        assert site.pages() == []
        assert {drop.url: drop.type for drop in done.drops}[f"{site.url}/back/"] == "RobotsForbidden"


# Order


LINKS = [f"/{number}" for number in range(9)]
QUEUES = {
    "default": {},
    "first in, first out": {
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
        "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
    },
}


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("has_job", [False, True], ids=["in memory", "with JOBDIR"])
def test_requests_come_back_in_order(mode: str, queue: str, has_job: bool, tmp_path: Path) -> None:
    with Site(Closed(1)) as closed, Site() as healthy:
        healthy.answers["/"] = page(*(closed.url + link for link in LINKS))
        settings = {**RETRY, **QUEUES[queue], "NOROBOTS_ERROR_TTL": 1, "CONCURRENT_REQUESTS": 1}
        job = {"JOBDIR": str(tmp_path / "job")} if has_job else {}
        done = crawl(f"{healthy.url}/", settings={**settings, **job}, arguments={"follow": True})
        order = told_to_wait(done)
        # On a busy machine, the last ones may have arrived only when the site was open again.
        assert len(order) > 1
        assert closed.pages() == LINKS
        assert [target for target in closed.targets() if target in order] == order


@pytest.mark.parametrize("has_job", [False, True], ids=["in memory", "with JOBDIR"])
def test_start_requests_come_back_with_their_priority(mode: str, has_job: bool, tmp_path: Path) -> None:
    priorities = {f"/{number}": priority for number, priority in enumerate([0, 5, 0, -5, 5, 0])}
    with Site(Closed(1)) as site:
        requests = [
            {"url": site.url + target, "priority": priority, "meta": {}}
            for target, priority in priorities.items()
        ]
        job = {"JOBDIR": str(tmp_path / "job")} if has_job else {}
        settings = {**RETRY, "NOROBOTS_ERROR_TTL": 2, "CONCURRENT_REQUESTS": 1, **job}
        done = crawl(*requests, settings=settings)
        order = told_to_wait(done)
        assert sorted(order) == list(priorities)
        targets = site.targets()[2:]
        assert [priorities[target] for target in targets] == [5, 5, 0, 0, 0, -5]
        if hasattr(default_settings, "SCHEDULER_START_MEMORY_QUEUE"):  # else the last may come first
            assert targets == sorted(order, key=lambda target: -priorities[target])


# Requests that wait do not delay others


@pytest.mark.parametrize("places", [1, 4])
def test_requests_to_a_closed_site_take_no_place(places: int) -> None:
    count = 40 * places
    with Site(Closed(9)) as closed, Site(ROBOTS) as healthy:
        urls = [f"{site.url}/{number}" for number in range(count) for site in (closed, healthy)]
        settings = {**FOR_EVER, "CONCURRENT_REQUESTS": places}
        # If each request kept its place for a second, the crawl would take longer than that.
        done = crawl(*urls, settings=settings, spider="scheduling.StopsWhenIdle", timeout=30)
        assert sorted(done.pages) == sorted(f"{healthy.url}/{number}" for number in range(count))
        assert done.notes["active"] == 0
        assert done.stats["finish_reason"] == "shutdown"
        assert waiting(done) == {"waited": count, "left": count}
        assert done.drops == []


def test_no_more_requests_wait_than_allowed() -> None:
    with Site(Closed(9)) as one, Site(Closed(9)) as other:
        urls = [f"{site.url}/{number}" for number in range(5) for site in (one, other)]
        settings = {**RETRY, "NOROBOTS_ERROR_TTL": 1, "NOROBOTS_RETRY_CLOSED_MAX": 3}
        done = crawl(*urls, settings=settings)
        assert len(done.drops) == 10
        assert waiting(done) == {"waited": 3, "given_up": 3, "no_room": 7}
        assert len(done.log_lines("WARNING", "NOROBOTS_RETRY_CLOSED_MAX")) == 1


def test_no_request_waits_in_a_dry_run() -> None:
    with Site(Closed(9)) as site:
        done = crawl(f"{site.url}/1", settings={**FOR_EVER, "NOROBOTS_DRY_RUN": True})
        assert done.pages == [f"{site.url}/1"]
        assert waiting(done) == {}


def test_without_the_addons_scheduler_requests_to_closed_sites_are_dropped(mode: str) -> None:
    with Site(Closed(9)) as site:
        done = crawl(f"{site.url}/1", settings={**FOR_EVER, "ADDONS": {}, **BY_HAND})
        assert [drop.type for drop in done.drops] == ["RobotsUnreachable"]
        assert done.drops[0].retry_after
        assert waiting(done) == {}


def test_requests_wait_with_a_downloader_of_the_user(mode: str) -> None:
    with Site(Closed(1)) as site:
        settings = {**RETRY, "DOWNLOADER": "scrapy.core.downloader.Downloader"}
        done = crawl(f"{site.url}/1", settings=settings)
        assert done.pages == [f"{site.url}/1"]
        assert waiting(done) == {"waited": 1, "came_back": 1}


# Downloads that other code awaits do not wait for a closed site


@pytest.mark.parametrize("place", ["callback", "start"])
def test_a_download_that_a_spider_awaits_fails_at_once(mode: str, place: str) -> None:
    with Site(Closed(9)) as closed, Site(ROBOTS) as healthy:
        done = crawl(
            f"{healthy.url}/",
            settings=FOR_EVER,
            spider="asking.Downloading",
            arguments={"then": [f"{closed.url}/1"], "place": place},
        )
        [[error, retry_after]] = done.notes["told"]
        assert error == "RobotsUnreachable"
        assert 0 < retry_after <= 3600
        assert waiting(done) == {}
        assert done.stats["finish_reason"] == "finished"


def test_a_download_that_a_spider_cancels_does_not_keep_the_spider_open(mode: str) -> None:
    if mode == "select":
        pytest.skip("asyncio.wait_for needs asyncio")
    with Site(Closed(9)) as closed, Site(ROBOTS) as healthy:
        done = crawl(
            f"{healthy.url}/",
            settings=FOR_EVER,
            spider="asking.Downloading",
            arguments={"then": [f"{closed.url}/1"], "seconds": 0.5},
        )
        assert [error for error, _ in done.notes["told"]] == ["RobotsUnreachable"]
        assert done.stats["finish_reason"] == "finished"


def test_files_of_a_closed_site_fail_at_once_and_stop_no_pages(mode: str, tmp_path: Path) -> None:
    with Site(Closed(9, headers={"Retry-After": "3000"})) as closed, Site(ROBOTS) as healthy:
        urls = [f"{healthy.url}/{number}" for number in range(20)]
        files = [f"{closed.url}/{number}" for number in range(3)]
        settings = {
            **RETRY,
            "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
            "FILES_STORE": str(tmp_path),
        }
        done = crawl(*urls, settings=settings, spider="items.Items", arguments={"item": {"file_urls": files}})
        assert sorted(done.pages) == sorted(urls)
        assert done.notes["item"] == {"file_urls": files, "files": []}
        assert done.stats["item_scraped_count"] == 20
        assert done.stats["finish_reason"] == "finished"
        assert waiting(done) == {}
        assert closed.targets() == ["/robots.txt"]


# Code of users


def test_a_subclass_that_ignores_the_result_sends_no_request_to_a_closed_site(mode: str) -> None:
    """The rules expire in a middleware before it. The first request goes by what was loaded for it."""
    middlewares = {"middlewares.DropsRepeated": 50, "derived.IgnoresTheResult": 100}
    settings = {
        **FOR_EVER,
        "NOROBOTS_TTL": 1,
        "NOROBOTS_TTL_MIN": 0,
        "NOROBOTS_STALE_TTL": 0,
        "PAUSE": 2,
        "DOWNLOADER_MIDDLEWARES": {f"tests.helpers.components.{name}": n for name, n in middlewares.items()},
    }
    with Site(InTurn(Answer(ROBOTS), CLOSED)) as site:
        urls = [{"url": f"{site.url}/{number}", "priority": -number} for number in range(2)]
        done = crawl(*urls, settings=settings)
        assert site.pages() == ["/0"]
        [drop] = done.drops
        assert (drop.url, drop.type) == (f"{site.url}/1", "IgnoreRequest")
        assert drop.text == "the request waits until robots.txt is downloaded again"


@pytest.mark.parametrize("expires", [False, True])
def test_a_middleware_that_drops_repeated_requests_breaks_no_counts(mode: str, expires: bool) -> None:
    """If the rules expire inside that middleware, the request passes it twice.

    The first request of each load goes by what was loaded for it, also if that has expired.
    """
    before = [Answer(ROBOTS, headers={"Cache-Control": "no-cache"})] if expires else []
    with Site(InTurn(*before, CLOSED)) as site:
        settings = {
            **RETRY,
            "NOROBOTS_TTL_MIN": 0.3,
            "NOROBOTS_STALE_TTL": 0,
            "PAUSE": 0.6 if expires else 0,
            "DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.middlewares.DropsRepeated": 50},
        }
        first = [{"url": f"{site.url}/0", "priority": 1}] * expires
        done = crawl(*first, f"{site.url}/1", settings=settings)
        assert waiting(done) == {"waited": 1, "came_back": 1}
        assert [drop.type for drop in done.drops] == ["IgnoreRequest"] * expires
        assert done.pages == [f"{site.url}/0" if expires else f"{site.url}/1"]


def test_a_request_that_is_exempt_when_it_is_scheduled_again_is_sent(mode: str) -> None:
    """The rules expire while it is in a middleware; then its site is closed, so it is scheduled again."""
    with Site(InTurn(Answer(ROBOTS, headers={"Cache-Control": "no-cache"}), CLOSED)) as site:
        settings = {
            **RETRY,
            "NOROBOTS_TTL_MIN": 0.3,
            "NOROBOTS_STALE_TTL": 0,
            "PAUSE": 0.6,
            "DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.middlewares.SendsLate": 50},
        }
        first = {"url": f"{site.url}/0", "priority": 1}
        exempt = f"{site.url}/back/"
        seen = crawl(first, exempt, settings=settings, spider="scheduling.ExemptsRepeated")
    assert waiting(seen) == {"waited": 1, "came_back": 1}
    assert seen.pages == [f"{site.url}/0", exempt]


def test_the_same_request_object_can_wait_several_times(mode: str) -> None:
    with Site(Closed(1)) as site:
        done = crawl(f"{site.url}/1", settings=RETRY, spider="following.RepeatsTheRequest")
        assert done.pages == [f"{site.url}/1"] * 3
        assert "KeyError" not in done.log
        assert "Error while removing request from slot" not in done.log
        assert waiting(done) == {"waited": 3, "came_back": 3}


def test_an_idle_handler_can_close_the_spider_while_requests_wait(mode: str) -> None:
    with Site(Closed(9)) as site:
        done = crawl(f"{site.url}/1", settings=FOR_EVER, spider="scheduling.FeedsWhenIdle")
        assert done.stats["finish_reason"] == "all fed"
        assert waiting(done) == {"waited": 1, "left": 1}
        assert done.drops == []


def test_an_idle_handler_can_keep_the_spider_open_while_requests_wait() -> None:
    """As in Scrapy, DontCloseSpider of one handler counts for more than CloseSpider of another."""
    with Site(Closed(1)) as site:
        done = crawl(
            f"{site.url}/1",
            settings={**RETRY, "NOROBOTS_ERROR_TTL": 2},  # the engine looks every 0.2 s if it is idle
            spider="scheduling.DisagreesWhenIdle",
        )
        assert done.notes == {"kept open": True}
        assert done.pages == [f"{site.url}/1"]
        assert waiting(done) == {"waited": 1, "came_back": 1}


def test_a_request_that_an_idle_handler_has_added_keeps_the_spider_open(mode: str) -> None:
    """As in Scrapy, CloseSpider of another handler then has no effect."""
    with Site(Closed(9)) as closed, Site(ROBOTS) as healthy:
        done = crawl(
            f"{closed.url}/1",
            settings=FOR_EVER,
            spider="scheduling.DisagreesWhenIdle",
            arguments={"then": f"{healthy.url}/1"},
        )
        assert done.pages == [f"{healthy.url}/1"]
        assert done.stats["finish_reason"] == "idle"


def test_an_idle_handler_that_always_adds_a_request_does_so_now_and_then_while_others_wait(mode: str) -> None:
    with Site(Closed(9)) as site:
        done = crawl(
            f"{site.url}/1",
            settings={**FOR_EVER, "CLOSESPIDER_TIMEOUT": 2},
            spider="scheduling.FeedsWhenIdle",
            arguments={"then": [f"{site.url}/{number}" for number in range(2, 1000)]},
        )
        assert done.stats["finish_reason"] == "closespider_timeout"
        assert done.stats.get("norobots/retry/waited", 0) < 100


# Log and reports


def test_the_log_says_until_when_requests_wait() -> None:
    with Site(Closed(2)) as site:
        urls = [f"{site.url}/{number}" for number in range(5)]
        done = crawl(*urls, settings={**RETRY, "NOROBOTS_ERROR_TTL": 1})
        first, second = done.log_lines("INFO: ", "wait until")
        until = rf"requests to {site.url} wait until \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d, when"
        for line in (first, second):
            assert re.search(rf"INFO: {site.url}/robots.txt answered 503: {until}", line)
        assert not done.log_lines("no longer wait")
        assert done.log_lines("requests that waited for closed sites: 5; came back: 5, given up: 0")


def test_the_log_says_that_requests_are_given_up() -> None:
    with Site(Closed(9)) as site:
        done = crawl(f"{site.url}/1", f"{site.url}/2", settings=RETRY)
    assert len(done.log_lines("INFO: ", "wait until")) == 2
    [line] = done.log_lines("no longer wait")
    assert line.endswith(
        f"INFO: {site.url}/robots.txt answered 503: requests to {site.url} no longer wait "
        "(NOROBOTS_RETRY_CLOSED)"
    )


def test_a_request_that_is_exempt_after_the_wait_is_not_given_up() -> None:
    settings = {
        **RETRY,
        "DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.middlewares.ExemptsTooLate": 50},
    }
    with Site(Closed(9)) as site:
        done = crawl(f"{site.url}/1", f"{site.url}/2", settings=settings)
    assert sorted(done.pages) == [f"{site.url}/1", f"{site.url}/2"]
    assert waiting(done) == {"waited": 2, "came_back": 2}
    assert done.stats["norobots/overridden"] == 2
    assert not done.log_lines("INFO", "are dropped")
    assert "given_up" not in done.log


def test_the_reports_count_requests_that_waited(tmp_path: Path) -> None:
    files = [tmp_path / "robots.json", tmp_path / "robots.html"]
    with Site(Closed(1)) as once, Site(Closed(9)) as dead:
        crawl(f"{once.url}/1", f"{dead.url}/1", settings=with_report(*files, **RETRY))
    report = json.loads(files[0].read_text())
    requests = report["requests"]
    assert [row["requests"] for row in report["rows"]] == [1, 1]
    counts = {"waited": 2, "came_back": 1, "given_up": 1, "left": 0}
    assert counts.items() <= requests.items()
    assert "Requests that waited for closed sites: 2; came back: 1, given up: 1" in files[1].read_text()


# Retry-After


def test_retry_after_extends_the_time_to_the_next_try(tmp_path: Path) -> None:
    store = {"NOROBOTS_STORE": f"sqlite:///{tmp_path / 'robots.sqlite'}", "NOROBOTS_RETRY_TIMES": 3}
    with Site(Closed(9, 429, {"Retry-After": "900"})) as site:
        for _ in range(2):  # the second reads the store, as another process would
            done = crawl(f"{site.url}/1", settings={**RETRY, **store}, spider="scheduling.StopsWhenIdle")
            [line] = done.log_lines("WARNING:", "are not sent (NOROBOTS_STATUS_POLICY denies '429')")
            seconds = float(re.findall(r"downloaded again after ([\d.]+) s", line)[0])
            assert 600 < seconds <= 900
        assert site.targets() == ["/robots.txt"]  # and it was not retried at once either


COMMANDS = {
    "fetch": ["fetch"],
    "fetch with a spider": ["fetch", "--spider", "checked"],
    "parse": ["parse", "--spider", "checked"],
    "shell": ["shell", "-c", "'done'"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_that_fetch_a_page_do_not_wait(command: str, tmp_path: Path) -> None:
    with Site(Closed(9)) as site:
        folder = make_project(tmp_path, site.url)
        options = [f"--set={name}={value}" for name, value in FOR_EVER.items() if name != "ADDONS"]
        done = scrapy(*COMMANDS[command], f"{site.url}/1", *options, folder=folder)
    assert done.returncode == 0, done.stderr
    assert "requests to" in done.stderr
    assert "are dropped (" in done.stderr
    assert "Waits for a closed site" not in done.stderr
    assert site.targets() == ["/robots.txt"]


def test_robots_check_does_not_wait(project: Path) -> None:
    with Site(Closed(9)) as site:
        done = run(project, "robots-check", f"{site.url}/1")
        assert done.returncode == 2, done.stderr
        assert words(done) == ["unknown"]
        assert set(site.targets()) == {"/robots.txt"}
    assert not (project / "job").exists()
