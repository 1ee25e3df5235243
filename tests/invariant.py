"""Check the invariant end to end: crawl a random world, and let the oracle judge the log of its servers.

- No URL was requested that the current file of its origin forbids.
- No URL was omitted that was found and that every current file since then allows. Temporary failures do not
  change this, as long as there are no more of them than retries.
- Each file was requested once per freshness period, not earlier, and no page was requested by an expired
  file.

``python -m tests.invariant --seed N [--mode select] [--count K]`` runs it by hand. The world of a seed is
always the same; ports and the order of requests differ.

The current file is determined without a tolerance of time. If a host gets one request at a time, a page that
passed its check arrives before the request for the next file, which is made only after the last file has
expired, and which is behind the page in Scrapy's queue. If a host gets N requests at a time, N - 1 pages may
be in transit when the next file is requested, so at most N - 1 pages that arrive later may follow the
previous file.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from scrapy import Request
from w3lib.url import canonicalize_url

from tests import oracle, processes
from tests.crawling import ADDON, MODES, Crawl, crawl
from tests.sites.certificate import make_certificate
from tests.worlds import Arrival, File, Played, World

TTL, ERROR_TTL, TIMEOUT = 0.4, 0.2, 4.0
SETTINGS = {
    **ADDON,
    "NOROBOTS_TTL": TTL,
    "NOROBOTS_TTL_MIN": 0,
    "NOROBOTS_ERROR_TTL": ERROR_TTL,
    "NOROBOTS_TIMEOUT": TIMEOUT,
    "NOROBOTS_RETRY_TIMES": 0,
    "DOWNLOAD_DELAY": 0.03,
}


class State(NamedTuple):
    """What applies at an origin: the rules of a body or, without rules, everything or nothing is allowed."""

    body: bytes | None
    is_open: bool
    lifetime: float
    failures: int = 0

    @property
    def is_closed_for_now(self) -> bool:
        return self.body is None and self.failures > 0

    def allows(self, url: str, robot: str) -> bool:
        return self.is_open if self.body is None else oracle.allowed(self.body, url, robot)


NOTHING_KNOWN = State(None, is_open=False, lifetime=0)


def after(state: State, file: File) -> State:
    """Return what applies after another response, by the default policy of the docs."""
    if file.status == 200:
        return State(file.body, is_open=False, lifetime=TTL)
    if file.status == 304:
        return State(state.body, is_open=False, lifetime=TTL)
    if file.status in (403, 404):
        return State(None, is_open=file.status == 404, lifetime=TTL)
    failures = state.failures + 1
    return State(state.body, is_open=False, lifetime=ERROR_TTL * 2 ** (failures - 1), failures=failures)


@dataclass
class Ask:
    """One request for the file of an origin, and what applied after its response (`since`)."""

    time: float
    state: State = NOTHING_KNOWN
    since: float | None = None
    pages: list[float] = field(default_factory=list)
    late: int = 0


@dataclass
class Found:
    """The URLs that are one resource (`resource`), by Scrapy's fingerprints, and when each was found."""

    urls: dict[str, str] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)

    @property
    def time(self) -> float:
        return min(self.times.values())

    def time_of(self, url: str) -> float:
        """Return when a URL that arrived in this form was found; its sender may have changed the spelling."""
        name = fingerprint(url)
        is_plain = name == resource(url)
        return self.time if is_plain or name not in self.times else self.times[name]


def fingerprint(url: str) -> str:
    """Return Scrapy's fingerprint of a URL, by which it filters duplicates."""
    return str(canonicalize_url(Request(url).url))


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.lower()}"


def resource(url: str) -> str:
    """Return the resource that a URL names, in any spelling."""
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return fingerprint(origin_of(url) + oracle.normal(target, is_rule=False))


class Judge:
    """Reads a log; `faults` lists its violations of the invariant."""

    def __init__(self, world: World, log: Sequence[Arrival], retries: int = 0) -> None:
        self._world = world
        self._retries = retries
        self._asks: dict[str, list[Ask]] = {origin: [] for origin in world.files}
        self._found: dict[str, Found] = {}
        self._arrived: dict[str, int] = defaultdict(int)
        self.faults: list[str] = []
        for url in world.starts:
            self._find(url, float("-inf"))
        for arrival in log:
            if arrival.asker:
                self._robots(arrival)
            else:
                self._page(arrival)
        self.faults += self._left_out()

    @cached_property
    def files(self) -> int:
        return sum(map(len, self._asks.values()))

    @cached_property
    def pages(self) -> int:
        return sum(self._arrived.values())

    def _find(self, url: str, when: float) -> None:
        found = self._found.setdefault(resource(url), Found())
        found.urls.setdefault(fingerprint(url), url)
        found.times.setdefault(fingerprint(url), when)

    def _robots(self, arrival: Arrival) -> None:
        asks = self._asks[arrival.asker]
        if arrival.url.endswith("/robots.txt"):  # and not the target of a redirect
            if asks:
                self._check_freshness(asks[-1], arrival)
            asks.append(Ask(arrival.time))
        if arrival.file is not None:
            before = asks[-2].state if len(asks) > 1 else NOTHING_KNOWN
            asks[-1].state, asks[-1].since = after(before, arrival.file), arrival.time

    def _check_freshness(self, last: Ask, arrival: Arrival) -> None:
        if last.since is None:
            self.faults.append(f"requested again before a response: {arrival.url}")
        elif arrival.time < last.since + last.state.lifetime:
            early = arrival.time - last.since
            self.faults.append(
                f"requested again after {early:.2f} s of {last.state.lifetime} s: {arrival.url}"
            )

    def _page(self, arrival: Arrival) -> None:
        name = resource(arrival.url)
        self._arrived[name] += 1
        for link in arrival.links:
            self._find(link, arrival.time)
        asks = self._asks[arrival.origin]
        if not asks:
            self.faults.append(f"requested before any robots.txt: {arrival.url}")
            return
        ask, is_late = asks[-1], False
        if not ask.state.allows(arrival.url, self._world.robot):
            ask.late += 1
            is_late = ask.late < self._world.at_once and any(
                one.state.allows(arrival.url, self._world.robot) for one in asks[-2:-1]
            )
            if not is_late:
                self.faults.append(f"forbidden by file {len(asks)}, and requested: {arrival.url}")
        if is_late:
            return
        # The file arrived before a page was checked by it, and N pages cannot all have been checked before.
        ask.pages.append(arrival.time)
        if len(ask.pages) >= self._world.at_once and name in self._found:
            expired = ask.pages[self._world.at_once - 1] + ask.state.lifetime
            if self._found[name].time_of(arrival.url) >= expired:
                self.faults.append(f"requested by file {len(asks)}, which had expired: {arrival.url}")

    def _left_out(self) -> Iterator[str]:
        for name, found in self._found.items():
            origin = origin_of(name)
            asks = self._asks[origin]
            if not asks:
                yield f"never asked for its robots.txt: {origin}"
                continue
            first = max((number for number, ask in enumerate(asks) if ask.time <= found.time), default=0)
            closed = [ask.state for ask in asks[first:] if ask.state.is_closed_for_now]
            others = [ask.state for ask in asks[first:] if not ask.state.is_closed_for_now]
            if (
                self._arrived[name] < len(found.urls)
                and max((len(closed), *(state.failures for state in closed))) <= self._retries
                and all(
                    state.allows(url, self._world.robot) for state in others for url in found.urls.values()
                )
            ):
                spelt = ", ".join(found.urls.values())
                yield f"left out, {self._arrived[name]} of {len(found.urls)} requested: {spelt}"


