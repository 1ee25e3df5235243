"""`NOROBOTS_CRAWL_DELAY_MAX`, in real crawls, by the log of the server.

A request is never sent too early; that it may come late is no matter, so no test depends on how busy the
machine is.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from scrapy import signals

from tests.crawling import ADDON, MODES, crawl, started, with_report
from tests.sites import Answer, Site, page

BY_HAND = {
    "ROBOTSTXT_OBEY": True,
    "DOWNLOADER_MIDDLEWARES": {
        "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
        "scrapy_norobots.NoRobotsMiddleware": 100,
    },
}
PLAIN_QUEUE = "scrapy.pqueues.ScrapyPriorityQueue"
PROTEGO = "scrapy.robotstxt.ProtegoRobotParser"
DELAY = 0.4
SLOW = f"User-agent: *\nDisallow: /back/\nCrawl-delay: {DELAY}\n"
OBEY = {**ADDON, "NOROBOTS_CRAWL_DELAY_MAX": 10}


def shortest(*sites: Site) -> float:
    """The shortest time between two requests to one of the sites, in seconds."""
    times = sorted(hit.time for site in sites for hit in site.hits)
    return min(later - earlier for earlier, later in pairwise(times))


@pytest.mark.parametrize("setup", [ADDON, BY_HAND], ids=["the add-on", "listed by hand"])
def test_requests_are_as_far_apart_as_the_file_asks(setup: dict[str, Any], mode: str) -> None:
    settings = {**setup, "NOROBOTS_CRAWL_DELAY_MAX": 10}
    with Site(SLOW) as site:
        seen = crawl(
            *(f"{site.url}/{i}" for i in range(5)), f"{site.url}/back/", mode=mode, settings=settings
        )
    assert len(seen.pages) == 5
    assert len(seen.drops) == 1
    assert shortest(site) >= DELAY


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"DOWNLOAD_DELAY": 0.1}, id="a shorter DOWNLOAD_DELAY"),
        pytest.param({"DOWNLOAD_DELAY": 0.5}, id="a longer one, of which Scrapy draws half"),
        pytest.param({"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.1}, id="AutoThrottle"),
        pytest.param(
            {"DOWNLOAD_SLOTS": {"127.0.0.1": {"concurrency": 1, "delay": 0.1}}}, id="DOWNLOAD_SLOTS"
        ),
        pytest.param({"CONCURRENT_REQUESTS": 1}, id="one request at a time"),
        pytest.param({"NOROBOTS_ALSO_OBEY": [PROTEGO]}, id="another reading too"),
        pytest.param({"ROBOTSTXT_PARSER": PROTEGO}, id="another reading instead"),
        pytest.param({"NOROBOTS_DRY_RUN": True}, id="a dry run"),
        pytest.param({"DOWNLOADER_MIDDLEWARES": {"tests.components.OneSlot": 543}}, id="a slot set later"),
    ],
)
def test_it_is_a_lower_bound_whatever_else_sets_a_delay(settings: dict[str, Any]) -> None:
    with Site(SLOW) as site:
        seen = crawl(*(f"{site.url}/{i}" for i in range(4)), settings={**OBEY, **settings})
    assert len(seen.pages) == 4
    assert shortest(site) >= DELAY


def test_it_is_counted_from_the_response_before(mode: str) -> None:
    seconds = 0.3
    answer = Answer(before=lambda: time.sleep(seconds))
    with Site(SLOW, {f"/{i}": answer for i in range(3)}) as site:
        crawl(*(f"{site.url}/{i}" for i in range(3)), mode=mode, settings=OBEY)
    first, *pages = [hit.time for hit in site.hits]
    assert pages[0] - first >= DELAY
    assert min(later - earlier for earlier, later in pairwise(pages)) >= seconds + DELAY


def test_it_holds_for_pages_that_are_found_later_and_over_the_collection_of_slots() -> None:
    answers = {f"/{i}": page(f"/{i + 1}", "/back/") for i in range(4)}
    with Site(SLOW, answers) as site:
        seen = crawl(f"{site.url}/0", spider="tests.spiders.CollectsSlots", settings=OBEY)
    assert len(seen.pages) == 5
    assert seen.notes["collected"] > 0
    assert shortest(site) >= DELAY


@pytest.mark.parametrize("first", [0, 1])
def test_origins_that_share_a_slot_keep_the_largest(first: int) -> None:
    with Site(SLOW) as slow, Site(SLOW.replace(str(DELAY), "0.1")) as fast:
        sites = [slow, fast]
        start = sites[first]
        start.answers["/"] = page(*(f"{site.url}/{i}" for site in sites for i in range(3)))
        seen = crawl(f"{start.url}/", spider="tests.spiders.Pages", arguments={"follow": True}, settings=OBEY)
        since = slow.robots_hits()[0].time
    assert len(seen.pages) == 7
    times = sorted(hit.time for site in sites for hit in site.hits if hit.time >= since)
    assert min(later - earlier for earlier, later in pairwise(times)) >= DELAY


def test_a_file_that_changes_changes_the_delay() -> None:
    robots = iter(["User-agent: *\n", SLOW])
    with Site(lambda _: Answer(next(robots, SLOW))) as site:
        site.answers["/0"] = page("/1", "/2", "/3")
        settings = {**OBEY, "NOROBOTS_TTL": 0, "NOROBOTS_TTL_MIN": 0}
        seen = crawl(f"{site.url}/0", arguments={"follow": True}, settings=settings)
        since = site.robots_hits()[1].time
    assert len(seen.pages) == 4
    times = [hit.time for hit in site.hits if hit.time >= since]
    assert min(later - earlier for earlier, later in pairwise(times)) >= DELAY


def test_other_hosts_are_crawled_while_a_site_keeps_its_delay() -> None:
    # With the delay of an hour, two pages of the first host would stop the crawl if they took places.
    settings = {**ADDON, "NOROBOTS_CRAWL_DELAY_MAX": 3600, "CONCURRENT_REQUESTS": 2}
    with Site("User-agent: *\nCrawl-delay: 3600\n") as slow, Site(host="127.0.0.2") as other:
        urls = [f"{slow.url}/{i}" for i in range(5)] + [f"{other.url}/{i}" for i in range(20)]
        with started(*urls, settings=settings):
            while len(other.pages()) < 20:
                time.sleep(0.05)
        assert slow.targets() == ["/robots.txt"]


def test_pages_wait_in_line_also_if_the_first_request_of_a_site_is_forbidden() -> None:
    settings = {
        **ADDON,
        "NOROBOTS_CRAWL_DELAY_MAX": 3600,
        "CONCURRENT_REQUESTS": 2,
        "SCHEDULER_PRIORITY_QUEUE": PLAIN_QUEUE,
    }
    with Site(SLOW.replace(str(DELAY), "3600")) as slow, Site(host="127.0.0.2") as other:

        def wait_for_robots() -> None:
            while not slow.robots_hits():
                time.sleep(0.05)
            time.sleep(0.5)  # until it is in memory, most probably

        # The last comes first.
        links = [f"{other.url}/{i}" for i in range(1, 20)] + [f"{slow.url}/{i}" for i in range(5)]
        other.answers["/0"] = replace(page(*links), before=wait_for_robots)
        urls = [f"{slow.url}/back/", f"{other.url}/0"]
        with started(*urls, settings=settings, arguments={"follow": True}):
            while len(other.pages()) < 20:
                time.sleep(0.05)
        assert slow.targets() == ["/robots.txt"]


def test_it_is_off_by_default() -> None:
    # An hour's delay: the crawl would not end.
    with Site("User-agent: *\nCrawl-delay: 3600\n") as site:
        seen = crawl(f"{site.url}/", f"{site.url}/1")
    assert len(seen.pages) == 2
    assert not [name for name in seen.stats if "crawl_delay" in name]
    assert not seen.log_lines("rawl-delay")


def test_a_delay_is_limited_and_told_with_a_report(tmp_path: Path) -> None:
    report = tmp_path / "robots.json"
    settings = with_report(report, tmp_path / "robots.html", NOROBOTS_CRAWL_DELAY_MAX=0.2)
    with Site(SLOW.replace(str(DELAY), "3600")) as slow, Site() as other:
        seen = crawl(f"{slow.url}/", f"{slow.url}/1", f"{other.url}/", settings=settings)
    (line,) = seen.log_lines("asks for a Crawl-delay")
    assert line.endswith(
        f"WARNING: {slow.url}/robots.txt asks for a Crawl-delay of 3600 s; "
        "NOROBOTS_CRAWL_DELAY_MAX limits it to 0.2 s"
    )
    assert seen.log_lines(f"Crawl-delay kept at 1 origin; the longest is 0.2 s, {slow.url}")
    names = ("kept", "shortened", "longest")
    assert [seen.stats[f"norobots/crawl_delay/{name}"] for name in names] == [1, 1, 0.2]
    facts = json.loads(report.read_text())
    assert facts["crawl_delays"] == {"files": 1, "longest": {"origin": slow.url, "seconds": 0.2}}
    assert {row["origin"]: row["crawl_delay"] for row in facts["rows"]} == {slow.url: 0.2, other.url: 0.0}
    assert "The longest is 0.2 s" in (tmp_path / "robots.html").read_text()


@pytest.mark.parametrize("nonsense", ["soon", "-3", "nan", "inf"])
def test_nonsense_is_ignored_and_told_once(nonsense: str) -> None:
    with Site(SLOW.replace(str(DELAY), nonsense)) as site:
        seen = crawl(f"{site.url}/", f"{site.url}/1", settings=OBEY)
    assert len(seen.pages) == 2
    (line,) = seen.log_lines("Crawl-delay")
    assert line.endswith(
        f"WARNING: {site.url}/robots.txt has an invalid Crawl-delay, {nonsense!r}, which is ignored"
    )
    assert seen.stats["norobots/crawl_delay/invalid"] == 1
    assert "norobots/crawl_delay/kept" not in seen.stats


def test_a_large_file_is_read_in_a_thread() -> None:
    rules = "".join(f"Disallow: /attic/{i}\n" for i in range(5000))
    with Site(SLOW + rules) as site:
        seen = crawl(
            *(f"{site.url}/{i}" for i in range(3)), settings=OBEY, spider="tests.spiders.TellsProtegosThread"
        )
    assert shortest(site) >= DELAY
    assert seen.notes["threads"] == ["norobots-reader_0"]


def test_a_store_keeps_it(tmp_path: Path) -> None:
    settings = {**OBEY, "NOROBOTS_STORE": f"sqlite:///{tmp_path / 'robots.sqlite'}"}
    with Site(SLOW) as site:
        for _ in range(2):
            site.hits.clear()
            crawl(*(f"{site.url}/{i}" for i in range(3)), settings=settings)
            assert shortest(site) >= DELAY
    assert site.robots_hits() == []


def test_a_downloader_without_slots_is_told_of() -> None:
    settings = {
        **OBEY,
        "DOWNLOADER": "tests.spiders.OtherDownloader",
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
        ({"NOROBOTS_ALSO_OBEY": [PROTEGO]}, "AllParsers", DELAY),
        ({"NOROBOTS_CRAWL_DELAY_MAX": 0.1}, "AllParsers", DELAY),
        ({"ROBOTSTXT_PARSER": PROTEGO}, "ProtegoRobotParser", DELAY),
        ({}, "StrictRobotParser", None),
    ],
)
def test_robots_parsed_hands_out_all_readings(
    settings: dict[str, Any], name: str, delay: float | None
) -> None:
    with Site(SLOW) as site:
        seen = crawl(
            f"{site.url}/", settings={**ADDON, **settings}, spider="tests.spiders.Listening", mode=MODES[0]
        )
    assert seen.notes == {"parsed": [[name, f"{site.url}/", False]], "delays": [delay]}
