"""``closed``: what hosts that are closed for a moment cost the others.

700 healthy hosts of 10 pages, alone and among 300 of 3 pages whose robots.txt answers 503 for up to 4
seconds, each for a random time; 16 concurrent requests, a back-off of a second. The 300 are also crawled as
healthy hosts: what more pages cost is no matter of their being closed. Measured: when half, and when all, of
the 700 hosts' pages have come. Every page of every host comes.
"""

from __future__ import annotations

import random

from benchmarks.crawl import Measured, measure, serving
from benchmarks.report import progress, table, with_ratio

HEALTHY, PAGES, OTHERS, OTHER_PAGES = 700, 10, 300, 3
SETTINGS = {
    "CONCURRENT_REQUESTS": 16,
    "NOROBOTS_RETRY_CLOSED": 9,
    "NOROBOTS_ERROR_TTL": 1,
    "NOROBOTS_RETRY_TIMES": 0,
}
# Kinds of hosts, by their network. Pages of the first are measured.
CRAWLS = {"700 hosts alone": "", "and 300 healthy ones": "127.7", "and 300 closed ones": "127.6"}


def urls(port: int, network: str) -> list[str]:
    """All pages of all hosts, in an order that is mixed, and the same each time."""
    hosts = [("127.1", number, PAGES) for number in range(HEALTHY)]
    if network:
        hosts += [(network, number, OTHER_PAGES) for number in range(OTHERS)]
    mixed = [
        f"http://{start}.{number // 250}.{number % 250 + 1}:{port}/{page}"
        for start, number, pages in hosts
        for page in range(pages)
    ]
    random.Random(1994).shuffle(mixed)
    return mixed


def run(rounds: int) -> None:
    """Measure and print the table."""
    seen: dict[str, list[Measured]] = {name: [] for name in CRAWLS}
    for number in range(1, rounds + 1):
        for name, network in CRAWLS.items():
            progress(f"round {number} of {rounds}: {name}")
            with serving() as port:
                pages = urls(port, network)
                measured = measure("norobots", pages, SETTINGS, healthy="//127.1.")
                assert measured.stats["norobots/passed"] == len(pages), "every page comes"
                assert len(measured.arrivals) == HEALTHY * PAGES
                seen[name].append(measured)
    rows = []
    for name, all_measured in seen.items():
        base = seen["and 300 healthy ones"]
        medians = with_ratio([one.median for one in all_measured], [one.median for one in base])
        lasts = with_ratio([one.arrivals[-1] for one in all_measured], [one.arrivals[-1] for one in base])
        cpu = with_ratio([one.cpu for one in all_measured], [one.cpu for one in base])
        waited = sum(one.stats.get("norobots/retry/waited", 0) for one in all_measured) // rounds
        rows.append([name, medians, lasts, cpu, str(waited)])
    columns = [
        "hosts",
        "median page of the 700",
        "last page of the 700",
        "processor time",
        "requests that waited",
    ]
    table(f"closed: medians of {rounds} rounds", columns, rows)
