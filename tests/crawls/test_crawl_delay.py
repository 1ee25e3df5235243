"""`NOROBOTS_CRAWL_DELAY_MAX` in real crawls, by the log of the server.

The tests check that no request comes too early. A request may come late, so no test depends on how busy the
machine is.
"""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from scrapy import signals

from tests.helpers.running.crawling import (
    ADDON,
    BY_HAND,
    IN_ORDER,
    MODES,
    PLAIN_QUEUE,
    Crawl,
    crawl,
    started,
    wait_for,
)
from tests.helpers.sites import Answer, Hit, Site, page

AWARE_QUEUE = "scrapy.pqueues.DownloaderAwarePriorityQueue"
PROTEGO = "scrapy.robotstxt.ProtegoRobotParser"
DELAY = 0.4
SLOW = f"User-agent: *\nDisallow: /back/\nCrawl-delay: {DELAY}\n"
OBEY = {**ADDON, "NOROBOTS_CRAWL_DELAY_MAX": 10}
LATER_SLOT = {"tests.helpers.components.middlewares.OneSlot": 543}


def shortest(seen: Crawl, *sites: Site, since: float = 0.0, without: str = "") -> float:
    """Return the shortest time between two requests to any of the sites, in seconds.

    If an answer takes longer than the delay, as when the machine stands still, the next request is sent, and
    the site may even see it first. So such requests are left out.
    """
    hits = sorted(
        (hit.time, seen.latencies.get(site.url + hit.target, 0.0))
        for site in sites
        for hit in site.hits
        if hit.time >= since and hit.target != without
    )
    times = [later - earlier for (earlier, a), (later, b) in pairwise(hits) if max(a, b) < DELAY]
    if len(hits) > 1 and not times:
        pytest.skip("the machine stood still: no answer came within the delay")
    return min(times)


@pytest.mark.parametrize("setup", [ADDON, BY_HAND], ids=["the add-on", "listed by hand"])
def test_requests_are_at_least_the_crawl_delay_apart(setup: dict[str, Any], mode: str) -> None:
    settings = {**setup, "NOROBOTS_CRAWL_DELAY_MAX": 10}
    with Site(SLOW) as site:
        seen = crawl(*(f"{site.url}/{i}" for i in range(5)), f"{site.url}/back/", settings=settings)
    assert len(seen.pages) == 5
    assert len(seen.drops) == 1
    assert shortest(seen, site) >= DELAY


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"DOWNLOAD_DELAY": 0.1}, id="a shorter DOWNLOAD_DELAY"),
        pytest.param({"DOWNLOAD_DELAY": 0.5}, id="a longer DOWNLOAD_DELAY, of which Scrapy may choose half"),
        pytest.param({"DOWNLOAD_DELAY": 0.5, "DOWNLOAD_DELAY_JITTER": 1}, id="one that Scrapy may leave out"),
        pytest.param({"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.1}, id="AutoThrottle"),
        pytest.param(
            {"DOWNLOAD_SLOTS": {"127.0.0.1": {"concurrency": 1, "delay": 0.1}}}, id="DOWNLOAD_SLOTS"
        ),
        pytest.param({"CONCURRENT_REQUESTS": 1}, id="one request at a time"),
        pytest.param({"NOROBOTS_ALSO_OBEY": [PROTEGO]}, id="a further parser"),
        pytest.param({"ROBOTSTXT_PARSER": PROTEGO}, id="another parser"),
        pytest.param({"NOROBOTS_DRY_RUN": True}, id="a dry run"),
        pytest.param({"DOWNLOADER_MIDDLEWARES": LATER_SLOT}, id="a slot that is set later"),
    ],
)
def test_crawl_delay_is_a_lower_bound_of_other_delays(settings: dict[str, Any]) -> None:
    with Site(SLOW) as site:
        seen = crawl(*(f"{site.url}/{i}" for i in range(4)), settings={**OBEY, **settings})
    assert len(seen.pages) == 4
    assert shortest(seen, site) >= DELAY


def test_a_slot_that_is_set_later_keeps_the_delay_of_an_expired_file() -> None:
    settings = {**OBEY, "DOWNLOADER_MIDDLEWARES": LATER_SLOT, "NOROBOTS_TTL": 0, "NOROBOTS_TTL_MIN": 0}
    with Site(SLOW, {"/0": page("/1", "/2", "/3")}) as site:
        seen = crawl(f"{site.url}/0", arguments={"follow": True}, settings=settings)
    assert len(seen.pages) == 4
    # The file is loaded again in the slot of its host, which is another one.
    assert shortest(seen, site, without="/robots.txt") >= DELAY


