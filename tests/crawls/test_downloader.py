"""`RobotsDownloader` in crawls: which downloads take places of the crawl, and how many run at a time.

Every crawl of the tests checks at its end that nothing is left in the scheduler or the downloader: see
`tests.helpers.running.crawler`.
"""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.helpers.running import processes
from tests.helpers.running.crawling import ADDON, IN_ORDER, QUEUE, crawl, hosts_of
from tests.helpers.sites import Answer, Hit, Site, page

RULES = "User-agent: *\nDisallow: /back/\n"
PATIENCE = 10.0


def test_without_free_downloads_of_robots_txt_all_take_places(mode: str) -> None:
    """The download takes longer than a crawl with one place waits for the sake of the order."""
    asked = threading.Event()
    asked_meanwhile: list[bool] = []
    slow = Answer(RULES, before=lambda: asked_meanwhile.append(asked.wait(2)))
    with Site(RULES, {"/page": Answer(before=asked.set)}) as site, Site(slow, host="127.0.0.2") as other:
        site.answers["/"] = page(f"{other.url}/", f"{site.url}/page")
        settings = {**ADDON, **IN_ORDER, "CONCURRENT_REQUESTS": 1, "NOROBOTS_CONCURRENT_FETCHES": 0}
        seen = crawl(f"{site.url}/", settings=settings, arguments={"follow": True})
    assert len(seen.pages) == 3
    assert asked_meanwhile == [False]


def test_downloads_of_robots_txt_do_not_wait_for_a_connection(mode: str) -> None:
    """Some download handlers open `CONCURRENT_REQUESTS` connections."""
    all_asked = threading.Barrier(8)
    robots = Answer(RULES, before=lambda: all_asked.wait(20))
    with Site(robots, host="0.0.0.0") as site:
        urls = [f"{site.url_of(f'127.0.0.{host}')}/" for host in range(1, 9)]
        settings = {**ADDON, "CONCURRENT_REQUESTS": 2, "NOROBOTS_RETRY_TIMES": 0}
        seen = crawl(*urls, settings=settings)
    assert sorted(seen.pages) == urls


class InHand:
    """Answers pages after a while, and remembers how many were in hand at once."""

    def __init__(self, seconds: float = 0.02) -> None:
        self.most = 0
        self._seconds = seconds
        self._now = 0
        self._lock = threading.Lock()

    def answer(self, hit: Hit) -> Answer:
        if hit.target == "/robots.txt":
            return Answer(RULES, before=lambda: time.sleep(0.1))
        return self.page()

    def page(self) -> Answer:
        return Answer(before=self._hold)

    def _hold(self) -> None:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        time.sleep(self._seconds)
        with self._lock:
            self._now -= 1


def test_no_more_files_than_the_limit_are_downloaded_at_a_time() -> None:
    hand = InHand()
    with Site(hand.page(), host="0.0.0.0") as site:
        urls = hosts_of(site, 30)
        seen = crawl(*urls, settings={**ADDON, "CONCURRENT_REQUESTS": 4, "NOROBOTS_CONCURRENT_FETCHES": 2})
    assert len(seen.pages) == 30
    assert hand.most == 2


@pytest.mark.parametrize("limit", [1, 3])
def test_requests_continue_within_concurrent_requests(limit: int) -> None:
    hand = InHand()
    targets = ["/robots.txt", *(f"/{number}" for number in range(8)), "/back/"]
    with Site(None, dict.fromkeys(targets, hand.answer), host="0.0.0.0") as site:
        urls = [f"{site.url_of(f'127.0.0.{host}')}{target}" for target in targets[1:] for host in range(1, 7)]
        seen = crawl(*urls, settings={**ADDON, "CONCURRENT_REQUESTS": limit, **QUEUE})
    assert len(seen.pages) == 6 * 8
    assert len(seen.drops) == 6
    assert hand.most <= limit


def test_pages_with_and_without_a_delay_stay_within_the_limit() -> None:
    hand = InHand(0.15)
    targets = [f"/{number}" for number in range(72)]
    with Site(RULES, dict.fromkeys(targets, hand.answer), host="0.0.0.0") as site:
        *slow, fast = hosts_of(site, 3)
        slots = {urlsplit(url).hostname: {"delay": 0.3} for url in slow}
        settings = {**ADDON, **QUEUE, "DOWNLOAD_SLOTS": slots, "DOWNLOAD_DELAY_JITTER": 0}
        urls = [url + target for url, target in zip(12 * (*slow, *4 * [fast]), targets, strict=True)]
        seen = crawl(*urls, settings={**settings, "CONCURRENT_REQUESTS": 4})
    assert len(seen.pages) == len(urls)
    assert hand.most == 4


