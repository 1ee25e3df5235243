"""``polite``: the cost of robots.txt handling in a crawl with the delays of ``scrapy startproject``.

300 hosts of 2 pages that respond after 0.05 to 0.35 seconds, in mixed order; one request at a time per host,
with 0.5 to 1.5 seconds between two. Measured: the time until the last page has arrived, and the shortest
interval between two requests to a host, by the log of the server.
"""

from __future__ import annotations

import random

from benchmarks.crawl import HANDLERS, NAMES, Measured, compare
from benchmarks.report import table, with_ratio

HOSTS, PAGES = 300, 2
SETTINGS = {"CONCURRENT_REQUESTS_PER_DOMAIN": 1, "DOWNLOAD_DELAY": 1}


def mixed(network: str, hosts: int, pages: int) -> list[str]:
    """Return pages of a network of `benchmarks.server`, in a mixed order that is always the same."""
    paths = [
        f"{network}.{host // 250}.{host % 250 + 1}:{{port}}/{page}"
        for host in range(hosts)
        for page in range(pages)
    ]
    random.Random(1994).shuffle(paths)
    return paths


def show(title: str, seen: dict[str, list[Measured]]) -> None:
    """Print the time of the last pages, and the shortest intervals between requests."""
    base = [one.arrivals[-1] for one in seen["none"]]
    rows = []
    for handler in HANDLERS:
        lasts = with_ratio([one.arrivals[-1] for one in seen[handler]], base)
        cpu = with_ratio([one.cpu for one in seen[handler]], [one.cpu for one in seen["none"]])
        shortest = min(one.shortest or 0 for one in seen[handler])
        rows.append([NAMES[handler], lasts, f"{shortest:.2f}", cpu])
    table(title, ["handler", "last page", "shortest interval [s]", "processor time"], rows)


def run(rounds: int) -> None:
    """Measure, and print the table."""
    seen = compare(mixed("127.4", HOSTS, PAGES), SETTINGS, rounds)
    show(f"polite: medians of {rounds} rounds", seen)
