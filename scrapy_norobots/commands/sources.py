"""Where ``robots-check`` has the robots.txt of an origin from: its site, a file, or a store.

A `Source` says at once what is in memory, and loads what is not. All of them judge by the settings of the
crawl, and what they keep in memory is within its bounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from scrapy import signals
from scrapy.robotstxt import ProtegoRobotParser

from scrapy_norobots import compat
from scrapy_norobots.access import Access, Judge, StatusPolicy
from scrapy_norobots.commands.existing import ExistingStore
from scrapy_norobots.loader import RobotsLoader
from scrapy_norobots.origins import OriginCache
from scrapy_norobots.parser import Reader
from scrapy_norobots.report import CrawlReport
from scrapy_norobots.snapshot import Snapshot
from scrapy_norobots.standard import Origin
from scrapy_norobots.standard.robotstxt import SMALL_BODY

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_norobots.settings import Config

_T = TypeVar("_T")


class Found(NamedTuple):
    """What may be fetched at an origin.

    `rfc9309` is what RFC 9309 makes of the same robots.txt, if that is asked. `fresh_for` is set for what a
    store kept: for how many seconds a crawl would still use it, 0 if it would ask the site.
    """

    access: Access
    rfc9309: Access | None = None
    fresh_for: float | None = None


class Source(Protocol):
    """Where a robots.txt comes from. Only the event loop's thread calls it."""

    def get(self, origin: Origin) -> Found | None:
        """Return what is in memory."""

    async def load(self, origin: Origin, request: Request) -> Found | None:
        """Load an origin, on behalf of a request; None if there is nothing of it.

        Raises `CommandError` if no more questions can be answered.
        """


class SiteSource:
    """The sites, each asked as a crawl asks it: once within the freshness of its robots.txt."""

    def __init__(self, crawler: Crawler, config: Config, robot: str | bytes) -> None:
        """Raise `ValueError` for a setting that cannot be used."""
        self._loader = RobotsLoader(crawler, config, CrawlReport(crawler, config))
        self._robot = robot

    def get(self, origin: Origin) -> Found | None:
        """Return what is in memory and fresh."""
        access = self._loader.origins.get(origin)
        return None if access is None else Found(access)

    async def load(self, origin: Origin, request: Request) -> Found:
        """Download the robots.txt of an origin."""
        return Found((await self._loader.load(origin, request, self._robot)).access)


class FileSource:
    """One file, a name and its content, that stands for the robots.txt of every origin."""

    def __init__(self, crawler: Crawler, config: Config, name: str, body: bytes) -> None:
        """Raise `ValueError` for a parser that cannot be used."""
        anywhere = Origin("http", "localhost", 80)  # what is asked says which origin it is about
        snapshot = Snapshot(anywhere, name, time.time(), status=200, body=body)
        self._found = Found(_judge(crawler, config).judge(snapshot))

    def get(self, origin: Origin) -> Found:
        """Return what the file says."""
        return self._found

    async def load(self, origin: Origin, request: Request) -> Found:
        """Do the same as `get`."""
        return self._found


class StoreSource:
    """A store, in which each origin is looked up once, fresh or not. No site is asked."""

    def __init__(self, crawler: Crawler, config: Config, value: str, thread: Executor) -> None:
        """Raise `ValueError` for a store or a parser that cannot be used."""
        self._judge = _judge(crawler, config)
        self._thread = thread
        self._origins = OriginCache(origins_max=config.origins_max, memory_max=config.memory_max)
        self._store = ExistingStore(value, config.store_max, has_asyncio=compat.has_asyncio(crawler))
        crawler.signals.connect(self._store.close, signals.spider_closed)

    def get(self, origin: Origin) -> Found | None:
        """Return what was looked up before."""
        access = self._origins.latest(origin)
        if access is None:
            return None
        return Found(access, fresh_for=self._origins.remaining(origin))

    async def load(self, origin: Origin, request: Request) -> Found | None:
        """Look an origin up in the store."""
        snapshots = await self._store.load(origin)
        now = time.time()
        if not snapshots or not all(self._judge.freshness.has_an_age(one, now) for one in snapshots):
            return None
        recall = partial(self._judge.recall, snapshots, now)
        access = await _work(self._thread, sum(len(one.body) for one in snapshots), recall)
        self._origins.put(origin, access)
        return self.get(origin)


class ComparingSource:
    """Another source, with what RFC 9309 makes of the same robots.txt."""

    def __init__(self, source: Source, crawler: Crawler, config: Config, thread: Executor) -> None:
        self._source = source
        self._thread = thread
        # By the parser that comes with Scrapy.
        reader = Reader(crawler, ProtegoRobotParser, (), multivalue=False)
        self._judge = Judge(StatusPolicy.of("rfc9309"), config.freshness, reader.read)
        self._others = OriginCache(origins_max=config.origins_max, memory_max=config.memory_max)

    def get(self, origin: Origin) -> Found | None:
        """Return what is in memory, if both readings are."""
        found, other = self._source.get(origin), self._others.latest(origin)
        return None if found is None or other is None else found._replace(rfc9309=other)

    async def load(self, origin: Origin, request: Request) -> Found | None:
        """Load an origin, and have its robots.txt read once more."""
        found = await self._source.load(origin, request)
        if found is None:
            return None
        snapshot = found.access.snapshot
        other = await _work(self._thread, len(snapshot.body), partial(self._judge.judge, snapshot))
        self._others.put(origin, other)
        return found._replace(rfc9309=other)


def _judge(crawler: Crawler, config: Config) -> Judge:
    reader = Reader(crawler, config.parser, config.also_obey, multivalue=config.multivalue)
    return Judge(config.status_policy, config.freshness, reader.read)


async def _work(thread: Executor, size: int, work: Callable[[], _T]) -> _T:
    """Do work on some bytes of robots.txt; in a thread if it may take long."""
    return work() if size <= SMALL_BODY else await compat.in_thread(thread, work)