def test_requests_that_wait_twice_stay_within_the_limit(mode: str) -> None:
    hand = InHand()
    targets = ["/robots.txt", *(f"/{number}" for number in range(5))]
    with Site(None, dict.fromkeys(targets, hand.answer), host="0.0.0.0") as site:
        urls = [f"{site.url_of(f'127.0.0.{host}')}{target}" for target in targets[1:] for host in range(1, 6)]
        settings = {**ADDON, "CONCURRENT_REQUESTS": 2, "NOROBOTS_MEMORY_MAX": 1, **QUEUE}
        seen = crawl(*urls, settings=settings)
    assert len(seen.pages) == 5 * 5
    assert len(site.robots_hits()) > 5
    assert hand.most <= 2


def test_a_spiders_requests_for_robots_txt_stay_within_the_limit(mode: str) -> None:
    """The first request for each is the plugin's, and fails, so that the spider's own goes to the site."""
    hand = InHand()
    asked: set[str] = set()

    def robots(hit: Hit) -> Answer:
        if hit.host in asked:
            return hand.page()
        asked.add(hit.host)
        return Answer(status=503, before=lambda: time.sleep(0.2))

    with Site(robots, host="0.0.0.0") as site:
        urls = [site.url_of(f"127.0.0.{host}") + "/robots.txt" for host in range(1, 9)]
        settings = {**ADDON, "CONCURRENT_REQUESTS": 2, "RETRY_ENABLED": False, **QUEUE}
        seen = crawl(*urls, settings=settings)
    assert len(seen.pages) == len(site.robots_hits()) / 2 == 8
    assert hand.most <= 2


def test_requests_that_wait_leave_their_places_to_others() -> None:
    done = threading.Event()
    waited: list[bool] = []

    def robots(hit: Hit) -> Answer:
        host = int(hit.host.rpartition(".")[2])
        if host in (1, 2):
            return Answer(RULES, before=lambda: time.sleep(0.3))
        return Answer(RULES, before=lambda: waited.append(done.wait(PATIENCE)) if host in (3, 4) else None)

    with Site(None, {"/robots.txt": robots, "127.0.0.5/": Answer(before=done.set)}, host="0.0.0.0") as site:
        urls = [f"{site.url_of(f'127.0.0.{host}')}/" for host in range(1, 6)]
        settings = {**ADDON, **IN_ORDER, "CONCURRENT_REQUESTS": 2}
        seen = crawl(*urls, settings=settings)
    assert len(seen.pages) == 5
    assert waited == [True, True]


def test_responses_of_a_middleware_free_their_places() -> None:
    def robots(hit: Hit) -> Answer:
        return Answer(RULES, before=lambda: time.sleep(0.2 if hit.host == "127.0.0.2" else 0))

    with Site(None, {"/robots.txt": robots}, host="0.0.0.0") as site:
        waiting = [f"{site.url_of('127.0.0.2')}/{number}" for number in range(8)]
        others = [f"{site.url_of('127.0.0.1')}/{number}" for number in range(200)]
        seen = crawl(
            *others[:1],
            *waiting,
            *others[1:],
            settings={
                **ADDON,
                **IN_ORDER,
                "CONCURRENT_REQUESTS": 4,
                "DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.middlewares.AnswersLate": 560},
                "PAUSE": 0.02,
            },
        )
    assert len(seen.pages) == 200 + 8
    assert max(seen.pages.index(url) for url in waiting) < 160


def test_a_slow_middleware_keeps_its_place() -> None:
    with Site(Answer(RULES, before=lambda: time.sleep(0.2)), host="0.0.0.0") as site:
        urls = [site.url_of(f"127.0.0.{host}") + f"/{number}" for number in range(4) for host in range(1, 5)]
        settings = {
            "CONCURRENT_REQUESTS": 2,
            "DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.middlewares.TakesItsTime": 560},
            "PAUSE": 0.3,
        }
        seen = crawl(*urls, settings={**ADDON, **settings, **QUEUE})
    assert len(seen.pages) == 16
    assert seen.stats["at once"] <= 2


def test_a_slow_download_keeps_its_place() -> None:
    """Also when its response has come after 3 s. After 2 s without progress, this crawl stands still."""
    # The first page waits in line while the others have the two places.
    robots = {"127.0.0.1/robots.txt": Answer(RULES, before=lambda: time.sleep(0.5))}
    late = {"127.0.0.2/": Answer(before=lambda: time.sleep(3))}
    with Site(RULES, {**robots, **late}, host="0.0.0.0") as site:
        settings = {
            "CONCURRENT_REQUESTS": 2,
            "DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.middlewares.TakesItsTime": 560},
            "PAUSE": 4.3,  # the middleware has the third page until then, and gets the second one after 3 s
        }
        urls = [site.url_of(f"127.0.0.{host}") + "/" for host in (1, 2, 3)]
        seen = crawl(*urls, settings={**ADDON, **IN_ORDER, **settings}, spider="scheduling.LooksForPlaces")
    assert len(seen.pages) == 3
    assert seen.stats["at once"] == 2


def test_files_of_a_slot_are_loaded_after_pages_that_a_middleware_answers(mode: str) -> None:
    """These pages never reach the slot, which has a delay and the pages of several hosts."""
    settings = {
        **ADDON,
        "DOWNLOAD_DELAY": 0.1,
        "DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.middlewares.AnswersLate": 950},
    }
    with Site(RULES, host="0.0.0.0") as site:
        requests = [{"url": url, "meta": {"download_slot": "all"}} for url in hosts_of(site, 8)]
        assert len(crawl(*requests, settings=settings).pages) == 8


