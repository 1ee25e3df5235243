"""`Lines` in crawls: how requests wait for their download slots, and what needs none.

Every crawl of the tests checks at its end that nothing is left in the scheduler or the downloader: see
`tests.helpers.running.crawler`.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from tests.helpers.running.crawling import ADDON, IN_ORDER, QUEUE, crawl, hosts_of, wait_for
from tests.helpers.sites import Answer, Hit, Site, page

RULES = "User-agent: *\nDisallow: /back/\n"
PATIENCE = 10.0


@pytest.mark.parametrize("slow", [1, 2])
@pytest.mark.parametrize("delay", [0.2, 0.0], ids=["a delay", "one page at a time"])
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
            spider="scheduling.Watching",
            arguments={"then": urls},
        )
    assert len(seen.pages) == 1 + len(urls)
    asked = "".join("f" if hit.host == fast else "s" for hit in site.hits if hit.target != "/robots.txt")
    # As long as the fast host has pages, only few of the others come in a row.
    assert len(max(asked[: asked.rindex("f")].split("f"), key=len)) <= 6


def test_a_request_that_takes_the_last_place_after_a_delay_does_not_keep_other_files_from_being_loaded(
    mode: str, tmp_path: Path
) -> None:
    """With the HTTP cache, a request waits for the delay in the downloader."""
    asked, in_time = threading.Event(), list[bool]()
    last = Answer(before=lambda: in_time.append(asked.wait(PATIENCE)))
    with Site(RULES, host="0.0.0.0") as site:
        delayed, other, *more = hosts_of(site, 4)
        host, other_host = (url.removeprefix("http://").partition(":")[0] for url in (delayed, other))
        site.answers |= {
            f"{other_host}/robots.txt": Answer(RULES, before=asked.set),
            "/1": page(f"{delayed}/2", f"{more[0]}/2", f"{more[1]}/3", f"{other}/4"),
            "/2": last,
            # The delay of 1.5 s is over then: Scrapy makes it up to half as long again.
            "/3": Answer(before=lambda: time.sleep(2.5)),
        }
        settings = {
            **ADDON,
            **IN_ORDER,
            "CONCURRENT_REQUESTS": 2,
            "DOWNLOAD_SLOTS": {host: {"delay": 1.5, "concurrency": 1}},
            "HTTPCACHE_ENABLED": True,
            "HTTPCACHE_DIR": str(tmp_path),
        }
        urls = [f"{more[0]}/", f"{more[1]}/", f"{delayed}/1"]
        seen = crawl(*urls, settings=settings, arguments={"follow": True})
    assert len(seen.pages) == 7
    assert in_time == [True, True]


@pytest.mark.parametrize(("hosts", "is_early"), [(8, False), (1, True)], ids=["more sites", "one site"])
def test_before_a_delay_more_sites_than_places_take_none(hosts: int, is_early: bool) -> None:
    settings = {**ADDON, **QUEUE, "CONCURRENT_REQUESTS": 2, "DOWNLOAD_DELAY": 0.8}
    with Site(RULES, host="0.0.0.0") as site:
        urls = [f"{host}/{number}" for host in hosts_of(site, hosts) for number in range(3)]
        seen = crawl("data:,", settings=settings, spider="scheduling.Watching", arguments={"then": urls})
    assert len(seen.pages) == 1 + len(urls)
    assert any(seen.notes["early"][:16]) == is_early  # until then, more than two of the eight wait


def test_a_slot_with_a_delay_sends_pages_before_the_others_have_come(mode: str) -> None:
    all_asked = threading.Barrier(4, timeout=PATIENCE)
    with Site(RULES, {f"/{number}": Answer(before=all_asked.wait) for number in range(4)}) as site:
        urls = [f"{site.url}/{number}" for number in range(4)]
        seen = crawl(*urls, settings={**ADDON, "DOWNLOAD_DELAY": 0.1})
    assert sorted(seen.pages) == urls
    assert not all_asked.broken


@pytest.mark.parametrize("loop", [None, "uvloop.Loop"])
def test_a_response_that_a_middleware_keeps_holds_up_no_others_of_its_slot(
    loop: str | None, mode: str
) -> None:
    if loop is not None:
        pytest.importorskip("uvloop")
    settings = {
        **ADDON,
        "ASYNCIO_EVENT_LOOP": loop,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.middlewares.AnswersTogether": 543},
    }
    with Site(RULES) as site:
        seen = crawl(*(f"{site.url}/{page}" for page in range(4)), settings=settings, timeout=20)
    assert len(seen.pages) == 4


@pytest.mark.parametrize(("delay", "sites"), [(0, 1), (0.1, 1), (0.1, 2)])
def test_a_request_that_a_middleware_keeps_holds_up_no_others_of_its_slot(
    delay: float, sites: int, mode: str
) -> None:
    """Also if the engine asks for a request only when it is woken, and if it has asked for two robots.txt."""
    settings = {
        **ADDON,
        **IN_ORDER,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "DOWNLOAD_DELAY": delay,
        "DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.middlewares.WaitsForToken": 543},
    }
    with Site(RULES, host="0.0.0.0") as site:
        urls = [
            f"{url}/{page}" for url, page in zip(2 * hosts_of(site, sites), ("page", "token"), strict=False)
        ]
        requests = [{"url": url, "meta": {"download_slot": "proxy"}} for url in urls]
        seen = crawl(*requests, settings=settings, spider="scheduling.WithoutHeartbeat")
    assert sorted(seen.pages) == urls


@pytest.mark.parametrize(
    ("delay", "robots"),
    [(1, RULES), (0, Answer(RULES, before=lambda: time.sleep(2)))],
    ids=["a delay", "a slow robots.txt"],
)
def test_a_request_for_which_all_others_wait_needs_no_place(delay: float, robots: str | Answer) -> None:
    """In Scrapy it would have one. Here requests of other sites have overtaken it, and more of them wait."""
    settings = {
        **ADDON,
        **IN_ORDER,
        "CONCURRENT_REQUESTS": 2,
        "DOWNLOAD_DELAY": delay,
        "DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.middlewares.WaitsForToken": 543},
    }
    with Site(robots, host="127.0.0.9") as first, Site(RULES, host="0.0.0.0") as site:
        urls = [f"{first.url}/token", *(f"{host}/page" for host in hosts_of(site, 4))]
        seen = crawl(*urls, settings=settings)  # after 10 s
    assert sorted(seen.pages) == sorted(urls)


@pytest.mark.parametrize(
    ("last", "middlewares"),
    [
        ("/back/", {"derived.OnlyLooks": 100}),  # a forbidden request does not wait for its slot
        ("/moved", {"middlewares.OneSlot": 543}),
        ("/other", {}),  # it goes when `/1`, on its way for more than a second, is no longer counted
    ],
)
def test_a_slot_sends_requests_after_one_whose_response_is_kept(
    last: str, middlewares: dict[str, int], mode: str
) -> None:
    """`/1` comes to its slot when that has the response of the other request, and still counts it."""
    middlewares = {**middlewares, "middlewares.WaitsForAnotherToLeave": 544}
    settings = {
        **ADDON,
        "DOWNLOAD_SLOTS": {"all": {"delay": 0.01, "concurrency": 1}},
        "DOWNLOADER_MIDDLEWARES": {
            f"tests.helpers.components.{name}": order for name, order in middlewares.items()
        },
    }
    # If it took less than the delay, Scrapy itself would look at the slot again after the delay.
    late = Answer(before=lambda: time.sleep(0.1))
    with Site(RULES, {last: late}, host="0.0.0.0") as site:
        one, other = hosts_of(site, 2)
        slot = {"download_slot": "all"}
        urls = [f"{one}/1", f"{one if last == '/back/' else other}{last}"]
        seen = crawl(
            {"url": urls[0], "meta": slot, "priority": 1},
            {"url": urls[1], "meta": {} if last == "/moved" else slot},
            settings=settings,
            timeout=20,
        )
    assert sorted(seen.pages) == sorted(urls)


def test_cached_pages_wait_for_no_delay_after_robots_txt(tmp_path: Path) -> None:
    """On more sites than there are places, and with more pages of each than its slot sends at a time."""
    settings = {**ADDON, "HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path), "CONCURRENT_REQUESTS": 4}
    with Site(RULES, host="0.0.0.0") as site:
        urls = [f"{url}/{number}" for url in hosts_of(site, 12) for number in range(10)]
        crawl(*urls, settings=settings)
        site.hits.clear()
        # With one delay, the crawl would be closed before it has a page.
        delayed = {"DOWNLOAD_DELAY": 90, "CLOSESPIDER_TIMEOUT": 40}
        seen = crawl(*urls, settings={**settings, **delayed})
    assert seen.stats["finish_reason"] == "finished"
    assert sorted(seen.pages) == sorted(urls)
    assert len(site.hits) == len(site.robots_hits()) == 12


def test_pages_that_a_middleware_answers_wait_for_no_delay(mode: str) -> None:
    # With one delay, the crawl would be closed before it has a page.
    settings = {**ADDON, "DOWNLOAD_DELAY": 90, "CLOSESPIDER_TIMEOUT": 40, "PAUSE": 0.05}
    middlewares = {"tests.helpers.components.middlewares.AnswersLate": 560}
    with Site(RULES) as site:
        urls = [f"{site.url}/{number}" for number in range(10)]
        seen = crawl(*urls, settings={**settings, "DOWNLOADER_MIDDLEWARES": middlewares})
    assert sorted(seen.pages) == urls
    assert site.targets() == ["/robots.txt"]


@pytest.mark.parametrize("lacking", [1, 12], ids=["one", "more than one slot sends at a time"])
def test_cached_pages_do_not_wait_for_others_of_their_site(lacking: int, tmp_path: Path) -> None:
    settings = {**ADDON, **IN_ORDER, "HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    with Site(RULES) as site:
        cached = [f"{site.url}/{number}" for number in range(10)]
        crawl(*cached, settings=settings)
        site.hits.clear()
        first = [f"{site.url}/first/{number}" for number in range(lacking)]
        # With one delay, the crawl would be closed before it has a page.
        # The download of robots.txt counts as a page, too.
        delayed = {"DOWNLOAD_DELAY": 90, "CLOSESPIDER_PAGECOUNT": 11, "CLOSESPIDER_TIMEOUT": 40}
        seen = crawl(*first, *cached, settings={**settings, **delayed})
    assert seen.stats["finish_reason"] == "closespider_pagecount"
    assert seen.stats["httpcache/hit"] == 10
    assert not site.pages()


@pytest.mark.parametrize("delay", [0, 2])
def test_a_url_that_waits_for_robots_txt_twice_is_cached_once(tmp_path: Path, delay: float) -> None:
    """With Scrapy's own middleware, it is downloaded twice."""
    cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    with Site(Answer(RULES, before=lambda: time.sleep(0.3))) as site:
        page = {"url": f"{site.url}/page", "dont_filter": True}
        other = {"url": f"{site.url}/other", "dont_filter": True}
        settings = {**ADDON, **cache, "DOWNLOAD_DELAY": delay}
        seen = crawl(page, page, other, page, settings=settings)
    assert len(seen.pages) == 4
    assert sorted(site.targets()) == ["/other", "/page", "/robots.txt"]


