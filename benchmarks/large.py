"""``large``: what large files cost: 1,500 hosts with one page each and a robots.txt of 100 kB."""

from __future__ import annotations

from benchmarks.crawl import NAMES, compare
from benchmarks.report import table, with_ratio

HOSTS = 1_500
SETTINGS = {"CONCURRENT_REQUESTS": 16}


def run(rounds: int) -> None:
    """Measure and print the table."""
    seen = compare(
        [f"127.7.{host // 250}.{host % 250 + 1}:{{port}}/" for host in range(HOSTS)], SETTINGS, rounds
    )
    rows = []
    for handler, all_measured in seen.items():
        base = seen["scrapy"]
        cpu = with_ratio([one.cpu for one in all_measured], [one.cpu for one in base])
        memory = with_ratio([one.peak / 1e6 for one in all_measured], [one.peak / 1e6 for one in base], "MB")
        rows.append([NAMES[handler], cpu, memory])
    table(f"large: medians of {rounds} rounds", ["handler", "processor time", "peak memory"], rows)
