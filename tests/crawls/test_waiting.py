"""`RobotsScheduler` and `RobotsDownloader` in crawls: requests that wait for robots.txt stall no other host.

Every crawl of the tests checks at its end that nothing is left in the scheduler or the downloader: see
`tests.crawler`.
"""

from __future__ import annotations

import inspect
import json
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from scrapy import Spider, signals
from scrapy.core.downloader import Downloader
from scrapy.core.downloader.handlers import DownloadHandlers
from scrapy.settings import default_settings

from tests.crawling import ADDON, MODES, Crawl, crawl
from tests.crawls.test_closing import running
from tests.sites import Answer, Hit, Site, page

RULES = "User-agent: *\nDisallow: /back/\n"
SLOW_PAGES, HEALTHY_PAGES = 20, 20
PATIENCE = 10.0

# The default from Scrapy 2.14 on.
QUEUE = {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue"}


def crawl_beside_a_slow_host(mode: str = MODES[0], **settings: Any) -> tuple[Crawl, list[str]]:
    """Crawl a host whose robots.txt comes only when all pages of a healthy one have, and that one.

    All requests are on the scheduler at once, the slow host's first. Returns the crawl and which host was
    asked for a page, in order.
    """
    healthy_done = threading.Event()
    log: list[str] = []

    def healthy_page(name: str) -> None:
        log.append(name)
        if log.count(name) == HEALTHY_PAGES:
            healthy_done.set()

    fast = {f"/{i}": Answer(before=lambda: healthy_page("healthy")) for i in range(HEALTHY_PAGES)}
    slow = {f"/{i}": Answer(before=lambda: log.append("slow")) for i in range(SLOW_PAGES)}
    slow_robots = Answer(RULES, before=lambda: healthy_done.wait(PATIENCE))
    with Site(RULES, fast) as site, Site(slow_robots, slow, host="127.0.0.2") as slow_site:
        urls = [f"{slow_site.url}{target}" for target in slow] + [f"{site.url}{target}" for target in fast]
        seen = crawl(
            "data:,",
            mode=mode,
            settings={
                **ADDON,
                "CONCURRENT_REQUESTS": 4,
                "NOROBOTS_TIMEOUT": 2 * PATIENCE,
                **QUEUE,
                **settings,
            },
            spider="tests.spiders.Watching",
            arguments={"then": urls},
        )
        assert len(site.robots_hits()) == len(slow_site.robots_hits()) == 1
    assert healthy_done.is_set()
    assert len(seen.pages) == 1 + SLOW_PAGES + HEALTHY_PAGES
    return seen, log


def test_a_slow_host_does_not_stall_others(mode: str) -> None:
    _, log = crawl_beside_a_slow_host(mode)
    assert log == ["healthy"] * HEALTHY_PAGES + ["slow"] * SLOW_PAGES


PLAIN_QUEUE = "scrapy.pqueues.ScrapyPriorityQueue"
IN_ORDER = {
    "SCHEDULER_PRIORITY_QUEUE": PLAIN_QUEUE,
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    "SCHEDULER_START_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
}


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.01}, id="AutoThrottle"),
        pytest.param({"DOWNLOAD_DELAY": 0.02}, id="delay"),
        pytest.param({"CONCURRENT_REQUESTS_PER_DOMAIN": 1}, id="one at a time"),
        pytest.param(
            {"DOWNLOAD_SLOTS": {"127.0.0.2": {"concurrency": 1, "delay": 0.01}}}, id="DOWNLOAD_SLOTS"
        ),
        pytest.param({"SCHEDULER_PRIORITY_QUEUE": PLAIN_QUEUE}, id="plain queue"),
        pytest.param(
            {"CONCURRENT_REQUESTS": 0},
            id="no limit",
            marks=pytest.mark.skipif(
                "0 <" not in inspect.getsource(Downloader.needs_backout),
                reason="0 means that nothing is downloaded, before 2.18",
            ),
        ),
    ],
)
def test_a_slow_host_does_not_stall_others_with_settings(settings: dict[str, Any]) -> None:
    _, log = crawl_beside_a_slow_host(**settings)
    assert log[:HEALTHY_PAGES] == ["healthy"] * HEALTHY_PAGES


