"""``throttled``: the cost of robots.txt handling in a broad crawl with AutoThrottle.

1,000 hosts of 5 pages that respond after 0.2 to 5 seconds, in mixed order; 120 requests at once. Measured:
the time until the last page has arrived, and the shortest interval between two requests to a host, by the log
of the server.
"""

from __future__ import annotations

from benchmarks.crawl import compare
from benchmarks.polite import mixed, show

HOSTS, PAGES = 1000, 5
SETTINGS = {"AUTOTHROTTLE_ENABLED": True, "CONCURRENT_REQUESTS": 120}


def run(rounds: int) -> None:
    """Measure, and print the table."""
    seen = compare(mixed("127.5", HOSTS, PAGES), SETTINGS, rounds)
    show(f"throttled: medians of {rounds} rounds", seen)
