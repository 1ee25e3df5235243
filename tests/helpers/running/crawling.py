"""Real crawls for the tests, each in a separate process, because a reactor runs only once per process.

`crawl` runs `crawler` with a job on its standard input, and returns the results of the crawl.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import scrapy
from scrapy.core.downloader import Downloader
from scrapy.settings import default_settings

from tests.helpers.running import processes
from tests.helpers.sites import Site
from tests.helpers.spiders.pages import Drop

# The tested modes of Scrapy. Tests that do not depend on the mode use the first.
MODES = tuple(os.environ.get("CRAWL_MODES", "asyncio,select,no reactor").split(","))
current_mode = MODES[0]  # the fixture `mode` changes it
SPIDERS = "tests.helpers.spiders."
ADDON = {"ADDONS": {"scrapy_norobots.Addon": 500}}

# The default queue from Scrapy 2.14 on, the one of 2.13, and one that keeps the order of requests.
QUEUE = {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue"}
PLAIN_QUEUE = "scrapy.pqueues.ScrapyPriorityQueue"
IN_ORDER = {
    "SCHEDULER_PRIORITY_QUEUE": PLAIN_QUEUE,
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    "SCHEDULER_START_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
}

# The middleware without the add-on.
BY_HAND = {
    "ROBOTSTXT_OBEY": True,
    "DOWNLOADER_MIDDLEWARES": {
        "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
        "scrapy_norobots.NoRobotsMiddleware": 100,
    },
}

# A process that shares its queue, and what scrapy-redis uses that is deprecated.
FLEET: dict[str, Any] = {
    "spider": "fleet.Worker",
    "deprecated": r"Passing a .spider. argument|Spider\.log|scrapy_redis\.|scrapy\.http\.FormRequest",
}

# Requests to closed sites are dropped at once, except in tests of their retries.
DROP_AT_ONCE = {"NOROBOTS_RETRY_CLOSED": 0}

# For tests with CONCURRENT_REQUESTS = 0 or less.
CAN_HAVE_NO_LIMIT = pytest.mark.skipif(
    "0 <" not in inspect.getsource(Downloader.needs_backout),
    reason="without places nothing is downloaded, before 2.18",
)

MODE_SETTINGS: dict[str, dict[str, object]] = {
    "asyncio": {"TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor"},
    "select": {"TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"},
    "no reactor": {"TWISTED_REACTOR_ENABLED": False},
}


@dataclass(frozen=True)
class Crawl:
    """The results of a crawl; `latencies` has the longest time from a request to its answer, by URL."""

    pages: list[str]
    drops: list[Drop]
    stats: dict[str, Any]
    notes: dict[str, Any]
    log: str
    latencies: dict[str, float] = field(default_factory=dict)

    def log_lines(self, *parts: str) -> list[str]:
        """The lines of the log that contain all parts."""
        return [line for line in self.log.splitlines() if all(part in line for part in parts)]


@dataclass
class Job:
    """A job for `crawler`: requests as keyword arguments of `Request`, or as URLs, and settings."""

    requests: list[str | dict[str, Any]]
    settings: dict[str, Any] = field(default_factory=dict)
    mode: str = field(default_factory=lambda: current_mode)
    spider: str = "pages.Pages"  # the package of spiders is added, unless it is a whole path
    arguments: dict[str, Any] = field(default_factory=dict)
    beside: dict[str, Any] | None = None  # changed settings for a second, simultaneous crawl
    frees: bool = False  # whether to note if the crawler is freed in the end
    deprecated: str = "nothing"  # the start of the only deprecation warning that is allowed


def uses_httpx(mode: str) -> bool:
    """Return whether Scrapy downloads with httpx, as until 2.16 without a reactor: no proxies of requests."""
    return mode == "no reactor" and find_spec("scrapy.core.downloader.handlers._aiohttp") is None


def crawl(*requests: str | dict[str, Any], timeout: float = 60, **job: Any) -> Crawl:
    """Crawl until the end, with the add-on enabled unless `settings` are given."""
    done = run_crawl(*requests, timeout=timeout, **job)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert "Traceback" not in done.stderr, done.stderr
    return Crawl(
        pages=seen["pages"],
        drops=[Drop(**drop) for drop in seen["drops"]],
        stats=seen["stats"],
        notes=seen["notes"],
        log=done.stderr,
        latencies=seen["latencies"],
    )


def run_crawl(
    *requests: str | dict[str, Any], timeout: float = 60, **job: Any
) -> subprocess.CompletedProcess[str]:
    """Run the process of a crawl, which may fail."""
    return processes.run("tests.helpers.running.crawler", input=as_input(*requests, **job), timeout=timeout)


@contextmanager
def started(*requests: str | dict[str, Any], **job: Any) -> Iterator[processes.Process]:
    """Run a crawl while the test continues, and kill it at the end if it still runs."""
    with tempfile.TemporaryFile() as job_file, Path(os.devnull).open("r+b") as devnull:
        job_file.write(as_input(*requests, **job).encode())
        job_file.seek(0)
        with processes.Process(
            "tests.helpers.running.crawler", stdin=job_file, stdout=devnull, stderr=devnull
        ) as process:
            yield process


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until something is so that no event tells."""
    limit = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.05)


def as_input(*requests: str | dict[str, Any], **job: Any) -> str:
    """Return the job as `crawler` reads it."""
    what = Job(list(requests), **{"settings": ADDON, **job})
    if what.mode == "no reactor" and not hasattr(default_settings, "TWISTED_REACTOR_ENABLED"):
        pytest.skip("this version of Scrapy cannot run without a reactor")
    return json.dumps(
        {
            **vars(what),
            "spider": what.spider if what.spider.startswith("tests.") else SPIDERS + what.spider,
            "settings": {**MODE_SETTINGS[what.mode], **DROP_AT_ONCE, **what.settings},
        }
    )


def with_report(*paths: Path, **settings: Any) -> dict[str, Any]:
    return {**ADDON, "RETRY_TIMES": 1, "NOROBOTS_REPORT": [str(path) for path in paths], **settings}


def with_no_origin(url: str) -> dict[str, Any]:
    """Return a request with an invalid port; skip the test if this Scrapy refuses to create it."""
    request: dict[str, Any] = {
        "url": url,
        "meta": {"verbatim_url": True},
    }  # the only way to create one in newer versions
    try:
        scrapy.Request(**request)
    except ValueError:
        pytest.skip("this version of Scrapy makes no request of a URL with such a port")
    return request


def hosts_of(site: Site, count: int) -> list[str]:
    """Return the URLs of several hosts of a site bound to 0.0.0.0."""
    return [site.url_of(f"127.1.{number // 200}.{1 + number % 200}") for number in range(count)]
