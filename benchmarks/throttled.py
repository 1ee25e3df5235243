"""``throttled``: what robots.txt handling costs a broad crawl with AutoThrottle.

1,000 hosts of 5 pages that take 0.2 to 5 seconds for an answer, in mixed order; 120 requests at once.
Measured: when the last page has come, and the shortest interval between two requests to a host, by the
server's log.
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