def test_crawl_delay_counts_from_the_last_response(mode: str) -> None:
    # Far apart: if a busy machine makes a response take longer than the delay, the next request is sent.
    seconds, delay = 0.4, 2.0
    answer = Answer(before=lambda: time.sleep(seconds))
    robots = f"User-agent: *\nCrawl-delay: {delay}\n"
    with Site(robots, {"/1": answer, "/2": answer}) as site:
        crawl(f"{site.url}/1", f"{site.url}/2", settings=OBEY)
    first, one, two = [hit.time for hit in site.hits]
    assert one - first >= delay
    assert two - one >= seconds + delay


def test_crawl_delay_survives_the_collection_of_its_slot() -> None:
    answers = {f"/{i}": page(f"/{i + 1}", "/back/") for i in range(4)}
    with Site(SLOW, answers) as site:
        seen = crawl(f"{site.url}/0", spider="tests.helpers.spiders.noting.CollectsSlots", settings=OBEY)
    assert len(seen.pages) == 5
    assert seen.notes["collected"] > 0
    assert shortest(seen, site) >= DELAY


@pytest.mark.parametrize("first", [0, 1])
def test_origins_that_share_a_slot_keep_the_largest_delay(first: int) -> None:
    with Site(SLOW) as slow, Site(SLOW.replace(str(DELAY), "0.1")) as fast:
        sites = [slow, fast]
        start = sites[first]
        start.answers["/"] = page(*(f"{site.url}/{i}" for site in sites for i in range(3)))
        seen = crawl(
            f"{start.url}/",
            spider="tests.helpers.spiders.pages.Pages",
            arguments={"follow": True},
            settings={**OBEY, "CONCURRENT_REQUESTS_PER_DOMAIN": 1},  # until the slow robots.txt is there
        )
    assert len(seen.pages) == 7
    assert shortest(seen, *sites, since=slow.robots_hits()[0].time) >= DELAY


