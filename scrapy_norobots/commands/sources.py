"""Sources of the robots.txt files of ``robots-check``: the sites, a file, or a store.

A `Source` returns at once what is in memory, and loads the rest. All sources judge with the settings of the
crawl, and keep its limits of memory. The functions that make one raise `ValueError` if a setting is invalid.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from scrapy import Request, signals
from scrapy.crawler import Crawler

from scrapy_norobots.commands.base import failures_of, open_existing
from scrapy_norobots.events import Events
from scrapy_norobots.features import report, usage
from scrapy_norobots.load.loader import RobotsLoader
from scrapy_norobots.load.origins import OriginCache
from scrapy_norobots.rules.access import Access, Judge, StatusPolicy
from scrapy_norobots.rules.parser import Reader, Rfc9309RobotParser
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.settings import Config
from scrapy_norobots.standard import Origin
from scrapy_norobots.standard.robotstxt import SMALL_BODY

_T = TypeVar("_T")


class Found(NamedTuple):
    """The access to an origin.

    `rfc9309` is the access by RFC 9309 for the same download, with ``--compare``. `fresh_for` is set if the
    access is from a store: for how many seconds a crawl would still use it, or 0 if not any more.
    """

    access: Access
    rfc9309: Access | None = None
    fresh_for: float | None = None


class Source(NamedTuple):
    """A source of robots.txt files. Only the thread of the event loop calls it.

    `get` returns the access that is in memory, or None. `load` loads an origin for a request; it returns None
    if the source does not have it, and raises `CommandError` if the source fails for all origins.
    """

    get: Callable[[Origin], Found | None]
    load: Callable[[Origin, Request], Awaitable[Found | None]]


def from_sites(crawler: Crawler, config: Config, robot: str | bytes) -> Source:
    """Return the sites. As in a crawl, a robots.txt is downloaded again only when it has expired."""
    events = Events()
    report.subscribe(crawler, config, events)
    usage.subscribe(crawler, config, events)
    loader = RobotsLoader(crawler, config, events)

    def get(origin: Origin) -> Found | None:
        access = loader.origins.get(origin)
        return None if access is None else Found(access)

    async def load(origin: Origin, request: Request) -> Found:
        return Found(await loader.load(origin, request, robot))

    return Source(get, load)


def from_file(crawler: Crawler, config: Config, name: str, body: bytes) -> Source:
    """Return one file, a name and a body, that replaces the robots.txt of every origin."""
    anywhere = Origin("http", "localhost", 80)  # the URLs have the origins
    snapshot = Snapshot(anywhere, name, time.time(), status=200, body=body)
    found = Found(_judge(crawler, config).judge(snapshot))

    async def load(origin: Origin, request: Request) -> Found:
        return found

    return Source(lambda _: found, load)


def from_store(crawler: Crawler, config: Config, value: str) -> Source:
    """Return a store, in which each origin is looked up once, also if it has expired."""
    judge = _judge(crawler, config)
    origins = OriginCache(memory_max=config.memory_max)
    store = open_existing(value, config.store_max)
    crawler.signals.connect(store.close, signals.spider_closed, weak=False)

    def get(origin: Origin) -> Found | None:
        access = origins.latest(origin)
        return None if access is None else Found(access, fresh_for=origins.remaining(origin))

    async def load(origin: Origin, request: Request) -> Found | None:
        with failures_of(value):
            snapshots = await store.load(origin)
        now = time.time()
        if not snapshots or not all(judge.freshness.has_plausible_age(one, now) for one in snapshots):
            return None
        origins.put(origin, await _read(snapshots, partial(judge.recall, snapshots, now)))
        return get(origin)

    return Source(get, load)


def with_rfc9309(source: Source, crawler: Crawler, config: Config) -> Source:
    """Return a source with the access by RFC 9309 too, for each download of another source."""
    # Scrapy's default parser.
    reader = Reader(crawler, Rfc9309RobotParser, (), multivalue=False)
    judge = Judge(StatusPolicy.of("rfc9309"), config.freshness, reader.read)
    others = OriginCache(memory_max=config.memory_max)

    def get(origin: Origin) -> Found | None:
        found, other = source.get(origin), others.latest(origin)
        return None if found is None or other is None else found._replace(rfc9309=other)

    async def load(origin: Origin, request: Request) -> Found | None:
        found = await source.load(origin, request)
        if found is None:
            return None
        snapshot = found.access.snapshot
        other = await _read([snapshot], partial(judge.judge, snapshot))
        others.put(origin, other)
        return found._replace(rfc9309=other)

    return Source(get, load)


def _judge(crawler: Crawler, config: Config) -> Judge:
    reader = Reader(
        crawler,
        config.parser,
        config.also_obey,
        multivalue=config.multivalue,
        also_robots=config.also_robots,
        statements=usage.UsageConfig.from_settings(crawler.settings).reader(),
    )
    return Judge(config.status_policy, config.freshness, reader.read)


async def _read(snapshots: Sequence[Snapshot], work: Callable[[], _T]) -> _T:
    """Run `work`, which reads the bodies of `snapshots`; in a thread if they are large."""
    if sum(len(snapshot.body) for snapshot in snapshots) <= SMALL_BODY:
        return work()
    return await asyncio.to_thread(work)