def test_a_slow_host_does_not_pull_the_queue_into_memory() -> None:
    seen, _ = crawl_beside_a_slow_host(CONCURRENT_REQUESTS=4)
    assert seen.notes["most parked"] < SLOW_PAGES
    assert seen.notes["most active"] <= 4 + 2  # two downloads of robots.txt take no place


def test_without_free_downloads_of_robots_txt_all_take_places() -> None:
    robots = Answer(RULES, before=lambda: threading.Event().wait(0.3))
    with Site(robots) as site:
        seen = crawl(
            "data:,",
            settings={**ADDON, "CONCURRENT_REQUESTS": 4, "NOROBOTS_CONCURRENT_FETCHES": 0},
            spider="tests.spiders.Watching",
            arguments={"then": [f"{site.url}/{i}" for i in range(20)]},
        )
    assert len(seen.pages) == 1 + 20
    assert seen.notes["most active"] <= 4 + 1  # a download through the engine does not ask for room


def test_downloads_of_robots_txt_above_the_limit_take_places() -> None:
    robots = Answer(RULES, before=lambda: threading.Event().wait(0.5))
    with Site(robots, host="0.0.0.0") as site:
        seen = crawl(
            "data:,",
            settings={**ADDON, "CONCURRENT_REQUESTS": 4, "NOROBOTS_CONCURRENT_FETCHES": 2, **QUEUE},
            spider="tests.spiders.Watching",
            arguments={"then": [f"{site.url_of(f'127.0.0.{host}')}/" for host in range(1, 31)]},
        )
    assert len(seen.pages) == 1 + 30
    assert seen.notes["most active"] <= 4 + 2 + 2  # two may start before the engine asks for room


@pytest.mark.parametrize("queue", [default_settings.SCHEDULER_PRIORITY_QUEUE, PLAIN_QUEUE])
def test_the_order_of_requests_is_kept(queue: str) -> None:
    def order(settings: dict[str, Any]) -> list[str]:
        robots = Answer(RULES, before=lambda: threading.Event().wait(0.2))
        with Site(robots) as site:
            seen = crawl(
                "data:,",
                settings={**settings, "SCHEDULER_PRIORITY_QUEUE": queue},
                spider="tests.spiders.Watching",
                arguments={"then": [f"{site.url}/{i}" for i in range(60)]},
            )
        reached: list[str] = seen.notes["reached"]
        assert len(reached) == 60
        return reached

    assert order(ADDON) == order({})


def test_a_download_slot_of_the_user_is_respected() -> None:
    with Site(RULES) as site:
        seen = crawl(
            *({"url": f"{site.url}/{i}", "meta": {"download_slot": f"slot {i % 2}"}} for i in range(10)),
            f"{site.url}/back/",
        )
    assert len(seen.pages) == 10
    assert len(site.robots_hits()) == 1


BY_HAND = {
    "ROBOTSTXT_OBEY": True,
    "DOWNLOADER_MIDDLEWARES": {
        "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
        "scrapy_norobots.NoRobotsMiddleware": 100,
    },
}
OTHER_SCHEDULER = (
    "Requests that wait for robots.txt count against CONCURRENT_REQUESTS, so a slow host can stall the crawl "
    "of other hosts: SCHEDULER is not scrapy_norobots.RobotsScheduler"
)
OTHER_DOWNLOADER = (
    "Downloads of robots.txt count against CONCURRENT_REQUESTS, so a slow host can stall the crawl of other "
    "hosts: DOWNLOADER is not scrapy_norobots.RobotsDownloader"
)


