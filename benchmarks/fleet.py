"""``fleet``: scrapy-redis processes with a shared queue: downloads of robots.txt, and time of the crawl."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.crawl import HANDLERS, NAMES, serving
from benchmarks.report import progress, table
from tests.helpers.running.redisserver import RedisServer

HOSTS, PAGES = 100, 20
PROCESSES = (1, 2, 4)
_ROOT = Path(__file__).parent.parent

SETTINGS: dict[str, Any] = {
    "LOG_LEVEL": "CRITICAL",
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
    "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
    "SCHEDULER_PERSIST": True,
    "MAX_IDLE_TIME_BEFORE_CLOSE": 4,
}
_SHARED = "norobots, shared store"
_HANDLERS = {"scrapy": "scrapy", "norobots": "norobots", _SHARED: "norobots"}


def crawl(handler: str, processes: int, port: int) -> dict[str, float]:
    """Crawl with a number of processes, and return their combined results."""
    import redis

    with tempfile.TemporaryDirectory() as folder, RedisServer(Path(folder)) as server:
        settings = {**SETTINGS, **HANDLERS[_HANDLERS[handler]], "REDIS_URL": server.url}
        if handler == _SHARED:
            settings["NOROBOTS_STORE"] = server.url
        workers = [
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.fleet"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=_ROOT,
                env={**os.environ, "PYTHONWARNINGS": "ignore"},
            )
            for _ in range(processes)
        ]
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write(json.dumps(settings))
            worker.stdin.close()
        with redis.Redis.from_url(server.url) as client:
            while int(client.get("fleet:up") or 0) < processes:
                time.sleep(0.05)
            client.lpush("fleet:start_urls", json.dumps({"url": f"http://127.1.250.1:{port}/"}))
        start = time.time()
        seen = [json.load(worker.stdout) for worker in workers if worker.stdout is not None]
    pages = sum(one["pages"] for one in seen)
    assert pages == HOSTS * PAGES + 1, f"every page comes once; these were {pages}"
    return {
        "downloads": sum(one["downloads"] for one in seen),
        "seconds": max(one["last"] for one in seen) - start,
    }


def run(rounds: int) -> None:
    """Measure and print the table."""
    seen: dict[tuple[int, str], list[dict[str, float]]] = {}
    with serving() as port:
        for number in range(1, rounds + 1):
            for processes in PROCESSES:
                for handler in _HANDLERS:
                    progress(f"round {number} of {rounds}: {processes} processes, {handler}")
                    seen.setdefault((processes, handler), []).append(crawl(handler, processes, port))
    rows = []
    for (processes, handler), found in seen.items():
        downloads = sorted(int(one["downloads"]) for one in found)
        several = f"{downloads[0]} to {downloads[-1]}" if downloads[0] != downloads[-1] else str(downloads[0])
        rows.append(
            [
                str(processes),
                NAMES.get(handler, "scrapy-norobots, shared store"),
                several,
                f"{median(one['seconds'] for one in found):.2f} s",
            ]
        )
    table(
        f"fleet: {HOSTS} hosts of {PAGES} pages and one that leads to them; {rounds} rounds",
        ["processes", "handler", "downloads of a robots.txt", "time of the crawl"],
        rows,
    )


def main() -> None:
    """Run one process of the fleet, with the settings on standard input."""
    from scrapy import Request, signals
    from scrapy.crawler import CrawlerProcess
    from scrapy_redis.spiders import RedisSpider

    class Worker(RedisSpider):  # type: ignore[misc]  # scrapy-redis is untyped
        name = "fleet"
        pages, last = 0, 0.0

        @classmethod
        def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Any:
            spider = super().from_crawler(crawler, *args, **kwargs)
            crawler.signals.connect(spider.is_up, signal=signals.spider_opened)
            return spider

        def is_up(self) -> None:
            self.server.incr("fleet:up")

        def parse(self, response: Any) -> Any:
            self.pages += 1
            type(self).last = time.time()
            if "//127.1.250.1:" in response.url:
                port = response.url.rpartition(":")[2].rstrip("/")
                for page in range(PAGES):
                    for host in range(1, HOSTS + 1):
                        yield Request(f"http://127.1.0.{host}:{port}/{page}")

    process = CrawlerProcess(json.load(sys.stdin))
    crawler = process.create_crawler(Worker)
    process.crawl(crawler)
    process.start()
    assert crawler.stats is not None
    assert isinstance(crawler.spider, Worker)
    downloads = crawler.stats.get_value("robotstxt/request_count", 0)
    json.dump({"pages": crawler.spider.pages, "last": Worker.last, "downloads": downloads}, sys.stdout)


if __name__ == "__main__":
    main()
