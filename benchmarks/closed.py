"""``closed``: measure how much hosts that are temporarily closed delay the others.

Crawls 700 healthy hosts with 2 pages each, alone and with 300 more hosts whose robots.txt answers 503 for a
random time of up to 4 seconds; 8 concurrent requests, a back-off of one second. The healthy hosts respond
after 0.05 to 0.35 s, so that the network limits the crawl, or at once, so that the processor does. Measures
the time until half, and until all, of the healthy hosts' pages have arrived. All pages of all hosts arrive.
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
# The start of the healthy hosts' addresses, by their response time.
KINDS = {"0.05 to 0.35 s": "127.4", "at once": "127.1"}


def urls(port: int, healthy: str, closed: int) -> list[str]:
    """Return all pages of all hosts, shuffled in the same way each time."""
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
                with serving() as port:  # a new server, so that they are closed again
                    pages = urls(port, start, closed)
                    measured = measure("norobots", pages, SETTINGS, healthy=f"//{start}.")
                assert measured.stats["norobots/passed"] == len(pages), "every page arrives"
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
