"""Judge the log of a crawl of a `World` by the settings of the crawl, and list the violations.

- No URL was requested that the current file of its origin forbids, or that no followed link led to.
- No URL was omitted that was found and that every current file since then allows. Temporary failures do not
  change this, as long as there are no more of them than retries.
- Each file was requested once per freshness period, not earlier, and no page was requested by an expired
  file.
- No two requests of an origin came closer together than its `Crawl-delay`.
- No page was requested more often than it has URLs.

A crawl that was closed and then resumed is judged as one.

The current file is determined without a tolerance of time. If a host gets one request at a time, a page that
passed its check arrives before the request for the next file, which is made only after the last file has
expired, and which is behind the page in Scrapy's queue. If a host gets N requests at a time, N - 1 pages may
be in transit when the next file is requested, so at most N - 1 pages that arrive later may follow the
previous file. The delay is checked without a tolerance too. Requests that are in transit together may arrive
at any time, but of N + 1 requests, the last one is sent after the response to one of the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import takewhile
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from scrapy import Request
from scrapy.robotstxt import RobotParser
from scrapy.utils.misc import load_object
from w3lib.url import canonicalize_url

from tests.helpers.judges import oracle, rfc9309
from tests.helpers.worlds.world import Arrival, File, World

# A statement at the end of some files.
REFUSAL = b"Content-Signal: search=yes, ai-train=no\n"


class Reading:
    """How a crawl with these settings reads a file, by the oracles and by the further parsers."""

    def __init__(self, settings: Mapping[str, Any], robot: str) -> None:
        self._robot = robot
        self._multivalue = settings.get("NOROBOTS_MULTIVALUE", False)
        also = settings.get("NOROBOTS_ALSO_OBEY", ())
        self._is_later = "rfc9309" in also
        self._parsers = [load_object(path) for path in also if path != "rfc9309"]
        self._also_robots = settings.get("NOROBOTS_ALSO_ROBOTS", ())
        self._trains = "ai-train" in settings.get("NOROBOTS_PURPOSES", ())
        self._longest_delay = settings.get("NOROBOTS_CRAWL_DELAY_MAX", 0)
        self._parsed = lru_cache(100)(self._parse)

    def _parse(self, body: bytes) -> list[RobotParser]:
        return [parser.from_crawler(None, _as_utf8(body)) for parser in self._parsers]

    def fails(self, body: bytes) -> bool:
        """Return whether one of the further parsers raises an exception on a file."""
        try:
            self._parsed(body)
        except Exception:  # a parser may raise anything
            return True
        return False

    def allows(self, body: bytes, url: str) -> bool:
        """Return whether all readings of a file allow a URL to all robots, and no statement refuses it.

        A parser that raises an exception allows nothing.
        """
        try:
            return all(
                oracle.allowed(body, url, robot, multivalue=self._multivalue)
                and (not self._is_later or rfc9309.allowed(body, url, robot))
                and all(parser.allowed(url, robot) for parser in self._parsed(body))
                for robot in (self._robot, *self._also_robots)
            ) and not (self._trains and body.endswith(REFUSAL) and urlsplit(url).path != "/robots.txt")
        except Exception:  # a parser may raise anything
            return False

    def delay(self, body: bytes) -> float:
        """Return the `Crawl-delay` that the crawl must keep, in seconds."""
        if not self._longest_delay:
            return 0
        asked: list[float | None]
        if self._parsers and hasattr(RobotParser, "crawl_delay"):  # from Scrapy 2.18 on
            asked = [parser.crawl_delay(self._robot) for parser in self._parsed(body)]
        else:
            asked = [rfc9309.delay(body, self._robot)]
        return float(min(max((each for each in asked if each is not None), default=0), self._longest_delay))


def _as_utf8(body: bytes) -> bytes:
    """Return a file as docs/readings.md says that parsers get it."""
    text = oracle.decode(body)
    return "".join(
        f"%{ord(letter) - 0xDC00:02X}" if "\ud800" <= letter <= "\udfff" else letter for letter in text
    ).encode()


class State(NamedTuple):
    """What applies at an origin: the rules of `body`. If it is None, `is_open` allows or denies all."""

    body: bytes | None
    is_open: bool
    lifetime: float
    failures: int = 0

    @property
    def is_closed_for_now(self) -> bool:
        return self.body is None and self.failures > 0


# The plugin spreads lifetimes: a file expires after 95 to 100 % of its lifetime.
LEAST_SHARE = 0.95

NOTHING_KNOWN = State(None, is_open=False, lifetime=0)


@dataclass
class Ask:
    """One request for the file of an origin, and what applied after its response (`since`)."""

    time: float
    state: State = NOTHING_KNOWN
    since: float | None = None
    pages: list[float] = field(default_factory=list)
    late: int = 0
    is_extended: bool = False  # the crawl has failed to replace the file, and a proxy has seen that
    is_unsure: bool = False  # the crawl may have lost the response


@dataclass
class Found:
    """The URLs of one resource, by their fingerprints, and when each fingerprint was found first."""

    urls: dict[str, set[str]] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)

    @property
    def time(self) -> float:
        return min(self.times.values())

    def spellings(self) -> list[str]:
        return [url for spelt in self.urls.values() for url in sorted(spelt)]

    def time_of(self, url: str) -> float:
        """Return when a URL that arrived in this form was found; its sender may have changed the spelling."""
        name = fingerprint(url)
        is_plain = name == resource(url)
        return self.time if is_plain or name not in self.times else self.times[name]


@dataclass
class Sent:
    """A request that an origin got, and the `Crawl-delay` that applied after its response, in seconds."""

    time: float
    delay: float


def fingerprint(url: str) -> str:
    """Return Scrapy's fingerprint of a URL, by which it filters duplicates."""
    return str(canonicalize_url(Request(url).url))


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _in_a_row(asks: list[Ask], last: int) -> int:
    """Return how many failures in a row a crawl may have counted at an ask that failed.

    A crawl that was resumed counts those of the previous run, or does not: it may have lost a response.
    """
    failed = takewhile(lambda ask: ask.state.is_closed_for_now, reversed(asks[: last + 1]))
    return max(asks[last].state.failures, sum(1 for _ in failed))


