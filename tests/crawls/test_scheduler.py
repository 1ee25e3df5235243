"""`RobotsScheduler` in crawls: with any scheduler of the user, and when a crawl closes or pauses.

Every crawl of the tests checks at its end that nothing is left in the scheduler or the downloader: see
`tests.helpers.running.crawler`.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from scrapy.core.downloader.handlers import DownloadHandlers

from tests.crawls.test_closing import running
from tests.crawls.test_sites import FOR_EVER, Closed, waiting
from tests.helpers.running.crawling import ADDON, BY_HAND, PLAIN_QUEUE, QUEUE, Crawl, crawl, hosts_of
from tests.helpers.sites import Answer, Site

RULES = "User-agent: *\nDisallow: /back/\n"

OTHER_SCHEDULER = (
    "Requests that wait for robots.txt count against CONCURRENT_REQUESTS, so a slow host can stall the crawl "
    "of other hosts: SCHEDULER is not scrapy_norobots.RobotsScheduler"
)
OTHER_DOWNLOADER = (
    "Downloads of robots.txt count against CONCURRENT_REQUESTS, so a slow host can stall the crawl of other "
    "hosts: DOWNLOADER is not scrapy_norobots.RobotsDownloader"
)


def crawl_with_any_setup(settings: dict[str, Any]) -> Crawl:
    with Site(RULES) as site, Site(RULES) as other:
        urls = [f"{one.url}{target}" for one in (site, other) for target in ("/1", "/2", "/back/")]
        seen = crawl(*urls, settings=settings)
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
        ({**ADDON, "DOWNLOADER": "scrapy.core.downloader.Downloader"}, OTHER_DOWNLOADER),
        pytest.param(
            {
                **ADDON,
                "DOWNLOADER": "tests.helpers.components.downloaders.OtherDownloader",
                "SCHEDULER_PRIORITY_QUEUE": PLAIN_QUEUE,
            },
            OTHER_DOWNLOADER,
            id="the user's",
        ),
    ],
)
def test_obeys_with_any_scheduler_and_downloader(settings: dict[str, Any], problem: str, mode: str) -> None:
    seen = crawl_with_any_setup(settings)
    (line,) = seen.log_lines("WARNING", "CONCURRENT_REQUESTS")
    assert line.endswith(f"WARNING: {problem}")


def test_all_pages_come_with_any_downloader(mode: str) -> None:
    """Also with one that does not say when a request has moved."""
    settings = {**ADDON, "DOWNLOADER": "scrapy.core.downloader.Downloader"}
    with Site(RULES, host="0.0.0.0") as site:
        requests = [{"url": f"{url}/page", "meta": {"download_slot": "proxy"}} for url in hosts_of(site, 40)]
        seen = crawl(*requests, settings=settings)
    assert len(seen.pages) == 40


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
            {**ADDON, "DOWNLOADER": "tests.helpers.components.downloaders.DerivedDownloader"},
            id="a downloader derived from it",
        ),
        pytest.param(
            {**ADDON, "SCHEDULER": "tests.helpers.components.schedulers.DerivedScheduler"},
            id="a scheduler derived from it",
        ),
    ],
)
def test_needs_no_warning_with_its_scheduler_and_downloader(settings: dict[str, Any]) -> None:
    seen = crawl_with_any_setup(settings)
    assert not seen.log_lines("WARNING", "CONCURRENT_REQUESTS")


@pytest.mark.skipif(
    not hasattr(DownloadHandlers, "download_request_async"), reason="its handlers have another API"
)
@pytest.mark.parametrize(
    ("downloader", "missing"),
    [
        ("DownloaderWithoutSlots", "downloader.slots, no downloader._get_slot"),
        ("DownloaderWithThrottler", "downloader.slots, no downloader._get_slot"),
        ("DownloaderWithOtherHandlers", "downloader.handlers._get_handler"),
    ],
)
def test_obeys_and_says_so_if_scrapy_lacks_what_it_reads(downloader: str, missing: str, mode: str) -> None:
    no_slots = {
        "DOWNLOADER": f"tests.helpers.components.downloaders.{downloader}",
        "SCHEDULER_PRIORITY_QUEUE": PLAIN_QUEUE,
    }
    seen = crawl_with_any_setup({**ADDON, **no_slots})
    (line,) = seen.log_lines("WARNING", "CONCURRENT_REQUESTS")
    assert line.endswith(f"has no {missing}")


def test_without_the_middleware_its_scheduler_and_downloader_do_what_scrapys_do(mode: str) -> None:
    settings = {
        "DOWNLOADER": "scrapy_norobots.RobotsDownloader",
        "SCHEDULER": "scrapy_norobots.RobotsScheduler",
    }
    with Site(RULES) as site:
        seen = crawl(*(f"{site.url}/{i}" for i in range(5)), settings=settings)
    assert len(seen.pages) == 5
    assert not site.robots_hits()
    assert not seen.log_lines("[scrapy_norobots", "WARNING")


@pytest.mark.parametrize("name", ["MinimalScheduler", "OtherScheduler"])
def test_any_scheduler_of_the_user_works(name: str, mode: str) -> None:
    seen = crawl_with_any_setup({**ADDON, "SCHEDULER": f"tests.helpers.components.schedulers.{name}"})
    assert not seen.log_lines("WARNING", "CONCURRENT_REQUESTS")


def after_some_have_asked(count: int, site: Site) -> None:
    """Wait until some robots.txt files were requested, and the crawl has had time to close."""
    deadline = time.monotonic() + 60
    while len(site.robots_hits()) < count and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(2)


def test_a_persistent_scheduler_of_the_user_gets_every_request_back(tmp_path: Path) -> None:
    queue = tmp_path / "queue.json"
    settings = {**ADDON, "SCHEDULER": "tests.helpers.components.schedulers.QueueInFile", "QUEUE": str(queue)}
    with Site(host="0.0.0.0") as site:
        site.answers["/robots.txt"] = Answer(RULES, before=partial(after_some_have_asked, 30, site))
        urls = [f"{url}/{number}" for number in range(2) for url in hosts_of(site, 40)]
        closing: dict[str, Any] = {
            "spider": "stopping.StopsAmidRobots",
            "arguments": {"robots": 30, "how": "close"},
        }
        first = crawl(*urls, settings=settings, **closing)
        assert len(first.pages) <= 16
        left = json.loads(queue.read_text())
        was_parked = left.index(urls[len(first.pages)])  # these come after those that were never taken
        assert left[was_parked:] + left[:was_parked] == urls[len(first.pages) :]
        site.answers["/robots.txt"] = Answer(RULES)
        second = crawl(settings=settings)
        assert json.loads(queue.read_text()) == []
    assert sorted(first.pages + second.pages) == sorted(urls)


def test_after_the_crawl_began_to_close_no_page_is_sent(mode: str, tmp_path: Path) -> None:
    """The requests that waited for robots.txt survive in the job."""
    settings = {**ADDON, "JOBDIR": str(tmp_path)}
    with Site(host="0.0.0.0") as site:
        site.answers["/robots.txt"] = Answer(RULES, before=partial(after_some_have_asked, 50, site))
        urls = [f"{url}/page" for url in hosts_of(site, 100)]
        closing: dict[str, Any] = {
            "spider": "stopping.StopsAmidRobots",
            "arguments": {"robots": 50, "how": "close"},
        }
        first = crawl(*urls, settings=settings, **closing)
        assert first.stats["finish_reason"] == "amid"
        assert len(first.pages) <= 16
        assert not first.drops
        site.answers["/robots.txt"] = Answer(RULES)
        second = crawl(*urls, settings=settings)
        assert sorted(first.pages + second.pages) == sorted(urls)
        assert len(site.pages()) == len(urls)


def test_no_page_is_sent_while_the_crawl_is_paused(mode: str) -> None:
    with Site(host="0.0.0.0") as site:
        site.answers["/robots.txt"] = Answer(RULES, before=partial(after_some_have_asked, 40, site))
        urls = [f"{url}/page" for url in hosts_of(site, 50)]
        pausing: dict[str, Any] = {
            "spider": "stopping.StopsAmidRobots",
            "arguments": {"robots": 40, "how": "pause"},
        }
        seen = crawl(*urls, **pausing)
    assert seen.notes["loaded while paused"] >= 40
    assert seen.notes["sent while paused"] == 0
    assert sorted(seen.pages) == sorted(urls)


def test_ctrl_c_leaves_pages_that_wait_for_a_delay_in_the_job(tmp_path: Path) -> None:
    settings = {**ADDON, **QUEUE, "JOBDIR": str(tmp_path), "CONCURRENT_REQUESTS": 4}
    slow = {"DOWNLOAD_DELAY": 1}
    started = threading.Event()
    robots = Answer(RULES, before=lambda: time.sleep(0.3))
    pages = {f"/{number}": Answer(before=started.set) for number in range(10)}
    with Site(robots, pages, host="0.0.0.0") as site:
        urls = [f"{url}/{number}" for number in range(10) for url in hosts_of(site, 10)]
        with running(*urls, settings={**settings, **slow}) as process:
            assert started.wait(60)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        assert process.wait() == 0, err
        first = json.loads(out)
        assert first["stats"]["finish_reason"] == "shutdown"
        assert len(first["pages"]) <= 2 * 4
        second = crawl(*urls, settings=settings)
        assert sorted(first["pages"] + second.pages) == sorted(urls)
        assert len(site.pages()) == len(urls)


def test_attributes_of_the_wrapped_scheduler_can_be_read() -> None:
    with Site(Closed(9)) as site:
        urls = [f"{site.url}/{number}" for number in range(3)]
        done = crawl(*urls, settings=FOR_EVER, spider="scheduling.LooksAtItsScheduler")
        assert done.notes["scheduler"] == {
            "class": "RobotsScheduler",
            "wrapped": "Scheduler",
            "filter": "RFPDupeFilter",
            "missing": None,
            "length": 3,
            "is empty": False,
        }


@pytest.mark.parametrize(
    ("spider", "wrapped"),
    [
        ("LooksAtItsScheduler", "OtherScheduler"),
        ("HasItsOwnScheduler", "OtherScheduler"),
        ("HasAClassOfScheduler", "OwnScheduler"),
    ],
    ids=["settings", "custom_settings", "a class"],
)
def test_a_scheduler_of_the_user_is_wrapped(mode: str, spider: str, wrapped: str) -> None:
    other = {"SCHEDULER": "tests.helpers.components.schedulers.OtherScheduler"}
    own = other if spider == "LooksAtItsScheduler" else {}
    with Site(Closed(9)) as site:
        urls = [f"{site.url}/{number}" for number in range(3)]
        done = crawl(*urls, settings={**FOR_EVER, **own}, spider=f"scheduling.{spider}")
        seen = done.notes["scheduler"]
        assert (seen["class"], seen["wrapped"], seen["length"]) == ("RobotsScheduler", wrapped, 3)
        assert (seen["filter"] is None) == (wrapped == "OtherScheduler")
        assert waiting(done) == {"waited": 3, "left": 3}
