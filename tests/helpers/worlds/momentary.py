"""Crawl many hosts, some of which are closed for a random time, and check the log of their server.

- No page was requested that robots.txt forbids, or whose host had not yet sent a robots.txt.
- No page was omitted, and none was requested twice.
- After a failure, no robots.txt was requested again before its back-off was over.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import NamedTuple

from tests.helpers.running.crawling import ADDON, Crawl, crawl
from tests.helpers.sites import Answer, Hit, Site, page

ERROR_TTL = 0.2
ROBOTS = "User-agent: *\nDisallow: /back/\n"
ALLOWED = [f"/{number}" for number in range(3)]
FORBIDDEN = ["/back/", "/b%61ck/1"]
FAILURES = [
    Answer(status=503),
    Answer(status=500),
    Answer(status=429, headers={"Retry-After": "soon"}),
    Answer("User-agent: *\nDisallow:\n", headers={"Content-Length": "999"}),  # cut off
]
SETTINGS = {
    **ADDON,
    "NOROBOTS_RETRY_CLOSED": 9,
    "NOROBOTS_ERROR_TTL": ERROR_TTL,
    "NOROBOTS_RETRY_TIMES": 0,
    "LOG_LEVEL": "INFO",
}


class Arrival(NamedTuple):
    """A request; `is_closed` is true for a robots.txt that failed."""

    time: float
    host: str
    target: str
    is_closed: bool = False


class Hosts(Site):
    """The hosts of a seed; a closed one opens at most `longest` seconds after its first request."""

    def __init__(self, hosts: int, closed: int, seed: int, longest: float) -> None:
        super().__init__(host="0.0.0.0")
        self._some = Random(seed)
        self.names = [f"127.8.{number // 250}.{number % 250 + 1}" for number in range(hosts)]
        self._closed = {
            name: self._some.uniform(0, longest) for name in self._some.sample(self.names, k=closed)
        }
        self._opens: dict[str, float] = {}
        self._lock = threading.Lock()
        self.log: list[Arrival] = []

    def answer(self, hit: Hit) -> Answer:
        # Too many connections would stay open, one for each of a thousand hosts.
        answer = self._answer(hit)
        return replace(answer, headers={**answer.headers, "Connection": "close"})

    def _answer(self, hit: Hit) -> Answer:
        now = time.monotonic()
        with self._lock:
            if hit.target != "/robots.txt":
                self.log.append(Arrival(now, hit.host, hit.target))
                return page()
            opens = self._opens.setdefault(hit.host, now + self._closed.get(hit.host, 0.0))
            self.log.append(Arrival(now, hit.host, hit.target, is_closed=now < opens))
            return self._some.choice(FAILURES) if now < opens else Answer(ROBOTS)

    def urls(self) -> list[str]:
        """Return all URLs, shuffled."""
        urls = [self.url_of(name) + target for name in self.names for target in ALLOWED + FORBIDDEN]
        self._some.shuffle(urls)
        return urls

    def faults(self) -> Iterator[str]:
        """Yield the violations of the invariant in the log."""
        pages: Counter[tuple[str, str]] = Counter()
        last: dict[str, Arrival] = {}
        failures: Counter[str] = Counter()
        for arrival in self.log:
            name, before = arrival.host, last.get(arrival.host)
            if arrival.target != "/robots.txt":
                pages[name, arrival.target] += 1
                if before is None or before.is_closed:
                    yield f"requested before its rules were known: {name}{arrival.target}"
                continue
            if before is not None and not before.is_closed:
                yield f"requested again while it is fresh: {name}"
            elif before is not None:
                seconds, back_off = arrival.time - before.time, ERROR_TTL * 2 ** (failures[name] - 1)
                if seconds < back_off:
                    yield f"requested again {back_off - seconds:.2f} s before its back-off was over: {name}"
            failures[name] += arrival.is_closed
            last[name] = arrival
        expected = Counter((name, target) for name in self.names for target in ALLOWED)
        yield from (f"forbidden, or requested twice: {one}" for one in pages - expected)
        yield from (f"left out: {one}" for one in expected - pages)


def run(hosts: int, closed: int, mode: str, seed: int = 1, longest: float = 2.0) -> tuple[Crawl, list[str]]:
    """Crawl the hosts of a seed; return the crawl and its violations."""
    with Hosts(hosts, closed, seed, longest) as site:
        done = crawl(*site.urls(), settings=SETTINGS, mode=mode, timeout=600)
        return done, list(site.faults())