def _given_up(log: Sequence[Arrival]) -> list[Arrival]:
    """Return the requests for files that a crawl may have given up when it began to close.

    It may have sent them later, when their slot was free; the rules before them stay in use. No page shows
    that it has read their answers.
    """
    asked: dict[str, tuple[Arrival, bool]] = {}
    for arrival in log:
        if arrival.asker:
            is_first = arrival.url.endswith("/robots.txt") or arrival.asker not in asked
            asked[arrival.asker] = arrival if is_first else asked[arrival.asker][0], arrival.file is not None
        elif asked.get(arrival.origin, (None, False))[1]:
            del asked[arrival.origin]
    return [arrival for arrival, _ in asked.values()]


def without_dot_segments(url: str) -> str:
    """Return a URL as httpx sends it: dot segments are resolved, unless they are escaped."""
    parts = urlsplit(url)
    return urljoin(origin_of(url), parts.path + (f"?{parts.query}" if parts.query else ""))


def resource(url: str) -> str:
    """Return the resource that a URL names, in any spelling."""
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return fingerprint(origin_of(url) + oracle.normal(target, is_rule=False))


class Judge:
    """Reads a log; `faults` lists its violations of what the settings of the crawl promise.

    `before` is the judge of an earlier crawl with the same store. `closed` is the number of requests before
    the crawl was closed and resumed, and the origins whose files were being downloaded then: such a download
    may be lost. `asked` is how many times a file was requested.
    """

    def __init__(
        self,
        world: World,
        log: Sequence[Arrival],
        settings: Mapping[str, Any],
        before: Judge | None = None,
        closed: tuple[int, set[str]] | None = None,
    ) -> None:
        self._world = world
        self._settings = settings
        self._reading = Reading(settings, world.robot)
        self._asks: dict[str, list[Ask]] = {origin: [] for origin in world.files}
        self._begin = float("-inf")
        if before is not None:
            self._asks = {origin: asks[-1:] for origin, asks in before._asks.items()}
            self._begin = before.end
        self._resumed = self._begin  # the end of the run before
        self.end: float = log[-1].time if log else self._begin
        self._found: dict[str, Found] = {}
        self._arrived: dict[str, int] = defaultdict(int)
        self._lost_pages: dict[str, int] = defaultdict(int)
        self._lost_files: dict[str, list[float]] = defaultdict(list)  # when a proxy lost them, by origin
        self._doubted: set[str] = set()  # origins whose files were being downloaded when the crawl was closed
        self._sent: dict[str, list[Sent]] = {origin: [] for origin in world.files}
        self.asked = 0
        self.faults: list[str] = []
        self._given_up = _given_up(log[: closed[0]]) if closed else []
        for url in world.starts:
            if world.manner.way(url) == "scheduler":
                self._find(url, self._begin)
        for number, arrival in enumerate(log):
            if closed is not None and number == closed[0]:
                self._doubt(closed[1])
                self._resumed = log[number - 1].time if number else self._begin
            if not arrival.is_cached:
                self._pace(arrival)
            if not arrival.asker:
                self._page(arrival)
            elif arrival.is_lost:
                self._lose(arrival)
            else:
                self._robots(arrival)
        self.faults += self._left_out()
        self.faults += self._doubled()

    @cached_property
    def pages(self) -> int:
        return sum(self._arrived.values())

    def _find(self, url: str, when: float) -> None:
        found = self._found.setdefault(resource(url), Found())
        found.urls.setdefault(fingerprint(url), set()).add(url)
        found.times.setdefault(fingerprint(url), when)

    def _robots(self, arrival: Arrival) -> None:
        asks = self._asks[arrival.asker]
        if arrival.url.endswith("/robots.txt"):  # and not the target of a redirect
            if asks:
                self._check_freshness(asks[-1], arrival)
            asks.append(Ask(arrival.time, is_unsure=any(arrival is one for one in self._given_up)))
            self.asked += 1
        if arrival.file is not None:
            known = [ask for ask in asks[:-1] if not (ask.is_unsure and ask.state.failures)]
            before = self._counted(known[-1]) if known else NOTHING_KNOWN
            asks[-1].state, asks[-1].since = self._after(before, arrival.file), arrival.time
            if asks[-1].state.failures and len(asks) > 1:
                asks[-1].is_extended, asks[-1].is_unsure = asks[-2].is_extended, asks[-2].is_unsure
            if arrival.file.status is not None:
                self._sent[arrival.asker][-1].delay = self._delay(arrival.asker)

    def _lose(self, arrival: Arrival) -> None:
        """Take note that a proxy has sent no response on, so that only requests with that proxy are closed.

        If the origin has a file, it stays in use for a while.
        """
        asks = self._asks[arrival.asker]
        if asks and asks[-1].since is None:
            asks.pop()  # it was redirected
        self._lost_files[arrival.asker].append(arrival.time)
        if asks:
            asks[-1].is_extended = True

    def _doubt(self, origins: set[str]) -> None:
        """Take note that the crawl may have lost the last files of some origins.

        It may also have been closed between a redirect and the request for its target.
        """
        redirected = {origin for origin, asks in self._asks.items() if asks and asks[-1].since is None}
        self._doubted = origins | redirected
        for origin in self._doubted:
            if self._asks[origin]:
                self._asks[origin][-1].is_unsure = True

    def _after(self, state: State, file: File) -> State:
        """Return what applies after another response, by the default policy of the docs."""
        ttl, error_ttl = self._settings["NOROBOTS_TTL"], self._settings["NOROBOTS_ERROR_TTL"]
        if file.status == 304 or (file.status == 200 and not self._reading.fails(file.body)):
            return State(file.body, is_open=False, lifetime=ttl)
        if file.status in (403, 404):
            return State(None, is_open=file.status == 404, lifetime=ttl)
        failures = state.failures + 1
        return State(state.body, is_open=False, lifetime=error_ttl * 2 ** (failures - 1), failures=failures)

    def _check_freshness(self, last: Ask, arrival: Arrival) -> None:
        if last.is_unsure:
            return
        if last.since is None:
            self.faults.append(f"requested again before a response: {arrival.url}")
        elif (early := arrival.time - last.since) < LEAST_SHARE * self._counted(last).lifetime:
            lifetime = self._counted(last).lifetime
            self.faults.append(f"requested again after {early:.2f} s of {lifetime} s: {arrival.url}")

    def _counted(self, ask: Ask) -> State:
        """Return what applies after an ask; failures of earlier crawls count as one."""
        if not ask.state.failures or ask.since is None or ask.since > self._resumed:
            return ask.state
        return ask.state._replace(failures=1, lifetime=self._settings["NOROBOTS_ERROR_TTL"])

    def _delay(self, origin: str) -> float:
        """Return the `Crawl-delay` of an origin by its latest file, in seconds.

        That of the crawl before is known if it came from the store, and was not asked for again.
        """
        asks = self._asks[origin]
        known = [ask.state for ask in asks if ask.since and (ask.time > self._resumed or ask is asks[-1])]
        return self._reading.delay(known[-1].body) if known and known[-1].body is not None else 0

    def _pace(self, arrival: Arrival) -> None:
        """Check that a request keeps the `Crawl-delay` of its origin.

        Requests for the files of other origins, which a redirect sends here, are sent in the same slot. But
        one of them may be sent before the crawl has read the file of this origin.
        """
        # A file of the crawl before that is asked for again was not in the store any more.
        is_unknown = arrival.asker and all(ask.time <= self._resumed for ask in self._asks[arrival.origin])
        sent, delay = self._sent[arrival.origin], 0 if is_unknown else self._delay(arrival.origin)
        earlier = sent[-self._world.at_once :]
        if len(earlier) == self._world.at_once and arrival.asker in ("", arrival.origin):
            seconds = arrival.time - earlier[0].time
            least = min(delay, *(one.delay for one in earlier))
            if seconds < least:
                self.faults.append(f"requested {seconds:.3f} s after another, not {least} s: {arrival.url}")
        # The delay is counted from the response. Without a whole one, it is counted from the request, and how
        # long that took to arrive is unknown.
        is_cut_off = arrival.is_lost or (arrival.file is not None and arrival.file.status is None)
        sent.append(Sent(arrival.time, 0 if is_cut_off else delay))

    def _allows(self, state: State, url: str) -> bool:
        return state.is_open if state.body is None else self._reading.allows(state.body, url)

    def _page(self, arrival: Arrival) -> None:
        self._arrived[resource(arrival.url)] += 1
        self._lost_pages[resource(arrival.url)] += arrival.is_lost
        if resource(arrival.url) not in self._found:
            self.faults.append(f"requested, but no followed link led to it: {arrival.url}")
        for link in self._followed(arrival):
            self._find(link, arrival.time)
        asks = self._asks[arrival.origin]
        if not asks:
            self.faults.append(f"requested before any robots.txt: {arrival.url}")
        elif arrival.is_cached or asks[-1].is_unsure:
            # The crawl has used a page from its cache some time after its check.
            if not any(self._allows(one.state, arrival.url) for one in asks[-2:]):
                self.faults.append(f"forbidden by files {len(asks) - 1} and {len(asks)}: {arrival.url}")
        else:
            self._check(arrival, asks)

    def _check(self, arrival: Arrival, asks: list[Ask]) -> None:
        """Check that the current file of an origin allows a page."""
        ask, name = asks[-1], resource(arrival.url)
        if not self._allows(ask.state, arrival.url):
            ask.late += 1
            was_allowed = any(self._allows(one.state, arrival.url) for one in asks[-2:-1])
            if was_allowed and ask.late < self._world.at_once:
                return
            self.faults.append(f"forbidden by file {len(asks)}, and requested: {arrival.url}")
        # The file arrived before a page was checked by it, and N pages cannot all have been checked before.
        ask.pages.append(arrival.time)
        if len(ask.pages) >= self._world.at_once and name in self._found:
            expired = ask.pages[self._world.at_once - 1] + self._counted(ask).lifetime
            if not ask.is_extended and self._found[name].time_of(arrival.url) >= expired:
                self.faults.append(f"requested by file {len(asks)}, which had expired: {arrival.url}")

    def _followed(self, arrival: Arrival) -> Iterator[str]:
        """Yield the links that the spider follows: none of a page that it downloads itself."""
        manner = self._world.manner
        if arrival.is_lost or manner.way(arrival.url) != "scheduler":
            return
        for link in arrival.links:
            # A pipeline gets the items of pages whose links must not be followed, but not of "noindex" pages.
            is_followed = arrival.is_indexed if manner.way(link) == "pipeline" else arrival.follow
            if is_followed or not self._settings.get("NOROBOTS_META"):
                yield link

    def _retries(self, way: str) -> int:
        """Return how many temporary failures lose no request; only in `RobotsScheduler`, a request can wait.

        For a download that does not come from the scheduler, a callback or a pipeline waits. So it fails at
        once if the site is closed.
        """
        can_wait = way == "scheduler" and self._has_scheduler
        return int(self._settings.get("NOROBOTS_RETRY_CLOSED", 0)) if can_wait else 0

    @property
    def _has_scheduler(self) -> bool:
        return bool(self._settings["ADDONS"]) or "SCHEDULER" in self._settings

    def _left_out(self) -> Iterator[str]:
        for name, found in self._found.items():
            origin = origin_of(name)
            asks = self._asks[origin]
            way = self._world.manner.way(name)
            if way != "scheduler" and self._world.manner.close:
                continue  # a download of a callback or a pipeline may fail because the crawl closes
            if origin in self._doubted and not self._has_scheduler:
                continue  # without RobotsScheduler, a request that waits is dropped when the crawl closes
            has_proxy = "proxy" in self._world.manner.meta(name)
            if not asks and has_proxy and self._lost_files[origin]:
                continue  # only proxies were asked, and they are dead
            if not asks:
                yield f"never asked for its robots.txt: {origin}"
                continue
            first = max((number for number, ask in enumerate(asks) if ask.time <= found.time), default=0)
            first = max(0, first - asks[first].is_unsure)
            # A proxy that fails closes a site only to requests with a proxy.
            start = min(found.time, asks[first].time)
            losses = self._lost_files[origin] if has_proxy else []
            last = max((time for time in losses if time < start), default=start)  # it may close the site yet
            lost = [time for time in losses if time >= last]
            closed = [number for number in range(first, len(asks)) if asks[number].state.is_closed_for_now]
            others = [ask.state for ask in asks[first:] if not ask.state.is_closed_for_now]
            spelt = found.spellings()
            # A URL is also asked about as httpx and aiohttp send it, whatever handler the crawl has.
            sent = {*spelt, *map(without_dot_segments, spelt), name}
            if (
                self._arrived[name] < len(found.urls)
                and max((len(closed), *(_in_a_row(asks, number) for number in closed))) + len(lost)
                <= self._retries(way)
                and all(self._allows(state, url) for state in others for url in sent)
            ):
                yield f"left out, {self._arrived[name]} of {len(found.urls)} requested: {', '.join(spelt)}"

    def _doubled(self) -> Iterator[str]:
        for name, arrived in self._arrived.items():
            # Some download handlers repeat a request by themselves if the connection to the proxy breaks.
            count = arrived - self._lost_pages[name]
            # When a crawl is resumed, its spider does not know what it has downloaded itself.
            is_known_twice = self._world.manner.close and self._world.manner.way(name) != "scheduler"
            if name in self._found and count > len(self._found[name].urls) and not is_known_twice:
                spelt = ", ".join(self._found[name].spellings())
                yield f"requested {count} times, not {len(self._found[name].urls)}: {spelt}"
