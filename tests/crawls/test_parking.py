"""`Parking` in crawls: the order in which waiting requests are sent.

Every crawl of the tests checks at its end that nothing is left in the scheduler or the downloader: see
`tests.helpers.running.crawler`.
"""

from __future__ import annotations

import re
import threading
import time
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pytest
from scrapy import signals
from scrapy.settings import default_settings

from tests.helpers.running.crawling import (
    ADDON,
    DROP_AT_ONCE,
    IN_ORDER,
    PLAIN_QUEUE,
    QUEUE,
    crawl,
    hosts_of,
)
from tests.helpers.sites import Answer, Hit, Site, page

RULES = "User-agent: *\nDisallow: /back/\n"
PATIENCE = 10.0
# It comes when pages of other hosts have places.
LATE = Answer(RULES, before=lambda: time.sleep(0.5))


@pytest.mark.parametrize("queue", [default_settings.SCHEDULER_PRIORITY_QUEUE, PLAIN_QUEUE])
def test_the_order_of_requests_is_kept(queue: str) -> None:
    def order(settings: dict[str, Any]) -> list[str]:
        robots = Answer(RULES, before=lambda: threading.Event().wait(0.2))
        with Site(robots) as site:
            seen = crawl(
                "data:,",
                settings={**settings, "SCHEDULER_PRIORITY_QUEUE": queue},
                spider="scheduling.Watching",
                arguments={"then": [f"{site.url}/{i}" for i in range(60)]},
            )
        reached: list[str] = seen.notes["reached"]
        assert len(reached) == 60
        return reached

    assert order(ADDON) == order({})


def test_exempt_requests_do_not_go_before_requests_with_a_higher_priority() -> None:
    asked = threading.Event()
    with Site(Answer(RULES, before=lambda: asked.wait(PATIENCE)), {"/3": Answer(before=asked.set)}) as site:
        first, meta = f"{site.url}/first", {"dont_obey_robotstxt": True}
        others = [{"url": f"{site.url}/{number}", "meta": dict(meta)} for number in range(150)]
        settings = {**ADDON, "CONCURRENT_REQUESTS_PER_DOMAIN": 2}
        seen = crawl({"url": first, "priority": 1}, *others, settings=settings)
    assert len(seen.pages) == 151
    assert 3 <= seen.pages.index(first) < 120  # those that are sent while robots.txt is read


@pytest.mark.parametrize("limit", [1, 8])
def test_requests_of_a_site_keep_their_order(limit: int, mode: str) -> None:
    with Site(Answer(RULES, before=lambda: time.sleep(1.3))) as site:
        seen = crawl(
            "data:,",
            settings={**ADDON, **IN_ORDER, "CONCURRENT_REQUESTS": limit},
            spider="scheduling.Watching",
            arguments={"then": [f"{site.url}/{number}" for number in range(40)]},
        )
    expected = sorted(range(40), key=lambda number: (-(number % 3), number))
    assert seen.notes["reached"] == [f"/{number}" for number in expected]


@pytest.mark.parametrize(("hosts", "latest"), [(1, 30), (2, 50)])
def test_requests_that_waited_are_not_overtaken_by_all_later_ones(hosts: int, latest: int) -> None:
    def asked(settings: dict[str, Any]) -> list[str]:
        robots = Answer(RULES, before=lambda: threading.Event().wait(0.3))
        with Site(robots, host="0.0.0.0") as site:
            pages = [(host, f"/{host}-{i}") for i in range(60) for host in range(1, 1 + hosts)]
            crawl(
                "data:,",
                settings={**settings, "DOWNLOAD_DELAY": 0.02, "CONCURRENT_REQUESTS": 8, **QUEUE},
                spider="scheduling.Watching",
                arguments={"then": [site.url_of(f"127.0.0.{host}") + target for host, target in pages]},
            )
        return [target for target in site.targets() if target != "/robots.txt"]

    ours, plain = asked(ADDON), asked({})
    assert len(ours) == len(plain) == 60 * hosts
    # Those that waited must not come last, when the scheduler has no more: 50 or 100 places late.
    assert max(place - plain.index(target) for place, target in enumerate(ours)) <= latest


@pytest.mark.parametrize(("priority", "is_first"), [(-1, False), (1, True)], ids=["lower", "higher"])
def test_of_a_request_that_waited_and_a_scheduled_one_the_higher_priority_goes_first(
    priority: int, is_first: bool
) -> None:
    with Site(RULES, {"127.0.0.2/robots.txt": LATE}, host="0.0.0.0") as site:
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