def test_a_middleware_that_answers_late_keeps_its_place(mode: str) -> None:
    """Also if it takes longer than a request keeps a place for which robots.txt is being loaded."""
    settings = {
        **ADDON,
        "CONCURRENT_REQUESTS": 1,
        "DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.middlewares.AnswersLate": 560},
        "PAUSE": 1.2,
    }
    with Site(Answer(RULES, before=lambda: time.sleep(0.2)), host="0.0.0.0") as site:
        urls = [f"{url}/page" for url in hosts_of(site, 6)]
        seen = crawl(*urls, settings=settings)
    assert len(seen.pages) == 6
    assert seen.stats["at once"] == 1


def test_a_page_that_waits_for_another_page_gets_it(mode: str) -> None:
    settings = {
        **ADDON,
        "CONCURRENT_REQUESTS": 1,
        "DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.middlewares.AsksAnotherFirst": 543},
    }
    with Site(RULES) as site, Site(RULES, host="127.0.0.2") as other:
        settings["OTHER"] = f"{other.url}/token"
        seen = crawl(f"{site.url}/1", settings=settings)
    assert seen.pages == [f"{site.url}/1"]
    assert other.pages() == ["/token"]


@pytest.mark.parametrize(
    ("delay", "hosts"), [pytest.param(0.2, 2, id="with a delay"), pytest.param(0, 12, id="many hosts")]
)
def test_pages_that_wait_for_pages_of_the_same_host_get_them(delay: float, hosts: int, mode: str) -> None:
    robots = Answer(RULES, before=lambda: time.sleep(0.1))
    with Site(robots, host="0.0.0.0") as site:
        urls = [
            site.url_of(f"127.0.0.{host}") + f"/{page}" for page in range(3) for host in range(1, 1 + hosts)
        ]
        settings = {
            **ADDON,
            **QUEUE,
            "CONCURRENT_REQUESTS": 4,
            "DOWNLOAD_DELAY": delay,
            "DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.middlewares.AsksItsHostFirst": 543},
        }
        seen = crawl(*urls, settings=settings)
        assert site.targets().count("/token") == len(urls)
    assert len(seen.pages) == len(urls)
    assert not seen.drops


def test_a_process_that_may_open_few_files_downloads_fewer_files_at_a_time() -> None:
    closing = {"Connection": "close"}
    robots = Answer(RULES, headers=closing, before=lambda: time.sleep(0.5))
    with Site(robots, {"/page": Answer(headers=closing)}, host="0.0.0.0") as site:
        urls = [f"{url}/page" for url in hosts_of(site, 150)]
        seen = crawl(*urls, spider="limited.WithFewFiles", arguments={"files": 120})
    assert sorted(seen.pages) == sorted(urls)
    (line,) = seen.log_lines("INFO: At most ", "robots.txt files are downloaded at a time")
    assert line.endswith(
        "At most 24 robots.txt files are downloaded at a time, and not 500 (NOROBOTS_CONCURRENT_FETCHES), "
        "because this process may open only 120 files (ulimit -n)"
    )
    assert "Too many open files" not in seen.log


def test_slow_dns_uses_up_no_time_of_a_download(mode: str) -> None:
    """Together, the names take three times as long as one download may."""
    settings = {**ADDON, "NOROBOTS_TIMEOUT": 2, "NOROBOTS_RETRY_TIMES": 0, "REACTOR_THREADPOOL_MAXSIZE": 2}
    with Site(RULES) as site:
        urls = [f"{site.url_of(f'host{number}.example')}/page" for number in range(30)]
        slow: dict[str, Any] = {
            "spider": "limited.WithSlowNames",
            "arguments": {"seconds": 0.4},
        }
        seen = crawl(*urls, settings=settings, **slow)
    assert not seen.drops
    assert sorted(seen.pages) == sorted(urls)
    assert len(site.robots_hits()) == 30


WARNS = """
import warnings
import scrapy.crawler, scrapy.settings
warnings.simplefilter("always")
settings = {"ADDONS": {"scrapy_norobots.Addon": 500}, "RANDOMIZE_DOWNLOAD_DELAY": False}
process = scrapy.crawler.CrawlerProcess({**settings, "TELNETCONSOLE_ENABLED": False})
process.crawl(scrapy.Spider, name="town")
process.start()
"""


def test_a_warning_of_scrapy_about_a_setting_does_not_name_the_plugin(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(WARNS)
    done = processes.run("script", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"(.*):\d+: ScrapyDeprecationWarning: The RANDOMIZE_DOWNLOAD_DELAY", done.stderr)
    if not found:
        pytest.skip("this version of Scrapy does not warn of RANDOMIZE_DOWNLOAD_DELAY")
    assert [Path(file).parts[-2:] for file in found] == [("core", "engine.py")]
