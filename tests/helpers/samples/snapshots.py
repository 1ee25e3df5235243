"""Snapshots for the tests of stores."""

from __future__ import annotations

import random
import time

from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Origin

ORIGIN = Origin("http", "town.example", 8080)


OTHER = Origin("https", "[::1]", 443)


FOUND = Snapshot(
    ORIGIN,
    "http://www.town.example:8080/robots.txt?a=%C3%A4",
    1_700_000_000.123,
    status=200,
    headers={"etag": '"\xe4\x00\u2028"', "cache-control": "max-age=600"},
    body=b"User-agent: *\r\nDisallow: /back/\n\x00\xff\xfe\r",
)


LOST = Snapshot(ORIGIN, ORIGIN.robots_url, 1_700_000_700.5, error="TimeoutError: \u2026", failures=3)


EMPTY = Snapshot(OTHER, OTHER.robots_url, 0.0, status=404)


def noise(size: int) -> bytes:
    """Return a body that cannot be compressed, the same each time."""
    return random.Random(size).randbytes(size)


MAX_BYTES = 256 * 1024


def later() -> float:
    return time.time() + 3600