def test_a_scheduled_request_does_not_go_first_because_one_before_it_waits() -> None:
    """Each page that waited has a link with a higher priority to a new host, whose robots.txt is loaded."""
    with Site(RULES, {"127.0.0.2/robots.txt": LATE}, host="0.0.0.0") as site:
        requests = [{"url": f"{site.url_of('127.0.0.2')}/first", "priority": 10}]
        for number in range(20):
            site.answers[f"127.0.0.2/waited{number}"] = page(site.url_of(f"127.0.1.{number + 1}") + "/link")
            requests.append({"url": f"{site.url_of('127.0.0.2')}/waited{number}", "priority": 1})
        for number in range(60):
            # All together, these take longer than the robots.txt.
            site.answers[f"127.0.0.1/{number}"] = Answer(before=lambda: time.sleep(0.05))
            requests.append({"url": f"{site.url_of('127.0.0.1')}/{number}"})
        settings = {**ADDON, **IN_ORDER, "CONCURRENT_REQUESTS": 2, "DEPTH_PRIORITY": -2}
        seen = crawl(*requests, settings=settings, arguments={"follow": True})
    assert len(seen.pages) == 1 + 20 + 20 + 60
    pages = [hit.target for hit in site.hits if hit.target != "/robots.txt"]
    waited = [place for place, target in enumerate(pages) if target.startswith("/waited")]
    between = [target for target in pages[waited[0] : waited[-1]] if target[1:].isdigit()]
    assert len(between) <= 2  # those that were on their way


@pytest.mark.skipif(
    not hasattr(signals, "robots_parsed"), reason="before Scrapy 2.18, the engine asks at other moments"
)
def test_a_lazy_start_keeps_the_order_of_scrapy() -> None:
    def asked(settings: dict[str, Any]) -> list[str]:
        robots = Answer(RULES, before=lambda: time.sleep(0.2))
        links = {f"/{start}": page(*(f"/{start}-{i}" for i in range(3))) for start in range(5)}
        with Site(robots, links, host="0.0.0.0") as site:
            crawl(
                *(f"{url}/{start}" for start, url in enumerate(hosts_of(site, 5))),
                settings={**settings, "CONCURRENT_REQUESTS": 1},
                spider="scheduling.StartsLazily",
                arguments={"follow": True},
            )
        assert len(site.pages()) == 5 * 4
        # On a busy machine, Scrapy sends the first link of a page before it has read the others.
        return [re.sub("-.", "-", target) for target in site.targets() if target != "/robots.txt"]

    assert any(asked(ADDON) == asked({}) for _ in range(3))  # it varies on a busy machine


def test_a_request_that_waited_is_checked_by_the_current_rules() -> None:
    answers = [Answer(RULES), Answer("User-agent: *\nDisallow: /2\n")]
    pages = {"/1": Answer(before=lambda: time.sleep(1.5)), "/2": Answer()}
    with Site(lambda hit: answers.pop(0), pages) as site:
        settings = {**ADDON, "CONCURRENT_REQUESTS": 1, "NOROBOTS_TTL": 1, "NOROBOTS_TTL_MIN": 0}
        seen = crawl(f"{site.url}/1", f"{site.url}/2", settings=settings)
    assert seen.pages == [f"{site.url}/1"]
    assert [drop.type for drop in seen.drops] == ["RobotsForbidden"]
    assert site.targets() == ["/robots.txt", "/1", "/robots.txt"]


def test_requests_whose_rules_expire_keep_their_place() -> None:
    settings = {**ADDON, **IN_ORDER, "NOROBOTS_TTL": 1, "NOROBOTS_TTL_MIN": 0}
    with Site(RULES) as site:
        urls = [f"{site.url}/{number}" for number in range(16)]
        seen = crawl(*urls, settings={**settings, "CONCURRENT_REQUESTS": 4, "DOWNLOAD_DELAY": 0.2})
    assert len(site.robots_hits()) > 1
    assert seen.pages == urls


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


def test_sites_of_one_slot_with_a_delay_take_turns_with_their_pages() -> None:
    with Site(RULES, host="0.0.0.0") as site:
        requests = [{"url": f"{url}/page", "meta": {"download_slot": "proxy"}} for url in hosts_of(site, 40)]
        seen = crawl(*requests, settings={**ADDON, "DOWNLOAD_DELAY": 0.05})
    assert len(seen.pages) == 40
    assert len(site.robots_hits()) == 40
    assert site.targets().index("/page") <= 5


