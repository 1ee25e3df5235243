"""``single``: the cost of the plugin without waiting: one host, 5,000 pages."""

from __future__ import annotations

from benchmarks.crawl import NAMES, compare
from benchmarks.report import table, with_ratio

PAGES = 5_000
SETTINGS = {"CONCURRENT_REQUESTS": 16, "CONCURRENT_REQUESTS_PER_DOMAIN": 16}


def run(rounds: int) -> None:
    """Measure and print the table."""
    seen = compare([f"127.1.0.1:{{port}}/{page}" for page in range(PAGES)], SETTINGS, rounds)
    rows = []
    for handler, all_measured in seen.items():
        base = seen["scrapy"]
        cpu = with_ratio(
            [one.cpu / PAGES * 1e6 for one in all_measured], [one.cpu / PAGES * 1e6 for one in base], "µs"
        )
        memory = with_ratio([one.peak / 1e6 for one in all_measured], [one.peak / 1e6 for one in base], "MB")
        rows.append([NAMES[handler], cpu, memory])
    columns = ["handler", "processor time a page", "peak memory"]
    table(f"single: medians of {rounds} rounds, ratios to Scrapy's own middleware", columns, rows)