def test_a_repeated_request_delays_no_other_one(mode: str, tmp_path: Path) -> None:
    cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    with Site(RULES) as site:
        all_asked = Answer(before=lambda: wait_for(lambda: len(site.pages()) >= 6))
        site.answers |= {"/": all_asked, "/other": all_asked}
        get = {"url": f"{site.url}/", "dont_filter": True, "priority": 1}
        posts = [{**get, "method": "POST", "body": body} for body in "ab"]
        more = [*posts, {**get, "meta": {"dont_cache": True}}, {**get, "priority": 2}]
        seen = crawl(get, get, get, *more, f"{site.url}/other", settings={**ADDON, **cache})
    assert len(seen.pages) == 8


@pytest.mark.parametrize("keeps", ["SendsTogether", "AnswersTogether"])
def test_a_repeated_request_does_not_wait_for_one_that_a_middleware_keeps(
    keeps: str, mode: str, tmp_path: Path
) -> None:
    settings = {
        **ADDON,
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": str(tmp_path),
        "DOWNLOADER_MIDDLEWARES": {f"tests.helpers.components.middlewares.{keeps}": 543},
    }
    with Site(RULES) as site:
        seen = crawl(*4 * [{"url": f"{site.url}/", "dont_filter": True}], settings=settings, timeout=20)
    assert len(seen.pages) == 4