@pytest.mark.parametrize("count", [2, 10])
def test_hosts_whose_robots_txt_hangs_hold_up_no_pages_of_their_slot(mode: str, count: int) -> None:
    """Files of other hosts have to wait only if half of the places of the slot hang."""
    last_page = threading.Event()
    with Site(host="0.0.0.0") as site:
        healthy, *slow, last = hosts_of(site, count + 2)
        hangs = Answer(RULES, before=partial(last_page.wait, PATIENCE))
        site.answers = {
            "/robots.txt": lambda hit: hangs if site.url_of(hit.host) in slow else Answer(RULES),
            "/20": Answer(before=last_page.set),
        }
        urls = [f"{url}/1" for url in (healthy, *slow, last)] + [f"{healthy}/{i}" for i in range(2, 21)]
        requests = [{"url": url, "meta": {"download_slot": "proxy"}} for url in urls]
        seen = crawl(*requests, settings={**ADDON, **IN_ORDER, "DOWNLOAD_DELAY": 0.05})
    assert len(seen.pages) == len(urls)
    early = {url.rpartition("/")[0] for url in seen.pages[: seen.pages.index(f"{healthy}/20")]}
    assert early == ({healthy, last} if count == 2 else {healthy})


def test_a_robots_txt_does_not_wait_for_pages_whose_rules_have_expired(mode: str) -> None:
    """Of a slot, pages are next; but before the delay is over, their rules expire, and none of them goes."""
    settings = {**ADDON, **IN_ORDER, "DOWNLOAD_DELAY": 0.5, "NOROBOTS_TTL": 0.1, "NOROBOTS_TTL_MIN": 0}
    with Site(RULES, host="0.0.0.0") as site:
        first, second = hosts_of(site, 2)
        urls = f"{first}/1", f"{first}/2", f"{second}/1"
        requests = [{"url": url, "meta": {"download_slot": "proxy"}} for url in urls]
        seen = crawl(*requests, settings=settings)
    assert len(seen.pages) == 3


def test_a_request_that_waited_goes_by_newer_rules_of_its_site(mode: str) -> None:
    """The last one caused a load. While it waits for its slot, another request causes the next one."""
    rules = [Answer(RULES), Answer("User-agent: *\nDisallow: /3\n")]
    pages = {
        "/0": Answer(before=lambda: time.sleep(0.1)),
        "/1": replace(page("/new"), before=lambda: time.sleep(0.5)),
        "/2": Answer(before=lambda: time.sleep(0.8)),
    }
    settings = {"DOWNLOAD_SLOTS": {"one": {"concurrency": 1}}, "NOROBOTS_TTL": 0.1, "NOROBOTS_TTL_MIN": 0}
    with Site(lambda hit: rules.pop(0), pages) as site:
        metas = [{"download_slot": "one", "dont_obey_robotstxt": number < 3} for number in range(4)]
        requests = [{"url": f"{site.url}/{i}", "priority": -i, "meta": meta} for i, meta in enumerate(metas)]
        seen = crawl(*requests, settings={**ADDON, **IN_ORDER, **settings}, arguments={"follow": True})
    assert seen.pages == [f"{site.url}/{path}" for path in ("0", "1", "new", "2")]
    assert [drop.type for drop in seen.drops] == ["RobotsForbidden"]


class Expiring:
    """A site where `copies` of `/1` wait for their slot, which `/2` occupies until `free` is set.

    `/3` answers when the rules of `/1` have expired, and a link there causes the next load.
    """

    SETTINGS: ClassVar = {
        **ADDON,
        **IN_ORDER,
        "DOWNLOAD_SLOTS": {"one": {"concurrency": 1}},
        "NOROBOTS_TTL": 2,
    }

    def __init__(self, copies: int = 1) -> None:
        self._copies = copies
        self._begun, self._is_occupied, self.free = (threading.Event() for _ in range(3))
        self.robots_txt = [Answer(RULES, before=self._begun.wait)]

    def robots(self, hit: Hit) -> Answer:
        return self.robots_txt.pop(0)

    def occupy(self) -> None:
        self._is_occupied.set()
        self.free.wait()

    def expire(self) -> None:
        self._begun.set()
        self._is_occupied.wait()
        time.sleep(2.1)  # longer than NOROBOTS_TTL

    def crawl(self, site: Site, **settings: Any) -> dict[str, tuple[str, int | None]]:
        """Return the type and the line of each dropped request."""
        slot = {"download_slot": "one"}
        seen = crawl(
            *self._copies * [{"url": f"{site.url}/1", "meta": slot, "dont_filter": True}],
            {"url": f"{site.url}/2", "meta": slot, "priority": 1},
            {"url": f"{site.url}/3", "meta": {"download_slot": "two", "dont_obey_robotstxt": True}},
            settings={**self.SETTINGS, **settings},
            arguments={"follow": True},
        )
        return {drop.url.removeprefix(site.url): (drop.type, drop.line) for drop in seen.drops}


