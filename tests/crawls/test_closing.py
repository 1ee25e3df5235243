"""Interrupt a crawl with a real SIGINT while a robots.txt is being downloaded."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from scrapy import signals
from scrapy.core.engine import ExecutionEngine

from scrapy_norobots.standard import Origin
from scrapy_norobots.stores.sqlite import SqliteStore
from tests.helpers.running import processes
from tests.helpers.running.crawling import ADDON, as_input, crawl
from tests.helpers.sites import Answer, Hit, Site, page

# Longer than any test runs.
PATIENT = {**ADDON, "NOROBOTS_TIMEOUT": 600}


@contextmanager
def running(*requests: str, **job: Any) -> Iterator[processes.Piped]:
    """Run a crawl whose log can be read, and which can receive signals."""
    with processes.Piped("tests.helpers.running.crawler") as process:
        process.stdin.write(as_input(*requests, **job))
        process.stdin.close()
        yield process


def read_until(text: str, process: processes.Piped, times: int = 1) -> str:
    """Read the log of a crawl until a text has appeared this many times."""
    log = ""
    while log.count(text) < times:
        line = process.stderr.readline()
        assert line, log
        log += line
    return log


class Hanging:
    """A robots.txt whose response is sent when `release` is set."""

    def __init__(self, status: int = 200, **headers: str) -> None:
        self.asked, self.release = threading.Event(), threading.Event()
        self._answer = Answer(status=status, headers=headers)

    def __call__(self, hit: Hit) -> Answer:
        self.asked.set()
        self.release.wait(600)
        return self._answer


def test_ctrl_c_stops_a_crawl_whose_robots_txt_hangs(mode: str, tmp_path: Path) -> None:
    robots = Hanging()
    settings = {**PATIENT, "NOROBOTS_STORE": f"sqlite:///{tmp_path / 'robots.sqlite'}"}
    with Site(robots) as site:
        with running(f"{site.url}/", settings=settings) as process:
            assert robots.asked.wait(60)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)  # the crawl ends before robots.txt arrives
        robots.release.set()
        assert process.wait() == 0, err
        seen = json.loads(out)
        assert seen["stats"]["finish_reason"] == "shutdown"
        assert not seen["pages"]
        assert not seen["drops"]  # the request is back in the scheduler
        assert site.targets() == ["/robots.txt"]
        assert "downloaded again after" not in err
        assert not [name for name in seen["stats"] if name.startswith("norobots/origins/")]
        # The failure says nothing about the site, so the next crawl downloads the file.
        assert crawl(f"{site.url}/", settings=settings).pages == [f"{site.url}/"]


def test_a_stop_while_the_store_is_slow_leaves_no_lock(mode: str, tmp_path: Path) -> None:
    """The crawl begins to close while it waits for a lock of its store, and gets the lock afterwards."""
    path, has_page = tmp_path / "robots.sqlite", threading.Event()
    settings = {**PATIENT, "NOROBOTS_STORE": f"sqlite:///{path}"}

    def hold_up(_: Hit) -> Answer:
        writer.execute("BEGIN IMMEDIATE")
        has_page.set()
        return page(f"{second.url}/")

    with (
        closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as writer,
        Site("", {"/": hold_up}) as first,
        Site("") as second,
        running(f"{first.url}/", settings=settings, arguments={"follow": True}) as process,
    ):
        assert has_page.wait(60)
        time.sleep(0.5)  # until the crawl asks the store for the lock of the second site
        process.send_signal(signal.SIGINT)
        log = read_until("robots.txt in this crawl", process)  # the summary at the end
        writer.execute("ROLLBACK")
        _, err = process.communicate(timeout=60)
        assert process.wait() == 0, log + err
        assert not second.hits
        origin = Origin("http", second.host, int(second.url.rpartition(":")[2]))
    store = SqliteStore(str(path), 2**20)
    assert asyncio.run(store.lock(origin, 1)).is_held
    asyncio.run(store.close())


@pytest.mark.skipif(
    hasattr(ExecutionEngine, "download_async") and not hasattr(signals, "robots_parsed"),
    reason="Scrapy 2.14 to 2.17 ends the crawl while the retry is on its way",
)
def test_a_robots_txt_that_fails_is_not_retried_while_the_crawl_is_closing(mode: str) -> None:
    check_that_only_one_robots_txt_is_requested(Hanging(status=503))


def test_a_redirect_of_robots_txt_is_not_followed_while_the_crawl_is_closing(mode: str) -> None:
    check_that_only_one_robots_txt_is_requested(Hanging(302, Location="/town-robots.txt"))


def check_that_only_one_robots_txt_is_requested(robots: Hanging) -> None:
    with Site(robots) as site, running(f"{site.url}/", settings=PATIENT) as process:
        assert robots.asked.wait(60)
        process.send_signal(signal.SIGINT)
        log = read_until("Closing spider", process)
        robots.release.set()
        out, err = process.communicate(timeout=60)
    assert process.wait() == 0, log + err
    stats = json.loads(out)["stats"]
    assert stats["finish_reason"] == "shutdown"
    assert "norobots/origins/closed" not in stats
    assert "downloaded again after" not in log + err
    assert site.targets() == ["/robots.txt"]