class Outcome(NamedTuple):
    """The results of the crawl of one world."""

    judge: Judge
    crawl: Crawl
    log: list[Arrival]


def run_with_evidence(
    seed: int, mode: str, certificate: tuple[Path, Path], folder: Path, **job: Any
) -> Outcome:
    """Do as `run` does, and add what is wrong with the evidence of the crawl to the faults."""
    settings = {**job.pop("settings", {}), "NOROBOTS_EVIDENCE": str(folder)}
    outcome = run(seed, mode, certificate, settings=settings, **job)
    stats = outcome.crawl.stats
    made = (
        stats["norobots/passed"] + stats.get("robotstxt/forbidden", 0) + stats.get("norobots/overridden", 0)
    )
    if stats["norobots/evidence/decisions"] != made or "norobots/evidence/lost" in stats:
        outcome.judge.faults.append(f"of {made} decisions, {stats['norobots/evidence/decisions']} are stored")
    done = processes.run("scrapy", "robots-audit", str(folder))
    if done.returncode != 0 or f" {made:,} decision" not in done.stdout:
        outcome.judge.faults.append(f"the audit ended with {done.returncode}: {done.stdout}{done.stderr}")
    return outcome


def run(seed: int, mode: str, certificate: tuple[Path, Path], **job: Any) -> Outcome:
    """Crawl the world of a seed and judge the log. `job` may change the settings or the spider."""
    with Played(seed, certificate) as played:
        settings = {
            **SETTINGS,
            "USER_AGENT": played.world.robot,
            "CONCURRENT_REQUESTS_PER_DOMAIN": played.world.at_once,
            **job.pop("settings", {}),
        }
        arguments = {"follow": True, **job.pop("arguments", {})}
        done = crawl(*played.world.starts, settings=settings, mode=mode, arguments=arguments, **job)
        log = list(played.log)
    return Outcome(Judge(played.world, log, settings.get("NOROBOTS_RETRY_CLOSED", 0)), done, log)


def main() -> None:
    """Crawl worlds one after another, and print each violation."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.invariant", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--seed", type=int, default=1, help="of the first world (1)")
    parser.add_argument(
        "--count", type=int, default=1, help="how many worlds, of seeds one after another (1)"
    )
    parser.add_argument("--mode", choices=MODES, help="of the crawls (each)")
    parser.add_argument("--evidence", action="store_true", help="audit the evidence of each crawl too")
    parser.add_argument(
        "--retries", type=int, default=0, help="NOROBOTS_RETRY_CLOSED: retries of requests (0)"
    )
    parser.add_argument("--verbose", action="store_true", help="show the log of a world that failed")
    options = parser.parse_args()
    failed = pages = files = drops = 0
    modes = [options.mode] if options.mode else list(MODES)
    with tempfile.TemporaryDirectory() as folder:
        certificate = make_certificate(Path(folder))
        for seed in range(options.seed, options.seed + options.count):
            for mode in modes:
                changes = {"NOROBOTS_RETRY_CLOSED": options.retries}
                if options.evidence:
                    with tempfile.TemporaryDirectory() as evidence:
                        judge, done, log = run_with_evidence(
                            seed, mode, certificate, Path(evidence), settings=changes
                        )
                else:
                    judge, done, log = run(seed, mode, certificate, settings=changes)
                pages, files, drops = pages + judge.pages, files + judge.files, drops + len(done.drops)
                failed += bool(judge.faults)
                for fault in judge.faults:
                    print(f"seed {seed}, {mode}: {fault}", flush=True)
                if judge.faults and options.verbose:
                    print(*log, done.log, sep="\n")
    print(
        f"{options.count} worlds from seed {options.seed}, {', '.join(modes)}: {pages:,} pages requested, "
        f"{drops:,} requests dropped, {files:,} files asked for; {failed} crawls broke the invariant"
    )
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