def test_a_repeated_request_does_not_wait_with_an_own_downloader(mode: str, tmp_path: Path) -> None:
    cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path), "CLOSESPIDER_TIMEOUT": 60}
    own = {"DOWNLOADER": "scrapy.core.downloader.Downloader"}
    with Site(RULES) as site:
        page = {"url": f"{site.url}/", "dont_filter": True}
        seen = crawl(page, page, page, settings={**ADDON, **cache, **own})
    assert len(seen.pages) == 3


@pytest.mark.parametrize("places", [1, 2])
def test_pages_not_cached_take_no_place_and_stay_in_the_job(tmp_path: Path, places: int) -> None:
    cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")}
    settings = {**ADDON, **cache, "CONCURRENT_REQUESTS": places}
    with Site(RULES, host="0.0.0.0") as site:
        *others, last = hosts_of(site, 7)
        cached = [f"{last}/{number}" for number in range(10)]
        crawl(*cached, settings=settings)
        site.hits.clear()
        settings["JOBDIR"] = str(tmp_path / "job")
        slow = {"DOWNLOAD_DELAY": 90, "CLOSESPIDER_TIMEOUT": 6}
        lacking = [f"{host}/{number}" for host in others for number in range(3)]
        first = crawl(
            *({"url": url, "priority": 1} for url in lacking), *cached, settings={**settings, **slow}
        )
        assert first.stats["finish_reason"] == "closespider_timeout"
        assert first.stats["httpcache/miss"] == places * len(others)  # of each as many as there are places
        assert sorted(first.pages) == sorted(cached)
        assert not site.pages()
        second = crawl(settings=settings)
    assert sorted(second.pages) == sorted(lacking)
    assert len(site.pages()) == len(lacking)


def test_requests_that_wait_for_the_same_one_stay_in_the_job(tmp_path: Path) -> None:
    job = {**ADDON, "HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path), "JOBDIR": f"{tmp_path}/job"}
    with Site(Answer(RULES, before=lambda: time.sleep(0.3))) as site:  # all wait for it
        urls = [*(f"{site.url}/{number}" for number in range(20)), *3 * [f"{site.url}/last"]]
        requests = [{"url": url, "dont_filter": True} for url in urls]
        crawl(*requests, settings={**job, "DOWNLOAD_DELAY": 90, "CLOSESPIDER_TIMEOUT": 4})
        assert sorted(crawl(settings=job).pages) == sorted(urls)
