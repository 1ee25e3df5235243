"""One `CommandSpider` with numbers for items, in a process of its own.

``python -m tests.helpers.running.items`` is that process. The job comes as JSON on standard input: how Scrapy
is run, settings, how many items, and what goes wrong. What was done, and what came of it, goes as JSON to
standard output.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Coroutine
from dataclasses import asdict, dataclass, field
from typing import Any

import scrapy.crawler
from scrapy.crawler import Crawler

from scrapy_norobots.commands.spider import Pool, run_spider
from scrapy_norobots.scrapy_api import compat


@dataclass
class Job:
    """The work, and its result: items in the order of their ends, how many were worked on at a time, and the
    exception that `run_spider` raised, as its type and text.
    """

    settings: dict[str, Any]
    mode: str
    items: int
    invalid_setting: str = ""
    fails_at: int = -1
    prepared: int = 0
    done: list[int] = field(default_factory=list)
    most: int = 0
    error: list[str] | None = None
    under_way: int = 0

    def prepare(self, crawler: Crawler) -> Coroutine[Any, Any, None]:
        assert crawler.engine is not None
        self.prepared += 1
        if self.invalid_setting:
            raise ValueError(self.invalid_setting)
        return self.work_on_all(crawler)

    async def work_on_all(self, crawler: Crawler) -> None:
        pool = Pool(crawler, self.work)
        for item in range(self.items):
            pool.add(item)
        await pool.join()

    async def work(self, item: int) -> None:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await compat.sleep(0.01)
        self.under_way -= 1
        if item == self.fails_at:
            raise LookupError(f"item {item}")
        self.done.append(item)


def main() -> None:
    """Do the job on standard input."""
    job = Job(**json.load(sys.stdin))
    name = "AsyncCrawlerProcess" if job.mode == "no reactor" else "CrawlerProcess"
    process = getattr(scrapy.crawler, name)({"TELNETCONSOLE_ENABLED": False, **job.settings})
    try:
        run_spider(process, job.prepare)
    except Exception as exc:
        job.error = [type(exc).__name__, str(exc)]
    json.dump(asdict(job), sys.stdout)


if __name__ == "__main__":
    main()
