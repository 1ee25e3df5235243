"""Requests to sites that are closed for a moment are set aside and retried."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from scrapy.core.engine import ExecutionEngine
from scrapy.settings import default_settings

from tests.commands import run, words
from tests.components import make_project
from tests.crawling import ADDON, Crawl, crawl, run_crawl, with_report
from tests.crawls.test_closing import running
from tests.crawls.test_components import scrapy
from tests.processes import Piped
from tests.redisserver import RedisServer
from tests.sites import Answer, Hit, Site, page

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


def set_aside(done: Crawl) -> list[str]:
    """Return the paths of the requests that were set aside, in order."""
    return re.findall(r"Set aside: <GET http://[^/]+(/\S+)>", done.log)


def test_no_request_is_lost_when_robots_txt_fails_for_a_moment(mode: str) -> None:
    with Site(Closed(1)) as once, Site(Closed(2)) as twice, Site(ROBOTS) as healthy:
        urls = [f"{site.url}/{number}" for number in range(30) for site in (once, twice, healthy)]
        done = crawl(*urls, settings=RETRY, mode=mode)
        assert sorted(done.pages) == sorted(urls)
        assert done.drops == []
        assert [len(site.robots_hits()) for site in (once, twice, healthy)] == [2, 3, 1]
        # Some requests may have arrived only when the site was open again.
        assert 0 < waiting(done)["waited"] == waiting(done)["came_back"] <= 60


def test_a_request_that_rules_forbid_after_the_wait_is_dropped(mode: str) -> None:
    with Site(Closed(1)) as site:
        done = crawl(f"{site.url}/back/1", f"{site.url}/1", settings=RETRY, mode=mode)
        assert done.pages == [f"{site.url}/1"]
        assert [drop.type for drop in done.drops] == ["RobotsForbidden"]
        assert waiting(done) == {"waited": 2, "came_back": 2}


def test_a_request_without_an_errback_is_counted_when_it_comes_back(mode: str) -> None:
    with Site(Closed(1)) as closed, Site(ROBOTS) as healthy:
        healthy.answers["/"] = page(f"{closed.url}/back/1", f"{closed.url}/back/2")
        work: dict[str, Any] = {"spider": "tests.spiders.WithoutErrback", "arguments": {"follow": True}}
        settings = {**RETRY, "NOROBOTS_ERROR_TTL": 1}
        done = crawl(f"{healthy.url}/", settings=settings, mode=mode, **work)
        assert waiting(done) == {"waited": 2, "came_back": 2}
        assert done.stats["robotstxt/forbidden"] == 2


def test_the_errback_is_called_when_the_request_is_given_up(mode: str) -> None:
    with Site(Closed(9)) as site:
        done = crawl(f"{site.url}/1", f"{site.url}/2", settings=RETRY, mode=mode)
    assert Counter(drop.type for drop in done.drops) == {"RobotsUnreachable": 2}
    assert all(drop.retry_after and drop.retry_after <= 0.8 for drop in done.drops)  # the third back-off
    assert site.targets() == ["/robots.txt"] * 3
    assert waiting(done) == {"waited": 2, "given_up": 2}
    assert done.stats["norobots/unreachable"] == done.stats["robotstxt/forbidden"] == 2


@pytest.mark.parametrize("has_expired", [False, True])
def test_failures_of_an_earlier_crawl_in_a_store_use_up_no_retries(has_expired: bool, tmp_path: Path) -> None:
    settings = {**RETRY, "NOROBOTS_STORE": f"sqlite:///{tmp_path / 'robots.sqlite'}"}
    with Site(Closed(4)) as site:
        first = crawl(f"{site.url}/1", settings=settings)
        assert waiting(first) == {"waited": 1, "given_up": 1}
        if has_expired:
            time.sleep(1)  # longer than the last back-off, 0.8 s
        second = crawl(f"{site.url}/1", settings=settings)
        assert second.pages == [f"{site.url}/1"]


def test_new_requests_do_not_wait_for_a_site_that_stays_closed(mode: str) -> None:
    with Site(Closed(9)) as site:
        arguments = {"then": f"{site.url}/2"}
        done = crawl(
            f"{site.url}/1", settings=RETRY, mode=mode, spider="tests.spiders.ThenAnyway", arguments=arguments
        )
    assert [drop.url for drop in done.drops] == [f"{site.url}/1", f"{site.url}/2"]
    assert waiting(done) == {"waited": 1, "given_up": 1}
    # The second request may have arrived after the third back-off.
    assert set(site.targets()) == {"/robots.txt"}


def test_no_retries_drop_a_request_at_once(mode: str) -> None:
    with Site(Closed(1)) as site:
        done = crawl(f"{site.url}/1", settings={**RETRY, "NOROBOTS_RETRY_CLOSED": 0}, mode=mode)
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
        done = crawl(f"{site.url}/1", settings=RETRY, mode=mode)
        assert done.pages == [f"{site.url}/1"]


def test_a_host_whose_name_does_not_resolve_is_retried_once(mode: str) -> None:
    if mode == "no reactor":
        pytest.skip("Scrapy has no setting that replaces the resolver there")
    is_renamed = hasattr(default_settings, "TWISTED_DNS_RESOLVER")
    resolver = {"TWISTED_DNS_RESOLVER" if is_renamed else "DNS_RESOLVER": "tests.spiders.NoNames"}
    done = crawl("http://town.example/", settings={**RETRY, **resolver}, mode=mode)
    assert [drop.type for drop in done.drops] == ["RobotsUnreachable"]
    assert done.stats["robotstxt/request_count"] == 2
    assert waiting(done) == {"waited": 1, "given_up": 1}


def test_filters_apply_to_the_redirects_of_a_request_that_waited(mode: str) -> None:
    with Site(Closed(1)) as closed, Site(ROBOTS) as healthy:
        closed.answers["/moved"] = Answer(status=302, headers={"Location": f"{healthy.url}/known"})
        urls = [f"{healthy.url}/known", f"{closed.url}/moved"]
        done = crawl(*urls, settings=RETRY, mode=mode)
        assert set_aside(done) == ["/moved"]
        assert done.pages == [f"{healthy.url}/known"]
        assert done.stats["dupefilter/filtered"] == 1


def test_a_request_that_is_redirected_comes_back_once(mode: str) -> None:
    with Site(Closed(1)) as site:
        site.answers["/moved"] = Answer(status=302, headers={"Location": "/1"})
        done = crawl(f"{site.url}/moved", settings=RETRY, mode=mode)
        assert done.pages == [f"{site.url}/1"]
        assert waiting(done) == {"waited": 1, "came_back": 1}


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
        done = crawl(f"{healthy.url}/", settings={**settings, **job}, mode=mode, arguments={"follow": True})
        order = set_aside(done)
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
        done = crawl(*requests, settings=settings, mode=mode)
        order = set_aside(done)
        assert sorted(order) == list(priorities)
        targets = site.targets()[2:]
        assert [priorities[target] for target in targets] == [5, 5, 0, 0, 0, -5]
        if hasattr(default_settings, "SCHEDULER_START_MEMORY_QUEUE"):  # else the last may come first
            assert targets == sorted(order, key=lambda target: -priorities[target])


# Requests that wait do not delay others


def test_waiting_requests_take_no_place(mode: str) -> None:
    with Site(Closed(9)) as closed, Site(ROBOTS) as healthy:
        # If the engine did not notice that one has left, it would take the next one only 5 seconds later.
        urls = [f"{site.url}/{number}" for number in range(10, 50) for site in (closed, healthy)]
        done = crawl(
            *urls,
            settings={**FOR_EVER, "CONCURRENT_REQUESTS": 1},
            spider="tests.spiders.StopsWhenIdle",
            mode=mode,
        )
        assert sorted(done.pages) == [f"{healthy.url}/{number}" for number in range(10, 50)]
        assert done.notes == {"active": 0, "in slots": 0}
        assert done.stats["finish_reason"] == "shutdown"
        assert waiting(done) == {"waited": 40, "left": 40}
        assert done.drops == []


def test_no_more_requests_wait_than_allowed(mode: str) -> None:
    with Site(Closed(9)) as site:
        urls = [f"{site.url}/{number}" for number in range(5)]
        settings = {**RETRY, "NOROBOTS_RETRY_CLOSED_MAX": 2}
        done = crawl(*urls, settings=settings, mode=mode)
        assert len(done.drops) == 5
        assert waiting(done) == {"waited": 2, "given_up": 2, "no_room": 3}
        assert len(done.log_lines("WARNING", "NOROBOTS_RETRY_CLOSED_MAX")) == 1


def test_nothing_is_set_aside_in_a_dry_run(mode: str) -> None:
    with Site(Closed(9)) as site:
        done = crawl(f"{site.url}/1", settings={**FOR_EVER, "NOROBOTS_DRY_RUN": True}, mode=mode)
        assert done.pages == [f"{site.url}/1"]
        assert waiting(done) == {}


def test_custom_settings_of_a_spider_apply(mode: str) -> None:
    with Site(Closed(1)) as site:
        settings = {key: value for key, value in RETRY.items() if key == "ADDONS"}
        done = crawl(f"{site.url}/1", settings=settings, spider="tests.spiders.Patient", mode=mode)
        assert done.pages == [f"{site.url}/1"]


def test_requests_are_dropped_if_they_would_take_places() -> None:
    with Site(Closed(1)) as site:
        settings = {**FOR_EVER, "DOWNLOADER": "scrapy.core.downloader.Downloader"}
        done = crawl(f"{site.url}/1", settings=settings)
        assert [drop.type for drop in done.drops] == ["RobotsUnreachable"]


# Requests that other code waits for


def test_a_spider_that_downloads_a_page_itself_waits_for_it(mode: str) -> None:
    with Site(Closed(1)) as closed, Site(ROBOTS) as healthy:
        arguments = {"then": [f"{closed.url}/1", f"{closed.url}/back/"]}
        done = crawl(
            f"{healthy.url}/",
            settings=RETRY,
            spider="tests.spiders.DownloadsItself",
            arguments=arguments,
            mode=mode,
        )
        assert done.notes["told"] == [200, "RobotsForbidden"]


def test_a_download_by_a_spider_fails_when_the_crawl_closes(mode: str) -> None:
    with Site(Closed(9)) as closed, Site(ROBOTS) as healthy:
        done = crawl(
            f"{healthy.url}/",
            settings={**FOR_EVER, "CLOSESPIDER_TIMEOUT": 1},
            spider="tests.spiders.DownloadsItself",
            arguments={"then": [f"{closed.url}/1"]},
            mode=mode,
        )
        assert done.notes["told"] == ["RobotsUnreachable"]
        assert closed.targets() == ["/robots.txt"]


def test_a_media_pipeline_waits_for_its_files(mode: str, tmp_path: Path) -> None:
    with Site(Closed(1)) as closed, Site() as healthy:
        files = [f"{closed.url}/{number}" for number in range(3)]
        healthy.answers["/"] = page(*files)
        settings = {
            **RETRY,
            "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
            "FILES_STORE": str(tmp_path),
        }
        done = crawl(f"{healthy.url}/", settings=settings, spider="tests.spiders.WithFiles", mode=mode)
        assert done.notes["files"] == files


def test_a_download_by_a_middleware_does_not_wait_in_the_place_of_another_request(mode: str) -> None:
    with Site(Closed(9)) as closed, Site(ROBOTS) as healthy:
        done = crawl(
            f"{healthy.url}/1",
            settings={
                **FOR_EVER,
                "OTHER": closed.url,
                "DOWNLOADER_MIDDLEWARES": {"tests.spiders.DownloadsOnBehalf": 500},
            },
            mode=mode,
        )
        assert [drop.type for drop in done.drops] == ["RobotsUnreachable"]
        assert waiting(done) == {}


# Code of users


def test_a_subclass_that_ignores_the_result_sends_no_forbidden_request(mode: str) -> None:
    with Site(Closed(1)) as site:
        subclass = {"DOWNLOADER_MIDDLEWARES": {"tests.spiders.IgnoresTheResult": 100}}
        done = crawl(f"{site.url}/back/1", f"{site.url}/1", settings={**RETRY, **subclass}, mode=mode)
        assert site.pages() == ["/1"]
        assert [drop.type for drop in done.drops] == ["RobotsForbidden"]
        assert waiting(done) == {"waited": 2, "came_back": 2}


# The end of a crawl


def test_a_timeout_of_the_spider_ends_the_wait(mode: str) -> None:
    with Site(Closed(9)) as site:
        done = crawl(f"{site.url}/1", settings={**FOR_EVER, "CLOSESPIDER_TIMEOUT": 1}, mode=mode)
        assert done.stats["finish_reason"] == "closespider_timeout"
        assert waiting(done) == {"waited": 1, "left": 1}
        assert done.drops == []


def test_an_item_limit_ends_the_wait(mode: str) -> None:
    with Site(Closed(9)) as closed, Site(ROBOTS) as healthy:
        done = crawl(
            f"{closed.url}/1",
            f"{healthy.url}/1",
            settings={**FOR_EVER, "CLOSESPIDER_ITEMCOUNT": 1},
            spider="tests.spiders.Items",
            mode=mode,
        )
        assert done.stats["finish_reason"] == "closespider_itemcount"


def read_until(process: Piped, text: str, times: int = 1) -> str:
    """Read the log of a crawl until a text has appeared this many times."""
    log = ""
    while log.count(text) < times:
        line = process.stderr.readline()
        assert line, log
        log += line
    return log


def wait_until(condition: Callable[[], bool], process: Piped) -> None:
    """Wait for something that the log of a crawl does not show."""
    limit = time.monotonic() + 60
    while not condition():
        assert process.poll() is None
        assert time.monotonic() < limit
        time.sleep(0.01)


def test_ctrl_c_ends_the_wait(mode: str) -> None:
    with Site(Closed(9)) as site, running(f"{site.url}/1", settings=FOR_EVER, mode=mode) as process:
        log = read_until(process, "Set aside")
        time.sleep(1)  # Scrapy's signal handler logs too, so a signal during a log call can be lost
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
        stopped = crawl(
            *requests, settings={**FOR_EVER, **job}, spider="tests.spiders.StopsWhenIdle", mode=mode
        )
        assert waiting(stopped) == {"waited": 20, "left": 20}
        assert not list((tmp_path / "job").glob("robots-waiting*"))
        resumed = crawl(settings={**RETRY, **job}, mode=mode)
        assert sorted(resumed.pages) == sorted(request["url"] for request in requests)


def test_a_request_that_waited_at_a_stop_has_all_its_retries_in_the_next_run(tmp_path: Path) -> None:
    job = {"JOBDIR": str(tmp_path / "job")}
    closed, closed_for_long = Answer(status=503), Answer(status=503, headers={"Retry-After": "3600"})
    coming = [closed, closed_for_long, closed, closed]
    with Site(lambda hit: coming.pop(0) if coming else Answer(ROBOTS)) as site:
        with running(f"{site.url}/1", settings={**RETRY, **job}) as process:
            wait_until(lambda: len(coming) == 2, process)
            time.sleep(1)  # the log does not say that the first retry has failed
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            assert process.wait() == 0, err
            assert json.loads(out)["stats"]["norobots/retry/left"] == 1
        resumed = crawl(settings={**RETRY, **job, "NOROBOTS_STORE": "memory"})
        assert resumed.pages == [f"{site.url}/1"]
        assert coming == []


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
        with running(f"{site.url}/1", settings={**FOR_EVER, **job}, mode=mode) as process:
            wait_until(lambda: bool(hits), process)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            assert process.wait() == 0, err
            assert json.loads(out)["drops"] == []
        assert crawl(settings={**RETRY, **job}, mode=mode).pages == [f"{site.url}/1"]


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
        return page(f"{closed.url}/late")

    once = {"NOROBOTS_RETRY_CLOSED": 1, "NOROBOTS_ERROR_TTL": 0.2}
    with Site(robots) as closed, Site(ROBOTS) as healthy:
        healthy.answers["/"] = late
        urls = [f"{closed.url}/early", f"{healthy.url}/"]
        with running(
            *urls, settings={**FOR_EVER, **once, **job}, mode=mode, arguments={"follow": True}
        ) as process:
            # The late request waits for the retry, which does not end.
            log = read_until(process, f"Crawled (200) <GET {healthy.url}/>")
            time.sleep(1)  # the log does not say when it begins to wait
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            assert process.wait() == 0, log + err
        release.set()
        seen = json.loads(out)
        assert seen["drops"] == []
        assert seen["stats"]["norobots/retry/left"] == 2
        resumed = crawl(settings={**RETRY, **job}, mode=mode)
        assert sorted(resumed.pages) == [f"{closed.url}/early", f"{closed.url}/late"]


@contextmanager
def killed(*requests: Any, file: Path, count: int, **job: Any) -> Iterator[None]:
    """Run a crawl, and kill it when this many requests are in its journal."""
    with running(*requests, **job) as process:
        wait_until(lambda: rows(file) >= count, process)
        process.kill()
    yield


def rows(file: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as db:
            return int(db.execute("SELECT count(*) FROM requests").fetchone()[0])
    except sqlite3.OperationalError:  # the process is creating it
        return 0


def test_a_killed_job_loses_no_request_that_waited(mode: str, tmp_path: Path) -> None:
    job = {"JOBDIR": str(tmp_path / "job")}
    with Site(Closed(1)) as site:
        urls = [f"{site.url}/{number}" for number in range(20)]
        requests = [{"url": url, "meta": {"mark": url}, "priority": 3} for url in urls]
        file = tmp_path / "job" / "robots-waiting.sqlite"
        settings = {**FOR_EVER, **job, "DUPEFILTER_CLASS": "tests.spiders.WritesAtOnce"}
        with killed(*requests, file=file, count=20, settings=settings, mode=mode):
            resumed = crawl(settings={**RETRY, **job}, mode=mode)
        assert sorted(resumed.pages) == sorted(urls)
        assert resumed.log_lines(
            "INFO: Requests that waited for closed sites when this job was killed are scheduled again: 20"
        )
        assert not file.exists()


def test_a_killed_job_repeats_no_request_that_has_come_back(mode: str, tmp_path: Path) -> None:
    job = {"JOBDIR": str(tmp_path / "job")}
    file = tmp_path / "job" / "robots-waiting.sqlite"
    with Site(Closed(1)) as site, Site(Closed(1, headers={"Retry-After": "3600"})) as closed:
        requests = [f"{site.url}/1", f"{closed.url}/2"]
        settings = {**RETRY, "NOROBOTS_ERROR_TTL": 1, **job}
        with running(*requests, settings=settings, mode=mode) as process:
            read_until(process, f"Crawled (200) <GET {site.url}/1>")
            wait_until(lambda: rows(file) == 1, process)
            process.kill()
        resumed = crawl(settings={**RETRY, **job, "NOROBOTS_STORE": "memory"}, mode=mode)
        assert resumed.pages == [f"{closed.url}/2"]
        assert resumed.log_lines("when this job was killed are scheduled again: 1")
        assert site.pages() == ["/1"]


def test_a_job_that_is_killed_while_it_closes_loses_no_request(mode: str, tmp_path: Path) -> None:
    job = {"JOBDIR": str(tmp_path / "job")}
    file = tmp_path / "job" / "robots-waiting.sqlite"
    queues = tmp_path / "job" / "requests.queue"
    release = threading.Event()

    def hang(hit: Hit) -> Answer:
        release.wait(60)
        return Answer()

    with Site(Closed(1)) as closed, Site(ROBOTS) as slow:
        slow.answers["/"] = hang
        urls = [f"{closed.url}/{number}" for number in range(5)]
        with running(f"{slow.url}/", *urls, settings={**FOR_EVER, **job}, mode=mode) as process:
            read_until(process, "Set aside", times=5)
            wait_until(lambda: bool(slow.pages()) and rows(file) == 5, process)
            process.send_signal(signal.SIGTERM)
            wait_until(lambda: any(queue.is_file() for queue in queues.rglob("*")), process)
            process.kill()
        release.set()
        assert rows(file) == 5
        shutil.rmtree(queues)  # the kill has left it without an index, or damaged
        resumed = crawl(settings={**RETRY, **job}, mode=mode)
        assert sorted(resumed.pages) == urls


@pytest.mark.skipif(
    not hasattr(ExecutionEngine, "download_async"), reason="older versions do not show its cause"
)
def test_a_download_by_a_spider_is_not_scheduled_after_a_kill(mode: str, tmp_path: Path) -> None:
    job = {"JOBDIR": str(tmp_path / "job")}
    file = tmp_path / "job" / "robots-waiting.sqlite"
    with Site(Closed(1)) as closed, Site(Closed(1)) as other, Site(ROBOTS) as healthy:
        work: dict[str, Any] = {
            "spider": "tests.spiders.DownloadsItself",
            "arguments": {"then": [f"{closed.url}/inline"]},
            "mode": mode,
        }
        settings = {**FOR_EVER, **job}
        with running(f"{healthy.url}/", f"{other.url}/1", settings=settings, **work) as process:
            log = read_until(process, "Set aside", times=2)
            assert "/inline" in log
            wait_until(lambda: rows(file) > 0, process)
            process.kill()
        assert rows(file) == 1
        done = crawl(settings={**RETRY, **job}, **{**work, "arguments": {"then": []}})
        assert closed.pages() == []
        assert other.pages() == ["/1"]
        assert done.log_lines(
            "INFO: Requests that waited for closed sites when this job was killed are scheduled again: 1"
        )


def test_a_media_pipeline_keeps_its_requests_out_of_the_journal(mode: str, tmp_path: Path) -> None:
    with Site(Closed(1)) as closed, Site() as healthy:
        healthy.answers["/"] = page(f"{closed.url}/1")
        settings = {
            **RETRY,
            "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
            "FILES_STORE": str(tmp_path / "files"),
            "JOBDIR": str(tmp_path / "job"),
        }
        done = crawl(f"{healthy.url}/", settings=settings, spider="tests.spiders.WithFiles", mode=mode)
        assert done.notes["files"] == [f"{closed.url}/1"]
        assert waiting(done) == {"waited": 1, "came_back": 1}


@pytest.mark.parametrize("off", [{"NOROBOTS_RETRY_CLOSED": 0}, {"NOROBOTS_DRY_RUN": True}])
def test_a_killed_job_continues_without_retries(off: dict[str, Any], tmp_path: Path) -> None:
    job = {"JOBDIR": str(tmp_path / "job")}
    with Site(Closed(1)) as site:
        file = tmp_path / "job" / "robots-waiting.sqlite"
        with killed(f"{site.url}/1", file=file, count=1, settings={**FOR_EVER, **job}):
            resumed = crawl(settings={**RETRY, **job, **off, "NOROBOTS_STORE": "memory"})
        assert resumed.pages == [f"{site.url}/1"]
        assert not file.exists()


def test_filters_apply_to_the_redirects_of_a_request_of_a_killed_job(mode: str, tmp_path: Path) -> None:
    job = {"JOBDIR": str(tmp_path / "job")}
    with Site(Closed(1)) as closed, Site(ROBOTS) as healthy:
        closed.answers["/moved"] = Answer(status=302, headers={"Location": f"{healthy.url}/known"})
        file = tmp_path / "job" / "robots-waiting.sqlite"
        with killed(f"{closed.url}/moved", file=file, count=1, settings={**FOR_EVER, **job}, mode=mode):
            resumed = crawl(f"{healthy.url}/known", settings={**RETRY, **job}, mode=mode)
        assert "/moved" in closed.targets()
        assert healthy.pages() == ["/known"]
        assert resumed.stats["dupefilter/filtered"] == 1


def test_a_damaged_journal_does_not_stop_the_crawl(tmp_path: Path) -> None:
    job = tmp_path / "job"
    job.mkdir()
    (job / "robots-waiting.sqlite").write_bytes(b"what is this?" * 1000)
    with Site(Closed(1)) as site:
        done = crawl(f"{site.url}/1", settings={**RETRY, "JOBDIR": str(job)})
        assert done.pages == [f"{site.url}/1"]
        assert done.log_lines("ERROR: Requests that wait for closed sites may be lost if this job is killed")


@pytest.mark.parametrize("debug", [False, True])
def test_requests_that_cannot_be_serialized_are_logged_as_scrapy_does(debug: bool, tmp_path: Path) -> None:
    with Site(Closed(1)) as site:
        settings = {**RETRY, "JOBDIR": str(tmp_path / "job"), "SCHEDULER_DEBUG": debug}
        urls = [f"{site.url}/{number}" for number in range(3)]
        # This line shows a traceback, as Scrapy's does.
        done = run_crawl(*urls, settings=settings, spider="tests.spiders.Unserializable")
        assert done.returncode == 0, done.stderr
        seen = json.loads(done.stdout)
        assert sorted(seen["pages"]) == urls
        assert seen["stats"]["norobots/retry/unserializable"] == 3
        assert done.stderr.count("it waits in memory only") == debug


# scrapy-redis


def test_processes_that_share_a_queue_retry_requests(redis_server: RedisServer) -> None:
    pytest.importorskip("scrapy_redis", reason="scrapy-redis is not installed")
    redis = pytest.importorskip("redis")
    from tests.fleet import SETTINGS

    with (
        Site(Closed(2)) as closed,
        Site(ROBOTS) as healthy,
        redis.Redis.from_url(redis_server.url) as client,
    ):
        urls = [f"{site.url}/{number}" for number in range(20) for site in (closed, healthy)]
        for url in urls:
            client.rpush("fleet:start_urls", json.dumps({"url": url}))
        settings = {**RETRY, **SETTINGS, "REDIS_URL": redis_server.url, "NOROBOTS_STORE": redis_server.url}
        deprecated = r"Passing a .spider. argument|Spider\.log|scrapy_redis\.|scrapy\.http\.FormRequest"
        work: dict[str, Any] = {"spider": "tests.fleet.Worker", "deprecated": deprecated}
        # The first is stopped while requests wait, and they go back to the shared queue.
        stopped = crawl(settings={**settings, "NOROBOTS_ERROR_TTL": 3600, "CLOSESPIDER_TIMEOUT": 3}, **work)
        left = waiting(stopped)["left"]
        assert left > 0
        assert stopped.drops == []
        done = crawl(settings=settings, timeout=120, **work)
        assert sorted(stopped.pages + done.pages) == sorted(urls)


# Log and reports


def test_the_log_says_until_when_requests_wait(mode: str) -> None:
    with Site(Closed(2)) as site:
        urls = [f"{site.url}/{number}" for number in range(5)]
        done = crawl(*urls, settings=RETRY, mode=mode)
        first, second = done.log_lines("INFO: ", "wait until")
        until = r"wait until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d, when"
        assert re.search(rf"INFO: Requests to {site.url} {until}", first)
        assert re.search(rf"INFO: {site.url}/robots.txt answered 503: requests to {site.url} {until}", second)
        assert not done.log_lines("no longer retried")
        assert done.log_lines("requests that waited for closed sites: 5; came back: 5, given up: 0")


def test_the_log_says_that_requests_are_given_up(mode: str) -> None:
    with Site(Closed(9)) as site:
        done = crawl(f"{site.url}/1", f"{site.url}/2", settings=RETRY, mode=mode)
    assert len(done.log_lines("INFO: ", "wait until")) == 2
    [line] = done.log_lines("no longer retried")
    assert line.endswith(
        f"INFO: {site.url}/robots.txt answered 503: requests to {site.url} are no longer retried, but "
        "dropped (NOROBOTS_RETRY_CLOSED)"
    )


def test_further_waits_are_logged_for_the_first_origins_only() -> None:
    with ExitStack() as stack:
        sites = [stack.enter_context(Site(Closed(9))) for _ in range(22)]
        done = crawl(*(f"{site.url}/" for site in sites), settings={**RETRY, "CONCURRENT_REQUESTS": 30})
    assert len(done.log_lines("INFO: ", "wait until")) == 20 * 2
    assert len(done.log_lines("DEBUG: ", "wait until")) == 2 * 2
    assert len(done.log_lines("INFO: ", "no longer retried")) == 20


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


def test_retry_after_extends_the_time_to_the_next_try(mode: str, tmp_path: Path) -> None:
    store = {"NOROBOTS_STORE": f"sqlite:///{tmp_path / 'robots.sqlite'}", "NOROBOTS_RETRY_TIMES": 3}
    with Site(Closed(9, 429, {"Retry-After": "900"})) as site:
        for _ in range(2):  # the second reads the store, as another process would
            done = crawl(
                f"{site.url}/1",
                settings={**RETRY, **store},
                spider="tests.spiders.StopsWhenIdle",
                mode=mode,
            )
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
    assert "Set aside" not in done.stderr
    assert site.targets() == ["/robots.txt"]


def test_robots_check_does_not_wait(project: Path) -> None:
    with Site(Closed(9)) as site:
        done = run(project, "robots-check", f"{site.url}/1")
        assert done.returncode == 2, done.stderr
        assert words(done) == ["unknown"]
        assert set(site.targets()) == {"/robots.txt"}
    assert not (project / "job").exists()
