"""`RobotsDownloader` in crawls: requests that wait for a robots.txt stall no other host.

Every crawl of the tests checks at its end that nothing is left in the downloader: see `tests.crawler`.
"""

from __future__ import annotations

import inspect
import threading
import time
from typing import Any

import pytest
from scrapy.core.downloader import Downloader
from scrapy.core.downloader.handlers import DownloadHandlers
from scrapy.settings import default_settings

from tests.crawling import ADDON, MODES, Crawl, crawl
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
        pytest.param(
            {"SCHEDULER_PRIORITY_QUEUE": PLAIN_QUEUE, "NOROBOTS_HELD_PER_ORIGIN": SLOW_PAGES},
            id="plain queue",
        ),
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
    settings: dict[str, Any] = {"CONCURRENT_REQUESTS": 4, "NOROBOTS_HELD_PER_ORIGIN": 3}
    seen, _ = crawl_beside_a_slow_host(**settings)
    # The limit, and for either host those held for free and the download of its robots.txt.
    assert seen.notes["most active"] <= 4 + 2 * (3 + 1)
    seen, _ = crawl_beside_a_slow_host(**settings, NOROBOTS_HELD_MAX=1)
    assert seen.notes["most active"] <= 4 + 1 + 2 * 1


def test_with_limits_of_zero_held_requests_take_places() -> None:
    robots = Answer(RULES, before=lambda: threading.Event().wait(0.3))
    nothing_free = {"NOROBOTS_HELD_PER_ORIGIN": 0, "NOROBOTS_CONCURRENT_FETCHES": 0}
    with Site(robots) as site:
        seen = crawl(
            "data:,",
            settings={**ADDON, "CONCURRENT_REQUESTS": 4, **nothing_free},
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
    # Each download has one held request. One or two more may start before the engine asks for room.
    assert seen.notes["most active"] <= 2 * (4 + 2 + 2)


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

    ours, plain = order(ADDON), order({})
    # Held requests are overtaken by some that need not wait, but do not come last, 36 places late.
    assert max(place - plain.index(target) for place, target in enumerate(ours)) <= 28


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
NOT_OURS = "DOWNLOADER is not scrapy_norobots.RobotsDownloader"


def crawl_with_any_downloader(settings: dict[str, Any], mode: str) -> Crawl:
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
        pytest.param(BY_HAND, NOT_OURS, id="listed by hand"),
        pytest.param({**ADDON, "DOWNLOADER": "scrapy.core.downloader.Downloader"}, NOT_OURS, id="Scrapy's"),
        pytest.param(
            {**ADDON, "DOWNLOADER": "tests.spiders.OtherDownloader", "SCHEDULER_PRIORITY_QUEUE": PLAIN_QUEUE},
            NOT_OURS,
            id="the user's",
        ),
        pytest.param(
            {
                **ADDON,
                "DOWNLOADER": "tests.spiders.DownloaderWithoutSlots",
                "SCHEDULER_PRIORITY_QUEUE": PLAIN_QUEUE,
            },
            "has no downloader.slots, no downloader._get_slot",
            id="of a Scrapy without download slots",
            marks=pytest.mark.skipif(
                not hasattr(DownloadHandlers, "download_request_async"),
                reason="its handlers have another API",
            ),
        ),
    ],
)
def test_obeys_with_any_downloader(settings: dict[str, Any], problem: str, mode: str) -> None:
    seen = crawl_with_any_downloader(settings, mode)
    (line,) = seen.log_lines("WARNING: Requests that wait for robots.txt count against CONCURRENT_REQUESTS")
    assert line.endswith(problem)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({**BY_HAND, "DOWNLOADER": "scrapy_norobots.RobotsDownloader"}, id="listed by hand"),
        pytest.param({**ADDON, "DOWNLOADER": "tests.spiders.DerivedDownloader"}, id="derived from it"),
    ],
)
def test_needs_no_warning_with_its_downloader(settings: dict[str, Any]) -> None:
    seen = crawl_with_any_downloader(settings, MODES[0])
    assert not seen.log_lines("WARNING", "CONCURRENT_REQUESTS")


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


def test_a_held_request_becomes_free_when_another_origin_continues() -> None:
    done = threading.Event()
    waited: list[bool] = []

    def robots(hit: Hit) -> Answer:
        host = int(hit.host.rpartition(".")[2])
        if host in (1, 2):
            return Answer(RULES, before=lambda: time.sleep(0.3))
        return Answer(RULES, before=lambda: waited.append(done.wait(PATIENCE)) if host in (3, 4) else None)

    with Site(None, {"/robots.txt": robots, "127.0.0.5/": Answer(before=done.set)}, host="0.0.0.0") as site:
        urls = [f"{site.url_of(f'127.0.0.{host}')}/" for host in range(1, 6)]
        settings = {**ADDON, **IN_ORDER, "CONCURRENT_REQUESTS": 2, "NOROBOTS_HELD_MAX": 2}
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
    # One may come before the place of another is free again.
    assert seen.stats["looked at"] <= 2 * 2


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
        "NOROBOTS_HELD_PER_ORIGIN": 12,
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


def test_a_delay_after_robots_txt_takes_no_place_for_a_request_that_comes_later() -> None:
    """The first request is forbidden, so only the download of robots.txt has used the slot."""
    slow, fast = "127.0.0.1", "127.0.0.2"
    settings = {"CONCURRENT_REQUESTS": 1, "DOWNLOAD_SLOTS": {slow: {"delay": 5}}}
    with Site(RULES, host="0.0.0.0") as site:
        site.answers["/links"] = page(f"{site.url_of(slow)}/late", f"{site.url_of(fast)}/late")
        seen = crawl(
            f"{site.url_of(slow)}/back/",
            settings={**ADDON, **settings, "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue"},
            spider="tests.spiders.ThenAnyway",
            arguments={"then": f"{site.url_of(fast)}/links", "follow": True},
        )
    assert len(seen.drops) == 1
    assert [hit.host for hit in site.hits if hit.target == "/late"] == [fast, slow]


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
    ("hosts", "limit", "delay", "latest"), [(1, 8, 0.02, 30), (2, 8, 0.02, 50), (3, 16, 0.05, 80)]
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
