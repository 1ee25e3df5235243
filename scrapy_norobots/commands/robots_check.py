"""``scrapy robots-check URL...``: check whether URLs may be crawled, and why.

The same `RobotsLoader` as in a crawl with the same settings loads each robots.txt; no page is downloaded. The
output has one line per URL and robot, in the order given, while more URLs are read: ``allowed``,
``forbidden``, or ``unknown`` if there is no answer. The exit status is 2 if any URL is unknown, else 1 if any
is forbidden, else 0.
"""

from __future__ import annotations

import asyncio
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
    open_existing,
    read_input,
    run_spider,
)
from scrapy_norobots.commands.stream import Answerer, Lookup, Stream
from scrapy_norobots.events import Events
from scrapy_norobots.features import report, usage
from scrapy_norobots.load.loader import OriginCache, RobotsLoader
from scrapy_norobots.rules.access import Access, Judge, StatusPolicy
from scrapy_norobots.rules.parser import Reader, Rfc9309RobotParser
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.scrapy_api.identity import Identity
from scrapy_norobots.settings import Config
from scrapy_norobots.standard import Origin
from scrapy_norobots.standard.names import to_name


class RobotsCheck(RobotsCommand):
    """``scrapy robots-check``."""

    arguments = "URL..."
    summary = "Check whether robots.txt allows URLs, and why"
    description = (
        "Download the robots.txt of each URL's site as a crawl would, and print whether it allows the URL, "
        "and why. '-' reads URLs from standard input, one per line, and answers while more are written. The "
        "exit status is 2 if the answer for any URL is unknown, else 1 if any URL is forbidden, else 0."
    )

    def add_options(self, parser: ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--robot",
            metavar="NAME",
            action="append",
            default=[],
            help="robot to check for: a name or a whole User-Agent header; can be given several times",
        )
        source = parser.add_mutually_exclusive_group()
        source.add_argument(
            "--file", metavar="PATH", help="read this robots.txt for all sites ('-': standard input)"
        )
        source.add_argument(
            "--store",
            metavar="STORE",
            help="answer from this store, a value of NOROBOTS_STORE; nothing is downloaded",
        )
        parser.add_argument("--compare", action="store_true", help="also show the answer by RFC 9309")

    def process_options(self, args: list[str], opts: Namespace) -> None:
        super().process_options(args, opts)
        for robot in opts.robot:
            if not to_name(robot):
                raise UsageError(f"--robot {robot!r}: must contain the name of a robot")
        for option, value in (("--file", opts.file), ("--store", opts.store)):
            if value == "":
                raise UsageError(f"{option}: the path is empty")
        if opts.file == STDIN and STDIN in args:
            raise UsageError("standard input cannot be both a robots.txt and a list of URLs")

    def work(self, args: list[str], opts: Namespace) -> None:
        file = None
        if opts.file is not None:
            file = display_name(opts.file), read_input(opts.file, self.config.maxsize)
        # Someone who types URLs needs no progress.
        progress = Progress(is_wanted=not (STDIN in args and sys.stdin and sys.stdin.isatty()))
        progress.show("starting")
        try:
            run_spider(self.crawler_process, partial(self._answer, args, opts, progress, file))
        finally:
            progress.clear()
        self.exitcode = self._answerer.status

    async def _answer(
        self,
        args: list[str],
        opts: Namespace,
        progress: Progress,
        file: tuple[str, bytes] | None,
        crawler: Crawler,
    ) -> None:
        """Answer all URLs, by the settings of a crawler. Raises `SettingError` if one is invalid."""
        config = Config.from_settings(crawler.settings)
        robots = opts.robot or [Identity(crawler, config.robot).robot(Request("http://localhost/"))]
        if file is not None:
            lookup = _from_file(crawler, config, *file)
        elif opts.store is not None:
            lookup = _from_store(crawler, config, opts.store)
        else:
            lookup = _from_sites(crawler, config, robots[0])
        self._answerer = Answerer(
            robots,
            as_json=opts.json,
            by_rfc9309=_by_rfc9309(crawler, config) if opts.compare else None,
            is_stored=opts.store is not None,
        )
        await Stream(crawler, lookup, self._answerer, progress).run(args)


# Where robots.txt files come from. All are judged with the settings of the crawl, and its limits of memory.


def _from_sites(crawler: Crawler, config: Config, robot: str | bytes) -> Lookup:
    """Return the sites. As in a crawl, a robots.txt is downloaded again only when it has expired."""
    events = Events()
    report.subscribe(crawler, config, events)
    usage.subscribe(crawler, config, events)
    loader = RobotsLoader(crawler, config, events)
    return Lookup(loader.origins.get, lambda origin, request: loader.load(origin, request, robot))


def _from_file(crawler: Crawler, config: Config, name: str, body: bytes) -> Lookup:
    """Return one file, a name and a body, that replaces the robots.txt of every origin."""
    anywhere = Origin("http", "localhost", 80)  # the URLs have the origins
    access = _judge(crawler, config).judge(Snapshot(anywhere, name, time.time(), status=200, body=body))

    async def load(origin: Origin, request: Request) -> Access:
        return access

    return Lookup(lambda _: access, load)


def _from_store(crawler: Crawler, config: Config, value: str) -> Lookup:
    """Return a store, in which each origin is looked up once, also if it has expired."""
    judge = _judge(crawler, config)
    origins = OriginCache(memory_max=config.memory_max)
    store = open_existing(value, config.store_max)
    crawler.signals.connect(store.close, signals.spider_closed, weak=False)

    async def load(origin: Origin, request: Request) -> Access:
        with failures_of(value):
            snapshots = await store.load(origin)
        now = time.time()
        if not snapshots or not all(judge.freshness.has_plausible_age(one, now) for one in snapshots):
            raise LookupError(f"{origin} is not in the store")
        # A parser of the user reads the whole file at once.
        access = await asyncio.to_thread(judge.recall, snapshots, now)
        origins.put(origin, access)
        return access

    return Lookup(origins.latest, load)


def _by_rfc9309(crawler: Crawler, config: Config) -> Callable[[Access], Access]:
    """Return a function that judges the download of an access by RFC 9309."""
    reader = Reader(crawler, Rfc9309RobotParser, (), multivalue=False)
    judge = Judge(StatusPolicy.of("rfc9309"), config.freshness, reader.read)
    others = OriginCache(memory_max=config.memory_max)

    def compared(access: Access) -> Access:
        snapshot = access.snapshot
        other = others.latest(snapshot.origin)
        if other is None or other.snapshot.time != snapshot.time:
            other = judge.judge(snapshot)  # which reads nothing yet
            others.put(snapshot.origin, other)
        return other

    return compared


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
