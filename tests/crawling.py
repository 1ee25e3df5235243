"""Real crawls for the tests: each in a process of its own, since a reactor runs once in a process.

`crawl` runs this module as a program with a job on its standard input, and gives back what the crawl saw.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import scrapy
import scrapy.crawler
from scrapy.settings import default_settings

from scrapy_norobots import RobotsDownloader

# The ways to run Scrapy that are tested. Tests that are not about one use the first.
MODES = tuple(os.environ.get("CRAWL_MODES", "asyncio,select,no reactor").split(","))
ADDON = {"ADDONS": {"scrapy_norobots.Addon": 500}}
ROOT = Path(__file__).parent.parent

MODE_SETTINGS: dict[str, dict[str, object]] = {
    "asyncio": {"TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor"},
    "select": {"TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"},
    "no reactor": {"TWISTED_REACTOR_ENABLED": False},
}


@dataclass(frozen=True)
class Drop:
    """A request that did not come back: its URL, the exception's type and text, the rule's line, and
    `RobotsUnreachable.retry_after`.
    """

    url: str
    type: str
    text: str
    line: int | None = None
    retry_after: float | None = None


@dataclass(frozen=True)
class Crawl:
    """What a crawl saw."""

    pages: list[str]
    drops: list[Drop]
    stats: dict[str, Any]
    notes: dict[str, Any]
    log: str

    def log_lines(self, *parts: str) -> list[str]:
        """The lines of the log that hold all the parts."""
        return [line for line in self.log.splitlines() if all(part in line for part in parts)]


@dataclass
class Job:
    """What to crawl: requests as keyword arguments of `Request`, or plain URLs."""

    requests: list[str | dict[str, Any]]
    settings: dict[str, Any] = field(default_factory=dict)
    mode: str = MODES[0]
    spider: str = "tests.spiders.Pages"
    arguments: dict[str, Any] = field(default_factory=dict)
    beside: dict[str, Any] | None = None  # changes to the settings for a second crawl at the same time
    deprecated: str = "nothing"  # the start of the one deprecation warning that is none of our business


def crawl(*requests: str | dict[str, Any], timeout: float = 60, **job: Any) -> Crawl:
    """Crawl, with the add-on enabled unless `settings` say otherwise, and wait for the end."""
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
    )


def run_crawl(
    *requests: str | dict[str, Any], timeout: float = 60, **job: Any
) -> subprocess.CompletedProcess[str]:
    """Run the process of a crawl, whatever becomes of it."""
    what = Job(list(requests), **{"settings": ADDON, **job})
    if what.mode == "no reactor" and not hasattr(default_settings, "TWISTED_REACTOR_ENABLED"):
        pytest.skip("this version of Scrapy cannot run without a reactor")
    return subprocess.run(
        [sys.executable, "-m", "tests.crawling"],
        input=json.dumps(vars(what)),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        cwd=ROOT,
    )


def with_no_origin(url: str) -> dict[str, Any]:
    """Return a request of a URL whose port is none; skip the test where there can be no such request."""
    request: dict[str, Any] = {
        "url": url,
        "meta": {"verbatim_url": True},
    }  # newer versions take such URLs no other way
    try:
        scrapy.Request(**request)
    except ValueError:
        pytest.skip("this version of Scrapy makes no request of a URL with such a port")
    return request


_EMPTY_AT_THE_END = ("_robots_downloads", "_held_in_all", "_held", "_held_in", "_free", "_slots_of", "_ready")


def check_that_all_was_given_back(crawler: scrapy.crawler.Crawler) -> None:
    """Fail if the plugin has left anything of its own in the downloader, whatever the crawl was."""
    downloader: Any = getattr(crawler.engine, "downloader", None)
    if hasattr(downloader, "slots"):
        limit = crawler.settings.getint("CONCURRENT_REQUESTS")
        assert downloader.total_concurrency == limit, f"{downloader.total_concurrency} and not {limit}"
        assert not [slot for slot in downloader.slots.values() if slot.active], downloader.slots
    if isinstance(downloader, RobotsDownloader):
        assert downloader.under_way() == 0
        left = [name for name, value in vars(downloader).items() if name in _EMPTY_AT_THE_END and value]
        assert not left, left


def main() -> None:
    """Do the job on standard input; what was seen goes to standard output, the log to standard error."""
    from scrapy.core.engine import ExecutionEngine
    from scrapy.downloadermiddlewares import cookies
    from scrapy.exceptions import ScrapyDeprecationWarning
    from scrapy.utils.misc import load_object
    from tldextract import TLDExtract

    # Nothing leaves this machine: the list of public suffixes is the one that comes with tldextract.
    cookies._split_domain = TLDExtract(suffix_list_urls=(), include_psl_private_domains=True)
    job = Job(**json.load(sys.stdin))
    if hasattr(ExecutionEngine, "download_async"):  # older versions warn of themselves
        warnings.filterwarnings("error", category=ScrapyDeprecationWarning)
    warnings.filterwarnings("ignore", job.deprecated, ScrapyDeprecationWarning)
    settings = {
        "LOG_LEVEL": "DEBUG",
        "TELNETCONSOLE_ENABLED": False,
        "REMOTE_CONTROL_ENABLED": False,
        **MODE_SETTINGS[job.mode],
        **job.settings,
    }
    name = "AsyncCrawlerProcess" if job.mode == "no reactor" else "CrawlerProcess"
    process = getattr(scrapy.crawler, name)(settings)
    crawler = process.create_crawler(load_object(job.spider))
    process.crawl(crawler, requests=job.requests, **job.arguments)
    if job.beside is not None:
        other = scrapy.crawler.Crawler(load_object(job.spider), {**settings, **job.beside})
        process.crawl(other, requests=job.requests, **job.arguments)
    process.start()
    check_that_all_was_given_back(crawler)
    if process.bootstrap_failed:
        sys.exit("the crawl did not start")
    spider = crawler.spider
    json.dump(
        {
            "pages": spider.pages,
            "drops": [vars(drop) for drop in spider.drops],
            "stats": crawler.stats.get_stats(),
            "notes": spider.notes,
        },
        sys.stdout,
        default=str,
    )


if __name__ == "__main__":
    main()