def test_a_request_that_waited_does_not_go_while_its_file_is_loaded_again(mode: str) -> None:
    """The slot of `/1` becomes free during the load. The new file, behind a redirect, forbids `/1`.

    Meanwhile `/1` takes no place: the two places are enough for two pages of another site.
    """
    is_over, expiring = threading.Event(), Expiring()
    moved = Answer(status=302, headers={"Location": "/moved.txt"}, before=expiring.free.set)
    expiring.robots_txt.append(moved)
    others = {"/first": Answer(before=is_over.wait), "/second": Answer(before=is_over.set)}
    with Site(RULES, others, host="127.0.0.2") as other:
        answers = {
            "/2": replace(page(f"{other.url}/first", f"{other.url}/second"), before=expiring.occupy),
            "/3": replace(page("/4"), before=expiring.expire),
            "/moved.txt": Answer("User-agent: *\nDisallow: /\n", before=is_over.wait),
        }
        with Site(expiring.robots, answers) as site:
            drops = expiring.crawl(site, CONCURRENT_REQUESTS=2)
    assert drops == {"/1": ("RobotsForbidden", 2), "/4": ("RobotsForbidden", 2)}
    assert site.pages() == ["/2", "/3", "/moved.txt"]
    assert other.pages() == ["/first", "/second"]


def test_copies_of_a_request_wait_with_it_while_its_file_is_loaded_again(tmp_path: Path) -> None:
    """With an HTTP cache, they have waited for it, as it may have answered them."""

    def free() -> None:
        expiring.free.set()
        time.sleep(0.5)  # until the slot has become free

    expiring = Expiring(copies=3)
    expiring.robots_txt.append(Answer(RULES, before=free))
    answers = {
        "/2": Answer(before=expiring.occupy),
        "/3": replace(page("/4"), before=expiring.expire),
    }
    cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    with Site(expiring.robots, answers) as site:
        assert not expiring.crawl(site, **cache)
    assert sorted(site.pages()) == ["/1", "/2", "/3", "/4"]


def test_a_request_that_an_earlier_middleware_keeps_does_not_go_while_its_file_is_loaded_again() -> None:
    """That middleware lets pages wait for `/token`, and no robots.txt, also not one that is a page."""
    is_asked_again, is_over = threading.Event(), threading.Event()
    robots = [
        Answer(RULES),
        Answer(status=302, headers={"Location": "/moved.txt"}, before=is_asked_again.set),
    ]
    settings = {
        "NOROBOTS_TTL": 1,
        "DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.middlewares.WaitsForToken": 50},
    }
    with Site(Answer(RULES, before=is_over.set), host="127.0.0.2") as other:
        answers = {
            "/token": replace(page(f"{other.url}/"), before=is_asked_again.wait),
            # Longer than NOROBOTS_TTL.
            "/a/robots.txt": replace(page("/b/robots.txt"), before=lambda: time.sleep(1.5)),
            "/moved.txt": Answer("User-agent: *\nDisallow: /\n", before=is_over.wait),
        }
        with Site(lambda hit: robots.pop(0), answers) as site:
            exempt = {"dont_obey_robotstxt": True}
            requests: list[dict[str, Any]] = [
                {"url": f"{site.url}/1"},
                {"url": f"{site.url}/token", "meta": exempt},
                {"url": f"{site.url}/a/robots.txt", "meta": exempt},
            ]
            crawl(*requests, settings={**ADDON, **IN_ORDER, **settings}, arguments={"follow": True})
    assert site.pages() == ["/a/robots.txt", "/moved.txt", "/token"]


def test_a_request_that_waited_goes_by_no_rules_before_the_last_failure() -> None:
    """The slot of `/1` becomes free after a load that has failed, so its file is loaded again."""
    expiring = Expiring()
    expiring.robots_txt += [Answer(status=503), Answer("User-agent: *\nDisallow: /1\n")]

    def free() -> None:
        time.sleep(0.5)  # longer than NOROBOTS_ERROR_TTL
        expiring.free.set()

    with Site(Answer(RULES, before=free), host="127.0.0.2") as other:
        answers = {
            "/2": Answer(before=expiring.occupy),
            "/3": replace(page("/4", f"{other.url}/"), before=expiring.expire),
        }
        with Site(expiring.robots, answers) as site:
            failing = {"NOROBOTS_STALE_TTL": 0, "NOROBOTS_ERROR_TTL": 0.1, "NOROBOTS_RETRY_TIMES": 0}
            drops = expiring.crawl(site, **DROP_AT_ONCE, **failing)
    assert drops == {"/1": ("RobotsForbidden", 2), "/4": ("RobotsUnreachable", None)}
    assert site.pages() == ["/2", "/3"]


