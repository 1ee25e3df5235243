"""``closed``: what hosts that are closed for a moment cost the others.

700 healthy hosts of 2 pages, alone and with 300 more whose robots.txt answers 503 for up to 4 seconds, each
for a random time; 8 concurrent requests, a back-off of a second. Once with healthy hosts that take 0.05 to
0.35 s for an answer, so that the crawl waits for the network, and once with hosts that answer at once, so
that it waits for the processor. Measured: when half, and when all, of the healthy hosts' pages have come. All
pages of all hosts come.
"""

from __future__ import annotations

import random

from benchmarks.crawl import Measured, measure, serving
from benchmarks.report import progress, table, with_ratio

HEALTHY, CLOSED, PAGES = 700, 300, 2
SETTINGS = {
    "CONCURRENT_REQUESTS": 8,
    "NOROBOTS_RETRY_CLOSED": 9,
    "NOROBOTS_ERROR_TTL": 1,
    "NOROBOTS_RETRY_TIMES": 0,
}
# How healthy hosts' addresses begin.
KINDS = {"0.05 to 0.35 s an answer": "127.4", "at once": "127.1"}


def urls(port: int, healthy: str, closed: int) -> list[str]:
    """All pages of all hosts, in an order that is mixed, and the same each time."""
    hosts = [(healthy, number) for number in range(HEALTHY)]
    hosts += [("127.6", number) for number in range(closed)]
    mixed = [
        f"http://{start}.{number // 250}.{number % 250 + 1}:{port}/{page}"
        for start, number in hosts
        for page in range(PAGES)
    ]
    random.Random(1994).shuffle(mixed)
    return mixed


def run(rounds: int) -> None:
    """Measure and print the table."""
    seen: dict[tuple[str, int], list[Measured]] = {}
    for number in range(1, rounds + 1):
        for kind, start in KINDS.items():
            for closed in (0, CLOSED):
                progress(f"round {number} of {rounds}: {kind}, {closed} closed hosts")
                with serving() as port:  # each crawl finds them closed
                    pages = urls(port, start, closed)
                    measured = measure("norobots", pages, SETTINGS, healthy=f"//{start}.")
                assert measured.stats["norobots/passed"] == len(pages), "every page comes"
                seen.setdefault((kind, closed), []).append(measured)
    rows = []
    for (kind, closed), all_measured in seen.items():
        base = seen[kind, 0]
        medians = with_ratio([one.median for one in all_measured], [one.median for one in base])
        lasts = with_ratio([one.arrivals[-1] for one in all_measured], [one.arrivals[-1] for one in base])
        cpu = with_ratio([one.cpu for one in all_measured], [one.cpu for one in base])
        waited = max(one.stats.get("norobots/retry/waited", 0) for one in all_measured)
        rows.append([kind, str(closed), medians, lasts, cpu, str(waited)])
    columns = ["healthy hosts", "closed ones", "median page", "last page", "processor time", "waited"]
    table(f"closed: medians of {rounds} rounds", columns, rows)