def crawl_with_any_setup(settings: dict[str, Any], mode: str) -> Crawl:
    with Site(RULES) as site, Site(RULES) as other:
        urls = [f"{one.url}{target}" for one in (site, other) for target in ("/1", "/2", "/back/")]
        seen = crawl(*urls, settings=settings, mode=mode)
        assert [len(one.robots_hits()) for one in (site, other)] == [1, 1]
        assert sorted(site.pages() + other.pages()) == ["/1", "/1", "/2", "/2"]
    assert [drop.type for drop in seen.drops] == ["RobotsForbidden"] * 2
    return seen


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        pytest.param(BY_HAND, OTHER_SCHEDULER, id="listed by hand"),
        pytest.param(
            {**BY_HAND, "DOWNLOADER": "scrapy_norobots.RobotsDownloader"},
            OTHER_SCHEDULER,
            id="listed by hand with the downloader",
        ),
        pytest.param(
            {**BY_HAND, "SCHEDULER": "scrapy_norobots.RobotsScheduler"},
            OTHER_DOWNLOADER,
            id="listed by hand with the scheduler",
        ),
        pytest.param(
            {**ADDON, "DOWNLOADER": "scrapy.core.downloader.Downloader"}, OTHER_DOWNLOADER, id="Scrapy's"
        ),
        pytest.param(
            {**ADDON, "DOWNLOADER": "tests.spiders.OtherDownloader", "SCHEDULER_PRIORITY_QUEUE": PLAIN_QUEUE},
            OTHER_DOWNLOADER,
            id="the user's",
        ),
    ],
)
def test_obeys_with_any_scheduler_and_downloader(settings: dict[str, Any], problem: str, mode: str) -> None:
    seen = crawl_with_any_setup(settings, mode)
    (line,) = seen.log_lines("WARNING", "CONCURRENT_REQUESTS")
    assert line.endswith(f"WARNING: {problem}")


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(
            {
                **BY_HAND,
                "DOWNLOADER": "scrapy_norobots.RobotsDownloader",
                "SCHEDULER": "scrapy_norobots.RobotsScheduler",
            },
            id="listed by hand",
        ),
        pytest.param(
            {**ADDON, "DOWNLOADER": "tests.spiders.DerivedDownloader"}, id="a downloader derived from it"
        ),
        pytest.param(
            {**ADDON, "SCHEDULER": "tests.components.DerivedScheduler"}, id="a scheduler derived from it"
        ),
        pytest.param(
            {
                **ADDON,
                "DOWNLOADER": "tests.spiders.DownloaderWithoutSlots",
                "SCHEDULER_PRIORITY_QUEUE": PLAIN_QUEUE,
            },
            id="of a Scrapy without download slots",
            marks=pytest.mark.skipif(
                not hasattr(DownloadHandlers, "download_request_async"),
                reason="its handlers have another API",
            ),
        ),
    ],
)
def test_needs_no_warning_with_its_scheduler_and_downloader(settings: dict[str, Any], mode: str) -> None:
    seen = crawl_with_any_setup(settings, mode)
    assert not seen.log_lines("WARNING", "CONCURRENT_REQUESTS")


def test_without_the_middleware_its_scheduler_and_downloader_do_what_scrapys_do(mode: str) -> None:
    settings = {
        "DOWNLOADER": "scrapy_norobots.RobotsDownloader",
        "SCHEDULER": "scrapy_norobots.RobotsScheduler",
    }
    with Site(RULES) as site:
        seen = crawl(*(f"{site.url}/{i}" for i in range(5)), settings=settings, mode=mode)
    assert len(seen.pages) == 5
    assert not site.robots_hits()
    assert not seen.log_lines("[scrapy_norobots", "WARNING")


class InHand:
    """Answers pages after a while, and remembers how many were in hand at once."""

    def __init__(self) -> None:
        self.most = 0
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
        time.sleep(0.02)
        with self._lock:
            self._now -= 1


@pytest.mark.parametrize("limit", [1, 3])
def test_requests_continue_within_concurrent_requests(limit: int, mode: str) -> None:
    hand = InHand()
    targets = ["/robots.txt", *(f"/{number}" for number in range(8)), "/back/"]
    with Site(None, dict.fromkeys(targets, hand.answer), host="0.0.0.0") as site:
        urls = [f"{site.url_of(f'127.0.0.{host}')}{target}" for target in targets[1:] for host in range(1, 7)]
        seen = crawl(*urls, mode=mode, settings={**ADDON, "CONCURRENT_REQUESTS": limit, **QUEUE})
    assert len(seen.pages) == 6 * 8
    assert len(seen.drops) == 6
    assert hand.most <= limit


