"""Sources of the robots.txt files of ``robots-check``: the sites, a file, or a store.

A `Source` returns at once what is in memory, and loads the rest. All sources judge with the settings of the
crawl, and keep its limits of memory.
"""

from __future__ import annotations

import time
from concurrent.futures import Executor
from functools import partial
from typing import NamedTuple, Protocol

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.robotstxt import ProtegoRobotParser

from scrapy_norobots.commands.existing import failures_of, open_existing
from scrapy_norobots.events import Events
from scrapy_norobots.features import report, usage
from scrapy_norobots.load.loader import RobotsLoader, read_bodies
from scrapy_norobots.load.origins import OriginCache
from scrapy_norobots.rules.access import Access, Judge, StatusPolicy
from scrapy_norobots.rules.parser import Reader
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.settings import Config
from scrapy_norobots.standard import Origin


class Found(NamedTuple):
    """The access to an origin.

    `rfc9309` is the access by RFC 9309 for the same download, with ``--compare``. `fresh_for` is set if the
    access is from a store: for how many seconds a crawl would still use it, or 0 if not any more.
    """

    access: Access
    rfc9309: Access | None = None
    fresh_for: float | None = None


class Source(Protocol):
    """A source of robots.txt files. Only the thread of the event loop calls it."""

    def get(self, origin: Origin) -> Found | None:
        """Return the access that is in memory, or None."""

    async def load(self, origin: Origin, request: Request) -> Found | None:
        """Load an origin for a request; return None if the source does not have it.

        Raises `CommandError` if the source fails for all origins.
        """


class SiteSource:
    """The sites themselves. As in a crawl, a robots.txt is downloaded again only when it has expired."""

    def __init__(self, crawler: Crawler, config: Config, robot: str | bytes) -> None:
        """Raise `ValueError` if a setting is invalid."""
        events = Events()
        report.subscribe(crawler, config, events)
        usage.subscribe(crawler, config, events)
        self._loader = RobotsLoader(crawler, config, events)
        self._robot = robot

    def get(self, origin: Origin) -> Found | None:
        """Return the access that is in memory and has not expired."""
        access = self._loader.origins.get(origin)
        return None if access is None else Found(access)

    async def load(self, origin: Origin, request: Request) -> Found:
        """Download the robots.txt of an origin."""
        return Found(await self._loader.load(origin, request, self._robot))


class FileSource:
    """One file, a name and a body, that replaces the robots.txt of every origin."""

    def __init__(self, crawler: Crawler, config: Config, name: str, body: bytes) -> None:
        """Raise `ValueError` if a parser cannot be used."""
        anywhere = Origin("http", "localhost", 80)  # the URLs have the origins
        snapshot = Snapshot(anywhere, name, time.time(), status=200, body=body)
        self._found = Found(_judge(crawler, config).judge(snapshot))

    def get(self, origin: Origin) -> Found:
        """Return the access by the file."""
        return self._found

    async def load(self, origin: Origin, request: Request) -> Found:
        """Return the same as `get`."""
        return self._found


class StoreSource:
    """A store, in which each origin is looked up once, also if it has expired. Nothing is downloaded."""

    def __init__(self, crawler: Crawler, config: Config, value: str, thread: Executor) -> None:
        """Raise `ValueError` if the store or a parser cannot be used."""
        self._judge = _judge(crawler, config)
        self._thread = thread
        self._origins = OriginCache(memory_max=config.memory_max)
        self._value = value
        self._store = open_existing(value, config.store_max, has_asyncio=compat.has_asyncio(crawler))
        crawler.signals.connect(self._store.close, signals.spider_closed)

    def get(self, origin: Origin) -> Found | None:
        """Return the access that was looked up before."""
        access = self._origins.latest(origin)
        if access is None:
            return None
        return Found(access, fresh_for=self._origins.remaining(origin))

    async def load(self, origin: Origin, request: Request) -> Found | None:
        """Look an origin up in the store."""
        with failures_of(self._value):
            snapshots = await self._store.load(origin)
        now = time.time()
        if not snapshots or not all(self._judge.freshness.has_plausible_age(one, now) for one in snapshots):
            return None
        recall = partial(self._judge.recall, snapshots, now)
        access = await read_bodies(self._thread, snapshots, recall)
        self._origins.put(origin, access)
        return self.get(origin)


class ComparingSource:
    """Another source, and the access by RFC 9309 for each of its downloads."""

    def __init__(self, source: Source, crawler: Crawler, config: Config, thread: Executor) -> None:
        self._source = source
        self._thread = thread
        # Scrapy's default parser.
        reader = Reader(crawler, ProtegoRobotParser, (), multivalue=False)
        self._judge = Judge(StatusPolicy.of("rfc9309"), config.freshness, reader.read)
        self._others = OriginCache(memory_max=config.memory_max)

    def get(self, origin: Origin) -> Found | None:
        """Return the access that is in memory, if both readings are."""
        found, other = self._source.get(origin), self._others.latest(origin)
        return None if found is None or other is None else found._replace(rfc9309=other)

    async def load(self, origin: Origin, request: Request) -> Found | None:
        """Load an origin, and read its robots.txt by RFC 9309 too."""
        found = await self._source.load(origin, request)
        if found is None:
            return None
        snapshot = found.access.snapshot
        other = await read_bodies(self._thread, [snapshot], partial(self._judge.judge, snapshot))
        self._others.put(origin, other)
        return found._replace(rfc9309=other)


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
