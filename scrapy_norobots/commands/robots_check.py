"""``scrapy robots-check URL...``: may these URLs be crawled, and why.

Each robots.txt is loaded and judged as a crawl with the same settings does it, by the same `RobotsLoader`; no
page is downloaded. A line a URL and robot, in the order given and while more are read: ``allowed``,
``forbidden``, or ``unknown`` where that could not be told. The exit status is 2 if any is unknown, else 1 if
any is forbidden, else 0.
"""

from __future__ import annotations

import sys
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.exceptions import UsageError

from scrapy_norobots.commands.answers import Answerer
from scrapy_norobots.commands.base import STDIN, InputError, RobotsCommand, display_name, read_input, write
from scrapy_norobots.commands.progress import Progress
from scrapy_norobots.commands.sources import ComparingSource, FileSource, SiteSource, Source, StoreSource
from scrapy_norobots.commands.spider import CommandError, run_spider
from scrapy_norobots.commands.stream import Stream
from scrapy_norobots.commands.urls import UrlReader
from scrapy_norobots.identity import Identity
from scrapy_norobots.settings import Config
from scrapy_norobots.standard.names import to_name

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from scrapy.crawler import Crawler


class RobotsCheck(RobotsCommand):
    """``scrapy robots-check``."""

    def syntax(self) -> str:
        """Return its arguments."""
        return "[options] URL..."

    def short_desc(self) -> str:
        """Return what it does."""
        return "Say whether robots.txt allows URLs, and why"

    def long_desc(self) -> str:
        """Return what it does, and how it ends."""
        return (
            "Download the robots.txt of each URL's site as a crawl would, and say whether it allows the "
            "URL, and why. '-' reads URLs from standard input, one a line, and answers while more are "
            "written. The exit status is 2 if that could not be told of some URL, else 1 if one is "
            "forbidden, else 0."
        )

    def add_options(self, parser: ArgumentParser) -> None:
        """Add its options."""
        super().add_options(parser)
        parser.add_argument(
            "--robot",
            metavar="NAME",
            action="append",
            default=[],
            help="whose rules apply: a name, or a whole User-Agent; may be given several times",
        )
        parser.add_argument(
            "--file", metavar="PATH", help="a robots.txt to read, for all sites ('-': standard input)"
        )
        parser.add_argument(
            "--store",
            metavar="STORE",
            help="answer from a store, as NOROBOTS_STORE names it; no site is asked",
        )
        parser.add_argument(
            "--compare", action="store_true", help="add what an RFC 9309 parser says, and where it differs"
        )

    def process_options(self, args: list[str], opts: Namespace) -> None:
        """Check the options; raise `UsageError` for bad ones."""
        super().process_options(args, opts)
        for robot in opts.robot:
            if not to_name(robot):
                raise UsageError(f"--robot names no robot: {robot!r}")
        if opts.file == STDIN and STDIN in args:
            raise UsageError("standard input cannot be both a robots.txt and a list of URLs")
        if opts.file is not None and opts.store is not None:
            raise UsageError("--file and --store cannot be combined")

    def run(self, args: list[str], opts: Namespace) -> None:
        """Answer for each URL."""
        try:
            file = None
            if opts.file is not None:
                file = display_name(opts.file), read_input(opts.file, self.config.maxsize)
            check = _Check(UrlReader(args), opts, file)
            run_spider(self.crawler_process, check.prepare)
        except (CommandError, InputError) as exc:
            self.fail(str(exc))
        else:
            self.exitcode = check.status


class _Check:
    """One run of the command; `file` is the name and the content of that of ``--file``."""

    def __init__(self, reader: UrlReader, opts: Namespace, file: tuple[str, bytes] | None) -> None:
        self._reader = reader
        self._opts = opts
        self._file = file
        self._answerer: Answerer | None = None
        # Whoever types URLs sees how far that is.
        is_typed = reader.has_stdin and sys.stdin.isatty()
        self._progress = Progress(is_wanted=not is_typed)

    @property
    def status(self) -> int:
        """The exit status that the answers ask for."""
        return self._answerer.status if self._answerer is not None else 0

    def prepare(self, crawler: Crawler) -> Coroutine[Any, Any, None]:
        """Return the work, by a crawler's settings; raise `ValueError` for invalid ones."""
        opts = self._opts
        config = Config.from_settings(crawler.settings)
        identity = Identity(crawler, config.robot)
        robots = opts.robot or [identity.robot(Request("http://localhost/"))]
        thread = ThreadPoolExecutor(1, "norobots-answers")
        source: Source
        if self._file is not None:
            source = FileSource(crawler, config, *self._file)
        elif opts.store is not None:
            source = StoreSource(crawler, config, opts.store, thread)
        else:
            source = SiteSource(crawler, config, robots[0])
        if opts.compare:
            source = ComparingSource(source, crawler, config, thread)
        self._answerer = Answerer(robots, as_json=opts.json)
        stream = Stream(crawler, self._reader, source, self._answerer, self._write, self._progress, thread)
        return stream.run()

    def _write(self, answers: list[str]) -> None:
        self._progress.make_way()
        try:
            write(answers)
        except OSError as exc:
            raise CommandError(f"standard output: {exc.strerror or exc}") from exc