def test_requests_that_wait_twice_stay_within_the_limit(mode: str) -> None:
    hand = InHand()
    targets = ["/robots.txt", *(f"/{number}" for number in range(5))]
    with Site(None, dict.fromkeys(targets, hand.answer), host="0.0.0.0") as site:
        urls = [f"{site.url_of(f'127.0.0.{host}')}{target}" for target in targets[1:] for host in range(1, 6)]
        settings = {**ADDON, "CONCURRENT_REQUESTS": 2, "NOROBOTS_ORIGINS_MAX": 1, **QUEUE}
        seen = crawl(*urls, mode=mode, settings=settings)
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
        seen = crawl(*urls, mode=mode, settings=settings)
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


def test_responses_of_a_middleware_free_their_places(mode: str) -> None:
    def robots(hit: Hit) -> Answer:
        return Answer(RULES, before=lambda: time.sleep(0.2 if hit.host == "127.0.0.2" else 0))

    with Site(None, {"/robots.txt": robots}, host="0.0.0.0") as site:
        waiting = [f"{site.url_of('127.0.0.2')}/{number}" for number in range(8)]
        others = [f"{site.url_of('127.0.0.1')}/{number}" for number in range(200)]
        seen = crawl(
            *others[:1],
            *waiting,
            *others[1:],
            mode=mode,
            settings={
                **ADDON,
                **IN_ORDER,
                "CONCURRENT_REQUESTS": 4,
                "DOWNLOADER_MIDDLEWARES": {"tests.components.AnswersItself": 560},
            },
        )
    assert len(seen.pages) == 200 + 8
    assert max(seen.pages.index(url) for url in waiting) < 160


def test_a_slow_middleware_keeps_its_place() -> None:
    with Site(Answer(RULES, before=lambda: time.sleep(0.2)), host="0.0.0.0") as site:
        urls = [site.url_of(f"127.0.0.{host}") + f"/{number}" for number in range(4) for host in range(1, 5)]
        settings = {
            "CONCURRENT_REQUESTS": 2,
            "DOWNLOADER_MIDDLEWARES": {"tests.components.TakesItsTime": 560},
        }
        seen = crawl(*urls, settings={**ADDON, **settings, **QUEUE})
    assert len(seen.pages) == 16
    assert seen.stats["looked at"] <= 2


def test_a_page_that_waits_for_another_page_gets_it(mode: str) -> None:
    settings = {
        **ADDON,
        "CONCURRENT_REQUESTS": 1,
        "DOWNLOADER_MIDDLEWARES": {"tests.components.AsksAnotherFirst": 543},
    }
    with Site(RULES) as site, Site(RULES, host="127.0.0.2") as other:
        settings["OTHER"] = f"{other.url}/token"
        seen = crawl(f"{site.url}/1", mode=mode, settings=settings)
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
            "DOWNLOADER_MIDDLEWARES": {"tests.components.AsksItsHostFirst": 543},
        }
        seen = crawl(*urls, mode=mode, settings=settings)
        assert site.targets().count("/token") == len(urls)
    assert len(seen.pages) == len(urls)
    assert not seen.drops


def test_requests_moved_to_another_slot_do_not_wait_for_the_first() -> None:
    """If each waited for half of the delay, the crawl would time out."""
    with Site(RULES) as site:
        settings = {
            **ADDON,
            "DOWNLOAD_SLOTS": {"127.0.0.1": {"delay": 4}},
            "DOWNLOADER_MIDDLEWARES": {"tests.components.SpreadsOverSlots": 543},
        }
        seen = crawl(*(f"{site.url}/{page}" for page in range(40)), settings=settings)
    assert len(seen.pages) == 40