def test_a_request_that_becomes_exempt_while_it_is_held_is_sent() -> None:
    """While `/1` waits for its delay, `/4` causes a load of rules that forbid it, and exempts it."""
    robots = [Answer(RULES), Answer("User-agent: *\nDisallow: /1\n")]
    settings = {
        "DOWNLOAD_SLOTS": {"one": {"concurrency": 1, "delay": 3}},
        "NOROBOTS_TTL": 0.5,
        "NOROBOTS_TTL_MIN": 0,
        "DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.middlewares.ExemptsLater": 950},
    }
    # Longer than NOROBOTS_TTL, and shorter than the delay of `/1`.
    answers = {"/3": replace(page("/4"), before=lambda: time.sleep(0.6))}
    with Site(lambda hit: robots.pop(0), answers) as site:
        requests: list[dict[str, Any]] = [
            {"url": f"{site.url}/0", "meta": {"download_slot": "one"}},
            {"url": f"{site.url}/1", "meta": {"download_slot": "one"}},
            {"url": f"{site.url}/3", "meta": {"dont_obey_robotstxt": True}},
        ]
        seen = crawl(*requests, settings={**ADDON, **IN_ORDER, **settings}, arguments={"follow": True})
        assert site.pages() == ["/0", "/1", "/3", "/4"]
    assert not seen.drops


def test_a_file_that_expires_at_once_is_downloaded_about_once_for_each_page() -> None:
    """Some downloads take longer than the delay, so that pages which are next wait for them again."""
    numbers = count()
    settings = {
        "NOROBOTS_TTL": 0.001,
        "NOROBOTS_TTL_MIN": 0,
        "DOWNLOAD_DELAY": 0.1,
        "DOWNLOAD_DELAY_JITTER": 0,
    }

    def sometimes_slow() -> None:
        if next(numbers) % 3 == 0:
            time.sleep(0.18)  # longer than the delay

    with Site(Answer(RULES, before=sometimes_slow)) as site:
        crawl(*(f"{site.url}/{number}" for number in range(30)), settings={**ADDON, **IN_ORDER, **settings})
    assert len(site.pages()) == 30
    assert len(site.robots_hits()) <= 45  # 30 to 34; at least 69 if a page may lose its right to go


def test_a_download_slot_of_the_user_is_respected() -> None:
    with Site(RULES) as site:
        seen = crawl(
            *({"url": f"{site.url}/{i}", "meta": {"download_slot": f"slot {i % 2}"}} for i in range(10)),
            f"{site.url}/back/",
        )
    assert len(seen.pages) == 10
    assert len(site.robots_hits()) == 1


def test_requests_moved_to_another_slot_do_not_wait_for_the_first() -> None:
    """If each waited for half of the delay, the crawl would time out."""
    with Site(RULES) as site:
        settings = {
            **ADDON,
            "DOWNLOAD_SLOTS": {"127.0.0.1": {"delay": 4}},
            "DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.middlewares.SpreadsOverSlots": 543},
        }
        seen = crawl(*(f"{site.url}/{page}" for page in range(40)), settings=settings)
    assert len(seen.pages) == 40


def test_a_robots_txt_does_not_wait_for_pages_that_were_moved_to_another_slot(mode: str) -> None:
    """Of a slot, pages are next; but all of them are sent in other slots."""
    middleware = "tests.helpers.components.middlewares.SpreadsOverSlots"
    slots = {"DOWNLOAD_SLOTS": {"proxy": {"delay": 0.2}}, "DOWNLOADER_MIDDLEWARES": {middleware: 543}}
    with Site(RULES, host="0.0.0.0") as site:
        urls = [f"{url}/{number}" for url in hosts_of(site, 3) for number in range(3)]
        requests = [{"url": url, "meta": {"download_slot": "proxy"}} for url in urls]
        seen = crawl(*requests, settings={**ADDON, **IN_ORDER, **slots})
    assert sorted(seen.pages) == urls


def test_requests_go_on_if_one_before_them_has_changed_its_slot_since() -> None:
    middleware = "tests.helpers.components.middlewares.LeavesForAnotherSlot"
    settings = {
        **ADDON,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "DOWNLOADER_MIDDLEWARES": {middleware: 543},
    }
    with Site(RULES) as site:
        seen = crawl(*(f"{site.url}/{page}" for page in range(5)), settings=settings)
    assert len(seen.pages) == 5