@pytest.mark.parametrize("meta", [{}, {"dont_obey_robotstxt": True}])
def test_requests_that_are_redirected_from_another_host_keep_the_delay(meta: dict[str, Any]) -> None:
    with Site(SLOW, host="127.0.0.2") as slow, Site() as first:

        def redirect(hit: Hit) -> Answer:
            wait_for(lambda: bool(slow.pages()))  # until the crawl knows the delay
            return Answer(status=302, headers={"Location": slow.url + hit.target})

        paths = [f"/{i}" for i in range(3)]
        first.answers |= dict.fromkeys(paths, redirect)
        redirected = [{"url": first.url + path, "meta": meta} for path in paths]
        others = [f"{slow.url}{path}/" for path in paths]
        settings = {**OBEY, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
        seen = crawl(*others, *redirected, settings=settings)
    assert len(seen.pages) == 6
    assert shortest(seen, slow) >= DELAY


def test_the_delay_changes_when_the_file_changes() -> None:
    robots = iter(["User-agent: *\n", SLOW])
    with Site(lambda _: Answer(next(robots, SLOW))) as site:
        site.answers["/0"] = page("/1", "/2", "/3")
        settings = {**OBEY, "NOROBOTS_TTL": 0, "NOROBOTS_TTL_MIN": 0}
        seen = crawl(f"{site.url}/0", arguments={"follow": True}, settings=settings)
        since = site.robots_hits()[1].time
    assert len(seen.pages) == 4
    assert shortest(seen, site, since=since) >= DELAY


def test_a_request_that_waits_while_the_file_changes_does_not_undo_the_delay() -> None:
    robots = iter(["User-agent: *\n", SLOW])
    settings = {**OBEY, "DOWNLOAD_DELAY": 0.1, "NOROBOTS_TTL": 0.5, "NOROBOTS_TTL_MIN": 0}
    with Site(lambda _: Answer(next(robots, SLOW))) as site, Site() as other:  # in one slot
        urls = [f"{one.url}/{number}" for number in range(8) for one in (other, site)]
        seen = crawl(*urls, settings=settings)
        changed = site.robots_hits()[1].time
    assert len(seen.pages) == 16
    since = next(hit.time for hit in site.hits if hit.time > changed)
    assert shortest(seen, site, since=since) >= DELAY


def test_forbidden_requests_and_those_to_a_site_without_a_delay_do_not_wait() -> None:
    settings = {**ADDON, "NOROBOTS_CRAWL_DELAY_MAX": 3600, "CLOSESPIDER_TIMEOUT": 10}
    with Site(SLOW.replace(str(DELAY), "3600")) as site, Site("User-agent: *\n", host="127.0.0.2") as other:
        others = (f"{other.url}/{n}" for n in range(20))
        seen = crawl(f"{site.url}/back/1", f"{site.url}/back/2", *others, settings=settings)
    assert [drop.type for drop in seen.drops] == ["RobotsForbidden"] * 2
    assert seen.stats["finish_reason"] == "finished"


@pytest.mark.parametrize("queue", [PLAIN_QUEUE, AWARE_QUEUE])
def test_pages_that_wait_for_a_crawl_delay_stall_no_others(queue: str) -> None:
    """The first request is forbidden, so only the download of robots.txt has used the slot."""
    delay = {"NOROBOTS_CRAWL_DELAY_MAX": 3600, "CONCURRENT_REQUESTS": 2}
    settings = {**ADDON, **delay, "SCHEDULER_PRIORITY_QUEUE": queue}
    with Site(SLOW.replace(str(DELAY), "3600")) as slow, Site(host="127.0.0.2") as other:
        # The last comes first.
        links = [f"{other.url}/{i}" for i in range(1, 20)] + [f"{slow.url}/{i}" for i in range(5)]
        other.answers["/links"] = page(*links)
        with started(
            f"{slow.url}/back/",
            settings=settings,
            spider="tests.helpers.spiders.following.ThenAnyway",
            arguments={"then": f"{other.url}/links", "follow": True},
        ):
            wait_for(lambda: len(other.pages()) >= 20)
        assert slow.targets() == ["/robots.txt"]


def test_a_new_request_goes_although_as_many_as_may_wait_do_so_for_a_crawl_delay() -> None:
    settings = {**ADDON, "NOROBOTS_CRAWL_DELAY_MAX": 3600, "SCHEDULER_PRIORITY_QUEUE": AWARE_QUEUE}
    with Site(SLOW.replace(str(DELAY), "3600")) as slow, Site(host="127.0.0.2") as other:
        other.answers["/links"] = page(f"{other.url}/0", *(f"{slow.url}/{i}" for i in range(150)))
        for number in range(10):
            other.answers[f"/{number}"] = page(f"/{number + 1}")
        with started(
            f"{slow.url}/back/",
            settings=settings,
            spider="tests.helpers.spiders.following.ThenAnyway",
            arguments={"then": f"{other.url}/links", "follow": True},
        ):
            wait_for(lambda: len(other.pages()) >= 12)
        assert slow.targets() == ["/robots.txt"]


def test_pages_of_a_site_whose_delay_is_over_take_one_place(tmp_path: Path) -> None:
    """The rules come from the store, so one page can go at once. The next would keep a place for a day.

    On a machine that has just started, the first page goes at once too.
    """
    done, waited = threading.Event(), []
    store = f"sqlite:///{tmp_path}/robots.db"
    day = 86_400
    settings = {**ADDON, **IN_ORDER, "NOROBOTS_CRAWL_DELAY_MAX": day, "NOROBOTS_STORE": store}
    with Site(SLOW.replace(str(DELAY), str(day))) as slow, Site(host="127.0.0.2") as other:
        crawl(f"{slow.url}/back/", settings=settings)
        other.answers["/then"] = Answer(before=lambda: time.sleep(1))
        other.answers["/1"] = Answer(before=lambda: waited.append(done.wait(10)))
        other.answers["/4"] = Answer(before=done.set)
        # Every third request has the highest priority.
        urls = [f"{slow.url if number % 3 == 2 else other.url}/{number}" for number in range(15)]
        with started(
            f"{slow.url}/back/",
            f"{other.url}/then",
            settings={**settings, "CONCURRENT_REQUESTS": 2},
            spider="tests.helpers.spiders.scheduling.Watching",
            arguments={"then": urls},
        ):
            wait_for(lambda: len(other.pages()) >= 11)
        assert slow.targets() == ["/robots.txt", "/2"]
        assert waited == [True]


def test_among_requests_that_wait_for_a_crawl_delay_the_highest_priority_goes_first() -> None:
    """Also if its robots.txt arrives when others wait already."""
    with Site(SLOW, {"/": page(*(f"/{number}" for number in range(8)))}) as site:
        late_robots = Answer("", before=lambda: wait_for(lambda: len(site.pages()) >= 5))
        with Site(late_robots) as late:
            first: dict[str, Any] = {"url": f"{late.url}/", "priority": 5}
            seen = crawl(f"{site.url}/", first, settings=OBEY, arguments={"follow": True})
            assert len(seen.pages) == 10
            assert late.hits[-1].time < site.hits[-1].time


def test_crawl_delay_is_ignored_by_default() -> None:
    # With a delay of an hour, the crawl would not end.
    with Site("User-agent: *\nCrawl-delay: 3600\n") as site:
        seen = crawl(f"{site.url}/", f"{site.url}/1")
    assert len(seen.pages) == 2
    assert not [name for name in seen.stats if "crawl_delay" in name]
    assert not seen.log_lines("rawl-delay")


def test_a_long_delay_is_limited_and_logged() -> None:
    settings = {**ADDON, "NOROBOTS_CRAWL_DELAY_MAX": 0.2}
    with Site(SLOW.replace(str(DELAY), "3600")) as slow, Site() as other:
        seen = crawl(f"{slow.url}/", f"{slow.url}/1", f"{other.url}/", settings=settings)
    (line,) = seen.log_lines("asks for a Crawl-delay")
    assert line.endswith(
        f"WARNING: {slow.url}/robots.txt asks for a Crawl-delay of 3600 s; "
        "NOROBOTS_CRAWL_DELAY_MAX limits it to 0.2 s"
    )
    names = ("kept", "shortened", "longest")
    assert [seen.stats[f"norobots/crawl_delay/{name}"] for name in names] == [1, 1, 0.2]


def test_a_large_file_is_read_in_a_thread() -> None:
    rules = "".join(f"Disallow: /attic/{i}\n" for i in range(5000))
    with Site(SLOW + rules) as site:
        seen = crawl(
            *(f"{site.url}/{i}" for i in range(3)),
            settings=OBEY,
            spider="tests.helpers.spiders.noting.NotesThreadsOfTheDelay",
        )
    assert shortest(seen, site) >= DELAY
    assert seen.notes["threads"] == ["norobots-reader_0"]


def test_rules_from_a_store_have_their_delay(tmp_path: Path) -> None:
    settings = {**OBEY, "NOROBOTS_STORE": f"sqlite:///{tmp_path / 'robots.sqlite'}"}
    with Site(SLOW) as site:
        for _ in range(2):
            site.hits.clear()
            seen = crawl(*(f"{site.url}/{i}" for i in range(3)), settings=settings)
            assert shortest(seen, site) >= DELAY
    assert site.robots_hits() == []


def test_a_downloader_without_slots_is_a_warning() -> None:
    settings = {
        **OBEY,
        "DOWNLOADER": "tests.helpers.components.downloaders.OtherDownloader",
        "SCHEDULER_PRIORITY_QUEUE": PLAIN_QUEUE,
    }
    with Site(SLOW) as site:
        seen = crawl(f"{site.url}/", f"{site.url}/back/", settings=settings)
    assert site.pages() == ["/"]
    (line,) = seen.log_lines("WARNING: NOROBOTS_CRAWL_DELAY_MAX has no effect, so no Crawl-delay is kept: ")
    assert line.endswith("DOWNLOADER is not derived from scrapy.core.downloader.Downloader")


@pytest.mark.skipif(not hasattr(signals, "robots_parsed"), reason="this version of Scrapy has no such signal")
@pytest.mark.parametrize(
    ("settings", "name", "delay"),
    [
        ({"NOROBOTS_ALSO_OBEY": [PROTEGO]}, "AllRules", DELAY),
        ({"NOROBOTS_CRAWL_DELAY_MAX": 0.1}, "AllRules", DELAY),
        ({"ROBOTSTXT_PARSER": PROTEGO}, "ProtegoRobotParser", DELAY),
        ({"NOROBOTS_ALSO_OBEY": ["tests.helpers.components.parsers.BareParser"]}, "AllRules", DELAY),
        ({}, "StrictRobotParser", DELAY),
    ],
)
def test_robots_parsed_sends_all_readings_as_one_parser(
    settings: dict[str, Any], name: str, delay: float | None
) -> None:
    with Site(SLOW) as site:
        seen = crawl(
            f"{site.url}/",
            settings={**ADDON, **settings},
            spider="tests.helpers.spiders.noting.Listening",
            mode=MODES[0],
        )
    assert seen.notes == {"parsed": [[name, f"{site.url}/", False]], "delays": [delay]}