def test_dead_hosts_leave_places_for_others_with_any_download_handler(mode: str) -> None:
    done = threading.Event()
    waited: list[bool] = []
    dead = Answer(RULES, before=lambda: waited.append(done.wait(PATIENCE)))
    answers = {"/page": Answer(before=done.set), "/robots.txt": dead, "127.0.0.1/robots.txt": Answer(RULES)}
    with Site(None, answers, host="0.0.0.0") as site:
        urls = [f"{site.url_of(f'127.0.0.{host}')}/" for host in range(2, 12)]
        urls.append(f"{site.url_of('127.0.0.1')}/page")
        seen = crawl(*urls, mode=mode, settings={**ADDON, "CONCURRENT_REQUESTS": 2, "RETRY_ENABLED": False})
    assert waited == [True] * 10
    assert len(seen.pages) == 11


def test_hosts_take_turns() -> None:
    hosts = range(1, 7)
    all_asked = threading.Barrier(len(hosts), timeout=PATIENCE)
    with Site(Answer(RULES, before=all_asked.wait), host="0.0.0.0") as site:
        urls = [site.url_of(f"127.0.0.{host}") + f"/{host}/{number}" for host in hosts for number in range(6)]
        seen = crawl(*urls, settings={**ADDON, "CONCURRENT_REQUESTS": 1, **QUEUE})
    assert len(seen.pages) == len(urls)
    asked = [hit.host for hit in site.hits if hit.target != "/robots.txt"]
    turns = [[turn for turn, one in enumerate(asked) if one == host] for host in set(asked)]
    assert max(of_host[0] for of_host in turns) < min(of_host[3] for of_host in turns)


@pytest.mark.parametrize(
    ("slow", "delay"),
    [
        pytest.param(1, 0.2, id="one with a delay"),
        pytest.param(2, 0.2, id="two with a delay"),
        pytest.param(1, 0.0, id="one that is asked for one page at a time"),
        pytest.param(2, 0.0, id="two that are asked for one page at a time"),
    ],
)
def test_requests_that_wait_for_a_delay_take_no_place(slow: int, delay: float) -> None:
    fast, *others = (f"127.0.0.{number}" for number in range(1, 2 + slow))
    settings = {
        "CONCURRENT_REQUESTS": 4,
        "DOWNLOAD_SLOTS": {host: {"delay": delay, "concurrency": 1} for host in others},
    }

    def answer(hit: Hit) -> Answer:
        if hit.target == "/robots.txt":
            return Answer(RULES, before=lambda: time.sleep(0.3 if hit.host != fast else 0))
        return Answer(before=lambda: time.sleep(0.03 if delay or hit.host == fast else 0.2))

    with Site(None, {"/robots.txt": answer, "/": answer}, host="0.0.0.0") as site:
        urls = [f"{site.url_of(fast)}/?{number}" for number in range(60)]
        urls += [f"{site.url_of(host)}/?{number}" for number in range(14) for host in others]
        seen = crawl(
            "data:,",
            settings={**ADDON, **settings, **QUEUE},
            spider="tests.spiders.Watching",
            arguments={"then": urls},
        )
    assert len(seen.pages) == 1 + len(urls)
    asked = "".join("f" if hit.host == fast else "s" for hit in site.hits if hit.target != "/robots.txt")
    # As long as the fast host has pages, only few of the others come in a row.
    assert len(max(asked[: asked.rindex("f")].split("f"), key=len)) <= 6


def test_a_request_that_waited_is_checked_by_the_current_rules() -> None:
    answers = [Answer(RULES), Answer("User-agent: *\nDisallow: /2\n")]
    pages = {"/1": Answer(before=lambda: time.sleep(1.5)), "/2": Answer()}
    with Site(lambda hit: answers.pop(0), pages) as site:
        settings = {**ADDON, "CONCURRENT_REQUESTS": 1, "NOROBOTS_TTL": 1, "NOROBOTS_TTL_MIN": 0}
        seen = crawl(f"{site.url}/1", f"{site.url}/2", settings=settings)
    assert seen.pages == [f"{site.url}/1"]
    assert [drop.type for drop in seen.drops] == ["RobotsForbidden"]
    assert site.targets() == ["/robots.txt", "/1", "/robots.txt"]


