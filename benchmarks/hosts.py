"""``hosts``: a broad crawl that consists of robots.txt files: 20,000 hosts with one page each."""

from __future__ import annotations

from benchmarks.crawl import NAMES, compare
from benchmarks.report import table, with_ratio

HOSTS = 20_000
SETTINGS = {"CONCURRENT_REQUESTS": 16}


def run(rounds: int) -> None:
    """Measure and print the table."""
    seen = compare(
        [f"127.3.{host // 250}.{host % 250 + 1}:{{port}}/" for host in range(HOSTS)], SETTINGS, rounds
    )
    rows = []
    for handler, all_measured in seen.items():
        base = seen["none"]
        rate = with_ratio(
            [HOSTS / one.seconds for one in all_measured], [HOSTS / one.seconds for one in base], "pages/s"
        )
        memory = with_ratio([one.peak / 1e6 for one in all_measured], [one.peak / 1e6 for one in base], "MB")
        rows.append([NAMES[handler], rate, memory])
    table(f"hosts: medians of {rounds} rounds", ["handler", "pages a second", "peak memory"], rows)
