"""One crawl in a separate process: ``python -m tests.helpers.running.crawler``, which `crawling` starts.

The job is JSON on standard input. The results of the crawl are written as JSON to standard output, its log
to standard error.
"""

from __future__ import annotations

import gc
import json
import sys
import warnings
import weakref
from typing import Any

import scrapy.crawler
from scrapy.core.engine import ExecutionEngine
from scrapy.downloadermiddlewares import cookies
from scrapy.exceptions import ScrapyDeprecationWarning
from scrapy.signals import request_dropped, response_downloaded
from scrapy.utils.misc import load_object
from tldextract import TLDExtract

from scrapy_norobots import RobotsDownloader

QUIET = {
    "LOG_LEVEL": "DEBUG",
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    # These take a tenth of the time of a small crawl.
    "EXTENSIONS": {"scrapy.extensions.telnet.TelnetConsole": None},
    "LOG_VERSIONS": [],
    "WARN_ON_GENERATOR_RETURN_VALUE": False,
}


def check_that_all_was_given_back(crawler: scrapy.crawler.Crawler) -> None:
    """Fail if the plugin has left anything in the downloader after a crawl."""
    downloader: Any = getattr(crawler.engine, "downloader", None)
    slots = vars(downloader).get("slots") if downloader is not None else None  # to read it may be deprecated
    if slots is not None:
        limit = crawler.settings.getint("CONCURRENT_REQUESTS")
        assert downloader.total_concurrency == limit, f"{downloader.total_concurrency} and not {limit}"
        assert not [slot for slot in slots.values() if slot.active], slots
    if isinstance(downloader, RobotsDownloader):
        assert not downloader.active
        assert downloader._free_downloads == 0
        parking = downloader.parking
        assert not parking, vars(parking)
        assert parking is None or not parking.sent, parking.sent


def main() -> None:
    """Run the crawl of the job on standard input."""
    job = json.load(sys.stdin)
    # Use tldextract's own list of public suffixes, so that nothing is downloaded.
    cookies._split_domain = TLDExtract(suffix_list_urls=(), include_psl_private_domains=True)
    if hasattr(ExecutionEngine, "download_async"):  # older versions log deprecation warnings of their own
        warnings.filterwarnings("error", category=ScrapyDeprecationWarning)
    warnings.filterwarnings("ignore", job["deprecated"], ScrapyDeprecationWarning)
    settings = {**QUIET, **job["settings"]}
    name = "AsyncCrawlerProcess" if job["mode"] == "no reactor" else "CrawlerProcess"
    process = getattr(scrapy.crawler, name)(settings)
    crawler = process.create_crawler(load_object(job["spider"]))
    dropped: list[str] = []
    crawler.signals.connect(lambda request: dropped.append(request.url), request_dropped, weak=False)
    latencies: dict[str, float] = {}

    def note_latency(request: scrapy.Request) -> None:
        latency = request.meta.get("download_latency", 0.0)
        latencies[request.url] = max(latency, latencies.get(request.url, 0.0))

    crawler.signals.connect(note_latency, response_downloaded, weak=False)
    process.crawl(crawler, requests=job["requests"], **job["arguments"])
    if job["beside"] is not None:
        other = scrapy.crawler.Crawler(load_object(job["spider"]), {**settings, **job["beside"]})
        process.crawl(other, requests=job["requests"], **job["arguments"])
    process.start()
    if process.bootstrap_failed or crawler.stats is None:  # Scrapy 2.14 does not always say the first
        sys.exit(1)  # Scrapy has logged why
    check_that_all_was_given_back(crawler)
    # Scrapy hears of duplicates, but of no request that waits, or that has come back to the scheduler.
    assert len(dropped) == crawler.stats.get_value("dupefilter/filtered", 0), dropped
    spider = crawler.spider
    seen = {
        "pages": spider.pages,
        "drops": [vars(drop) for drop in spider.drops],
        "stats": crawler.stats.get_stats(),
        "notes": spider.notes,
        "latencies": latencies,
    }
    if job["frees"]:
        weak = weakref.ref(crawler)
        del crawler, spider, process
        gc.collect()
        seen["notes"]["freed"] = weak() is None
    json.dump(seen, sys.stdout, default=str)


if __name__ == "__main__":
    main()