@pytest.mark.parametrize(
    ("hosts", "limit", "delay", "latest"), [(1, 8, 0.02, 30), (2, 8, 0.02, 50), (3, 16, 0.05, 100)]
)
def test_requests_that_waited_are_not_overtaken_by_all_later_ones(
    hosts: int, limit: int, delay: float, latest: int
) -> None:
    def asked(settings: dict[str, Any]) -> list[str]:
        robots = Answer(RULES, before=lambda: threading.Event().wait(0.3))
        with Site(robots, host="0.0.0.0") as site:
            pages = [(host, f"/{host}-{i}") for i in range(60) for host in range(1, 1 + hosts)]
            crawl(
                "data:,",
                settings={**settings, "DOWNLOAD_DELAY": delay, "CONCURRENT_REQUESTS": limit, **QUEUE},
                spider="tests.spiders.Watching",
                arguments={"then": [site.url_of(f"127.0.0.{host}") + target for host, target in pages]},
            )
        return [target for target in site.targets() if target != "/robots.txt"]

    ours, plain = asked(ADDON), asked({})
    assert len(ours) == len(plain) == 60 * hosts
    # Those that waited must not come last, when the scheduler has no more: 50, 100 or 145 places late.
    assert max(place - plain.index(target) for place, target in enumerate(ours)) <= latest


def hosts_of(site: Site, count: int) -> list[str]:
    """Return the URLs of several hosts of a site bound to 0.0.0.0."""
    return [site.url_of(f"127.1.{number // 200}.{1 + number % 200}") for number in range(count)]


def test_after_the_crawl_began_to_close_no_page_is_sent(mode: str, tmp_path: Path) -> None:
    """The requests that waited for robots.txt survive in the job."""
    settings = {**ADDON, "JOBDIR": str(tmp_path)}
    with Site(Answer(RULES, before=lambda: time.sleep(1)), host="0.0.0.0") as site:
        urls = [f"{url}/page" for url in hosts_of(site, 100)]
        closing: dict[str, Any] = {
            "spider": "tests.spiders.StopsAmidRobots",
            "arguments": {"robots": 50, "how": "close"},
        }
        first = crawl(*urls, settings=settings, mode=mode, **closing)
        assert first.stats["finish_reason"] == "amid"
        assert len(first.pages) <= 16
        assert not first.drops
        site.answers["/robots.txt"] = Answer(RULES)
        second = crawl(*urls, settings=settings, mode=mode)
        assert sorted(first.pages + second.pages) == sorted(urls)
        assert len(site.pages()) == len(urls)


def test_no_page_is_sent_while_the_crawl_is_paused(mode: str) -> None:
    with Site(Answer(RULES, before=lambda: time.sleep(1)), host="0.0.0.0") as site:
        urls = [f"{url}/page" for url in hosts_of(site, 50)]
        pausing: dict[str, Any] = {
            "spider": "tests.spiders.StopsAmidRobots",
            "arguments": {"robots": 40, "how": "pause"},
        }
        seen = crawl(*urls, mode=mode, **pausing)
    assert seen.notes["loaded while paused"] >= 40
    assert seen.notes["sent while paused"] == 0
    assert sorted(seen.pages) == sorted(urls)


def test_ctrl_c_leaves_pages_that_wait_for_a_delay_in_the_job(mode: str, tmp_path: Path) -> None:
    settings = {**ADDON, **QUEUE, "JOBDIR": str(tmp_path), "CONCURRENT_REQUESTS": 4}
    slow = {"DOWNLOAD_DELAY": 1}
    started = threading.Event()
    robots = Answer(RULES, before=lambda: time.sleep(0.3))
    pages = {f"/{number}": Answer(before=started.set) for number in range(10)}
    with Site(robots, pages, host="0.0.0.0") as site:
        urls = [f"{url}/{number}" for number in range(10) for url in hosts_of(site, 10)]
        with running(*urls, settings={**settings, **slow}, mode=mode) as process:
            assert started.wait(60)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        assert process.wait() == 0, err
        first = json.loads(out)
        assert first["stats"]["finish_reason"] == "shutdown"
        assert len(first["pages"]) <= 2 * 4
        second = crawl(*urls, settings=settings, mode=mode)
        assert sorted(first["pages"] + second.pages) == sorted(urls)
        assert len(site.pages()) == len(urls)


