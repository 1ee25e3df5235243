"""Requests that wait for robots.txt stall no other host, in crawls.

Every crawl of the tests checks at its end that nothing is left in the scheduler or the downloader: see
`tests.helpers.running.crawler`.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.running.crawling import (
    ADDON,
    CAN_HAVE_NO_LIMIT,
    IN_ORDER,
    MODES,
    PLAIN_QUEUE,
    QUEUE,
    Crawl,
    crawl,
    hosts_of,
    run_crawl,
)
from tests.helpers.sites import Answer, Site, page

RULES = "User-agent: *\nDisallow: /back/\n"
PATIENCE = 10.0
SLOW_PAGES, HEALTHY_PAGES = 20, 20


def crawl_beside_a_slow_host(
    mode: str = MODES[0], forbidden: int = 0, **settings: Any
) -> tuple[Crawl, list[str]]:
    """Crawl a host whose robots.txt comes only when all pages of a healthy one have, and that one.

    All requests are on the scheduler at once, the slow host's first, and of these its `forbidden` ones.
    Returns the crawl and which host was asked for a page, in order.
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
        urls = [f"{slow_site.url}/back/{number}" for number in range(forbidden)]
        urls += [f"{slow_site.url}{target}" for target in slow] + [f"{site.url}{target}" for target in fast]
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
            spider="scheduling.Watching",
            arguments={"then": urls},
        )
        assert len(site.robots_hits()) == len(slow_site.robots_hits()) == 1
    assert healthy_done.is_set()
    assert len(seen.pages) == 1 + SLOW_PAGES + HEALTHY_PAGES
    return seen, log


def test_a_slow_host_does_not_stall_others(mode: str) -> None:
    _, log = crawl_beside_a_slow_host(mode)
    assert log == ["healthy"] * HEALTHY_PAGES + ["slow"] * SLOW_PAGES


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
        pytest.param({"CONCURRENT_REQUESTS": 0}, id="no limit", marks=CAN_HAVE_NO_LIMIT),
    ],
)
def test_a_slow_host_does_not_stall_others_with_settings(settings: dict[str, Any]) -> None:
    _, log = crawl_beside_a_slow_host(**settings)
    assert log[:HEALTHY_PAGES] == ["healthy"] * HEALTHY_PAGES


@CAN_HAVE_NO_LIMIT
def test_without_a_limit_the_pages_of_a_host_do_not_stall_others() -> None:
    done = threading.Event()
    waited: list[bool] = []
    first = Answer(before=lambda: waited.append(done.wait(PATIENCE)))
    with (
        Site(RULES, {"/0": first}) as slow,
        Site(RULES, {"/": Answer(before=done.set)}, host="127.0.0.2") as other,
    ):
        settings = {**ADDON, **IN_ORDER, "CONCURRENT_REQUESTS": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
        seen = crawl(*(f"{slow.url}/{number}" for number in range(8)), f"{other.url}/", settings=settings)
    assert len(seen.pages) == 9
    assert waited == [True]


def test_many_requests_of_a_slow_host_do_not_stall_others_and_keep_their_order() -> None:
    seen, log = crawl_beside_a_slow_host(forbidden=800, **IN_ORDER)
    assert log == ["healthy"] * HEALTHY_PAGES + ["slow"] * SLOW_PAGES
    assert seen.notes["most parked"] > 100  # how many depends on the speed of the machine
    assert seen.notes["most active"] <= 4 + 2  # two downloads of robots.txt take no place
    # The spider gives the requests one of three priorities.
    dropped = [int(drop.url.rpartition("/")[2]) for drop in seen.drops]
    assert dropped == sorted(range(800), key=lambda number: (-(number % 3), number))


def test_requests_beyond_the_share_of_a_site_stay_in_the_job(tmp_path: Path) -> None:
    settings = {**ADDON, **IN_ORDER, "JOBDIR": str(tmp_path)}
    is_over = threading.Event()
    with Site(Answer(RULES, before=is_over.wait)) as site:
        try:
            first = crawl(
                "data:,",
                settings={**settings, "CLOSESPIDER_TIMEOUT": 5},
                spider="scheduling.Watching",
                arguments={"then": [f"{site.url}/back/{n}" for n in range(500)], "most_waiting": 300},
            )
        finally:
            is_over.set()
        assert first.stats["finish_reason"] == "closespider_timeout"
        second = crawl("data:,", settings=settings)
    assert len({drop.url for drop in second.drops}) == len(second.drops) == 500


@pytest.mark.parametrize(("places", "most"), [(16, range(90, 130)), (1, range(3))])
def test_a_line_does_not_grow_while_its_requests_go_on(places: int, most: range) -> None:
    """With one place, Scrapy takes no request while another one waits."""
    settings = {**ADDON, "CONCURRENT_REQUESTS": places, "DOWNLOAD_DELAY": 0.01, "CLOSESPIDER_PAGECOUNT": 60}
    pages = {f"/{number}": page(*(f"/{number}/{other}" for other in range(9))) for number in range(500)}
    with Site(RULES, pages) as site:
        arguments = {"then": [site.url + target for target in pages], "follow": True}
        seen = crawl(f"{site.url}/", settings=settings, spider="scheduling.Watching", arguments=arguments)
    assert seen.notes["most parked"] in most
    assert len(seen.pages) > 50


def test_no_more_requests_of_all_sites_wait_than_may() -> None:
    """Ten may wait, and 16 are sent at a time. Those of many sites wait for a delay."""
    settings = {**ADDON, **IN_ORDER, "DOWNLOAD_DELAY": 0.3}
    with Site(RULES, host="0.0.0.0") as site:
        urls = [f"{host}/{number}" for number in range(2) for host in hosts_of(site, 40)]
        arguments = {"then": urls, "most_waiting": 10}
        seen = crawl("data:,", settings=settings, spider="scheduling.Watching", arguments=arguments)
    assert len(seen.pages) == 1 + len(urls)
    assert 5 < seen.notes["most parked"] <= 26


def test_a_lazy_start_adds_no_more_requests_while_a_line_is_long(mode: str) -> None:
    """Scrapy's documentation proposes such a start, to keep the scheduler small."""
    settings = {**ADDON, "CONCURRENT_REQUESTS": 1, "DOWNLOAD_DELAY": 90, "CLOSESPIDER_TIMEOUT": 2}
    with Site(RULES) as site:
        urls = [f"{site.url}/{number}" for number in range(400)]
        # At the end, Scrapy logs a traceback of the start, which still waits.
        done = run_crawl(*urls, settings=settings, spider="scheduling.StartsLazily")
    assert json.loads(done.stdout)["stats"]["scheduler/enqueued"] < 150


def test_dead_hosts_leave_places_for_others_with_any_download_handler(mode: str) -> None:
    done = threading.Event()
    waited: list[bool] = []
    dead = Answer(RULES, before=lambda: waited.append(done.wait(PATIENCE)))
    answers = {"/page": Answer(before=done.set), "/robots.txt": dead, "127.0.0.1/robots.txt": Answer(RULES)}
    with Site(None, answers, host="0.0.0.0") as site:
        urls = [f"{site.url_of(f'127.0.0.{host}')}/" for host in range(2, 12)]
        urls.append(f"{site.url_of('127.0.0.1')}/page")
        seen = crawl(*urls, settings={**ADDON, "CONCURRENT_REQUESTS": 2, "RETRY_ENABLED": False})
    assert waited == [True] * 10
    assert len(seen.pages) == 11
