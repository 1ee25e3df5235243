"""``scrapy robots-check URL...``: check whether URLs may be crawled, and why.

A `RobotsLoader` loads each robots.txt as in a crawl with the same settings, but for those in `base`; with
``--file`` or ``--store``, nothing is downloaded. No page ever is.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError

from scrapy_norobots.commands.base import (
    STDIN,
    Progress,
    RobotsCommand,
    display_name,
    failures_of,
    places,
    read_input,
    run_spider,
)
from scrapy_norobots.commands.stream import Get, Load, Stream
from scrapy_norobots.events import Events
from scrapy_norobots.features import usage
from scrapy_norobots.load.loader import RobotsLoader
from scrapy_norobots.rules.access import Access, Judge, OriginCache, StatusPolicy
from scrapy_norobots.rules.parser import Rfc9309RobotParser, reader_of
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.scrapy_api.identity import Identity
from scrapy_norobots.settings import Config
from scrapy_norobots.standard import Origin
from scrapy_norobots.standard.names import to_name
from scrapy_norobots.stores import with_home
from scrapy_norobots.stores.opening import open_store


class RobotsCheck(RobotsCommand):
    """Check whether robots.txt allows URLs, and why.

    Downloads the robots.txt of each URL's site as a crawl would. '-' reads URLs from standard input, one per
    line, and answers while more are written. The exit status is 2 if the answer for any URL is unknown, else
    1 if any URL is forbidden, else 0.
    """

    arguments = "URL..."

    def add_options(self, parser: ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--robot",
            metavar="NAME",
            action="append",
            default=[],
            help="check for this robot: a name or a whole User-Agent header (can be given several times)",
        )
        source = parser.add_mutually_exclusive_group()
        source.add_argument(
            "--file", metavar="PATH", help="read this robots.txt for all sites ('-': standard input)"
        )
        source.add_argument(
            "--store",
            metavar="STORE",
            help="answer from this store (written as in NOROBOTS_STORE), and download nothing",
        )
        parser.add_argument("--compare", action="store_true", help="also show the answer by RFC 9309")

    def process_options(self, args: list[str], opts: Namespace) -> None:
        super().process_options(args, opts)
        for robot in opts.robot:
            if not to_name(robot):
                raise UsageError(f"--robot {robot!r}: must contain the name of a robot")
        if opts.file == STDIN and STDIN in args:
            raise UsageError("standard input cannot be both a robots.txt and a list of URLs")

    def run(self, args: list[str], opts: Namespace) -> None:
        file = b"" if opts.file is None else read_input(opts.file, self.config.maxsize)
        # Someone who types URLs needs no progress.
        progress = Progress(is_wanted=STDIN not in args or not sys.stdin.isatty())
        progress.show("starting")
        try:
            run_spider(self.crawler_process, partial(self._answer, args, opts, progress, file))
        finally:
            progress.clear()

    async def _answer(
        self, args: list[str], opts: Namespace, progress: Progress, file: bytes, crawler: Crawler
    ) -> None:
        """Answer all URLs, by the settings of a crawler. Raises `SettingError` if one is invalid."""
        config = Config.from_settings(crawler.settings)
        robots = opts.robot or [Identity(crawler, config.robot).default]
        events = Events()
        usage.subscribe(crawler, config, events)
        loader = RobotsLoader(crawler, config, events)
        get: Get = loader.origins.get  # as in a crawl, a file is downloaded again only when it has expired
        load: Load = partial(loader.load, robot=robots[0])
        if opts.file is not None:
            anywhere = Origin("http", "localhost", 80)  # the file replaces that of every origin
            snapshot = Snapshot(anywhere, display_name(opts.file), time.time(), status=200, body=file)
            access = loader.judge.judge(snapshot)
            get = lambda _: access  # noqa: E731
        elif opts.store is not None:
            get = loader.origins.latest  # each origin is looked up once, also if it has expired
            load = _from_store(crawler, loader, opts.store)
        compared = _by_rfc9309(crawler, config, events) if opts.compare else None
        is_stored = opts.store is not None
        stream = Stream(get, load, robots, progress, places(crawler), opts.json, compared, is_stored)
        await stream.run(args)
        self.exitcode = stream.status


def _from_store(crawler: Crawler, loader: RobotsLoader, value: str) -> Load:
    with failures_of(value):
        store = open_store(with_home(value), loader.config.store_max, must_exist=True)
    crawler.signals.connect(store.close, signals.spider_closed, weak=False)

    async def load(origin: Origin, request: Request) -> Access:
        with failures_of(value):
            access = await loader.recall(await store.load(origin))
        if access is None:
            raise LookupError(f"{origin} is not in the store")
        loader.origins.put(origin, access)
        return access

    return load


def _by_rfc9309(crawler: Crawler, config: Config, events: Events) -> Callable[[Access], Access]:
    """Return a function that judges the download of an access by RFC 9309."""
    read = reader_of(
        crawler,
        Rfc9309RobotParser,
        (),
        multivalue=False,
        also_robots=config.also_robots,
        statements=events.statements.ask(),
    )
    judge = Judge(StatusPolicy.of("rfc9309"), config.freshness, read)
    others = OriginCache(memory_max=config.memory_max)

    def compared(access: Access) -> Access:
        snapshot = access.snapshot
        other = others.latest(snapshot.origin)
        if other is None or other.snapshot.time != snapshot.time:
            other = judge.judge(snapshot)  # which reads nothing yet
            others.put(snapshot.origin, other)
        return other

    return compared