def test_cached_pages_wait_for_no_delay(mode: str, tmp_path: Path) -> None:
    settings = {**ADDON, "HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    with Site(RULES) as site:
        urls = [f"{site.url}/{number}" for number in range(40)]
        crawl(*urls, settings=settings, mode=mode)
        site.hits.clear()
        # With the delays, the crawl would take at least 20 s.
        delayed = {"DOWNLOAD_DELAY": 1, "CLOSESPIDER_TIMEOUT": 12}
        seen = crawl(*urls, settings={**settings, **delayed}, mode=mode)
    assert seen.stats["finish_reason"] == "finished"
    assert sorted(seen.pages) == sorted(urls)
    assert site.targets() == ["/robots.txt"]  # which is not cached there


def test_a_middleware_that_answers_late_keeps_its_place(mode: str) -> None:
    """Also if it takes longer than a request keeps a place for which robots.txt is being loaded."""
    settings = {
        **ADDON,
        "CONCURRENT_REQUESTS": 1,
        "DOWNLOADER_MIDDLEWARES": {"tests.components.AnswersLate": 560},
    }
    with Site(Answer(RULES, before=lambda: time.sleep(0.2)), host="0.0.0.0") as site:
        urls = [f"{url}/page" for url in hosts_of(site, 6)]
        seen = crawl(*urls, mode=mode, settings=settings)
    assert len(seen.pages) == 6
    assert seen.stats["at once"] == 1


def test_sites_of_one_slot_with_a_delay_take_turns_with_their_pages(mode: str) -> None:
    settings = {**ADDON, "DOWNLOAD_DELAY": 0.05}
    with Site(RULES, host="0.0.0.0") as site:
        requests = [{"url": f"{url}/page", "meta": {"download_slot": "proxy"}} for url in hosts_of(site, 40)]
        seen = crawl(*requests, settings=settings, mode=mode)
    assert len(seen.pages) == 40
    assert len(site.robots_hits()) == 40
    assert site.targets().index("/page") <= 5


@pytest.mark.parametrize(("priority", "is_first"), [(-1, False), (1, True)], ids=["lower", "higher"])
def test_of_a_request_that_waited_and_a_scheduled_one_the_higher_priority_goes_first(
    priority: int, is_first: bool
) -> None:
    """It has waited too long to keep a place."""

    def robots(hit: Hit) -> Answer:
        return Answer(RULES, before=lambda: time.sleep(1.5) if hit.host == "127.0.0.2" else None)

    with Site(None, {"/robots.txt": robots}, host="0.0.0.0") as site:
        scheduled = [f"{site.url_of('127.0.0.1')}/{number}" for number in range(60)]
        for number in range(60):
            site.answers[f"127.0.0.1/{number}"] = Answer(before=lambda: time.sleep(0.05))
        waiting = [
            {"url": f"{site.url_of('127.0.0.2')}/waited{number}", "priority": priority} for number in range(3)
        ]
        settings = {**ADDON, **IN_ORDER, "CONCURRENT_REQUESTS": 2, "CONCURRENT_REQUESTS_PER_DOMAIN": 2}
        first = {"url": f"{site.url_of('127.0.0.2')}/first", "priority": 10}
        seen = crawl(first, *waiting, *scheduled, settings=settings)
    assert len(seen.pages) == 64
    pages = [hit.target for hit in site.hits if hit.target != "/robots.txt"]
    waited = [place for place, target in enumerate(pages) if target.startswith("/waited")]
    if is_first:
        assert waited[-1] < 55
    else:
        assert waited[0] >= 60 - 1  # one of the others may be on its way


@pytest.mark.parametrize("limit", [1, 8])
def test_requests_of_a_site_keep_their_order(limit: int, mode: str) -> None:
    with Site(Answer(RULES, before=lambda: time.sleep(1.3))) as site:
        seen = crawl(
            "data:,",
            mode=mode,
            settings={**ADDON, **IN_ORDER, "CONCURRENT_REQUESTS": limit},
            spider="tests.spiders.Watching",
            arguments={"then": [f"{site.url}/{number}" for number in range(40)]},
        )
    expected = sorted(range(40), key=lambda number: (-(number % 3), number))
    assert seen.notes["reached"] == [f"/{number}" for number in expected]


def test_a_process_that_may_open_few_files_downloads_fewer_files_at_a_time(mode: str) -> None:
    closing = {"Connection": "close"}
    robots = Answer(RULES, headers=closing, before=lambda: time.sleep(0.5))
    with Site(robots, {"/page": Answer(headers=closing)}, host="0.0.0.0") as site:
        urls = [f"{url}/page" for url in hosts_of(site, 300)]
        seen = crawl(*urls, mode=mode, spider="tests.spiders.WithFewFiles", arguments={"files": 150})
    assert sorted(seen.pages) == sorted(urls)
    (line,) = seen.log_lines("INFO: At most ", "robots.txt files are downloaded at a time")
    assert line.endswith(
        "At most 54 robots.txt files are downloaded at a time, and not 500 (NOROBOTS_CONCURRENT_FETCHES), "
        "because this process may open only 150 files (ulimit -n)"
    )
    assert "Too many open files" not in seen.log


@pytest.mark.parametrize("name", ["MinimalScheduler", "OtherScheduler"])
def test_any_scheduler_of_the_user_works(name: str, mode: str) -> None:
    seen = crawl_with_any_setup({**ADDON, "SCHEDULER": f"tests.components.{name}"}, mode)
    assert not seen.log_lines("WARNING", "CONCURRENT_REQUESTS")


@pytest.mark.skipif(
    not hasattr(Spider, "start"), reason="before, not all start requests are scheduled at once"
)
def test_a_persistent_scheduler_of_the_user_gets_every_request_back(mode: str, tmp_path: Path) -> None:
    queue = tmp_path / "queue.json"
    settings = {**ADDON, "SCHEDULER": "tests.components.QueueInFile", "QUEUE": str(queue)}
    with Site(Answer(RULES, before=lambda: time.sleep(1)), host="0.0.0.0") as site:
        urls = [f"{url}/{number}" for number in range(2) for url in hosts_of(site, 40)]
        closing: dict[str, Any] = {
            "spider": "tests.spiders.StopsAmidRobots",
            "arguments": {"robots": 30, "how": "close"},
        }
        first = crawl(*urls, settings=settings, mode=mode, **closing)
        assert len(first.pages) <= 16
        left = json.loads(queue.read_text())
        was_parked = left.index(urls[len(first.pages)])  # these come after those that were never taken
        assert left[was_parked:] + left[:was_parked] == urls[len(first.pages) :]
        site.answers["/robots.txt"] = Answer(RULES)
        second = crawl(settings=settings, mode=mode)
        assert json.loads(queue.read_text()) == []
    assert sorted(first.pages + second.pages) == sorted(urls)


@pytest.mark.skipif(not hasattr(signals, "scheduler_empty"), reason="only from Scrapy 2.13 on")
def test_a_lazy_start_keeps_the_order_of_scrapy(mode: str) -> None:
    def asked(settings: dict[str, Any]) -> list[str]:
        robots = Answer(RULES, before=lambda: time.sleep(0.2))
        links = {f"/{start}": page(*(f"/{start}-{i}" for i in range(3))) for start in range(5)}
        with Site(robots, links, host="0.0.0.0") as site:
            crawl(
                *(f"{url}/{start}" for start, url in enumerate(hosts_of(site, 5))),
                mode=mode,
                settings={**settings, "CONCURRENT_REQUESTS": 1},
                spider="tests.spiders.StartsLazily",
                arguments={"follow": True},
            )
        return [target for target in site.targets() if target != "/robots.txt"]

    ours = asked(ADDON)
    assert len(ours) == 5 * 4
    assert ours == asked({})
