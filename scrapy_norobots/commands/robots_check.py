"""``scrapy robots-check URL...``: check whether URLs may be crawled, and why.

The same `RobotsLoader` as in a crawl with the same settings loads each robots.txt; no page is downloaded. The
output has one line per URL and robot, in the order given, while more URLs are read: ``allowed``,
``forbidden``, or ``unknown`` if there is no answer. The exit status is 2 if any URL is unknown, else 1 if any
is forbidden, else 0.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError

from scrapy_norobots.commands.answerer import Answerer
from scrapy_norobots.commands.base import (
    STDIN,
    CommandError,
    RobotsCommand,
    display_name,
    read_input,
    write,
)
from scrapy_norobots.commands.progress import Progress
from scrapy_norobots.commands.sources import ComparingSource, FileSource, SiteSource, Source, StoreSource
from scrapy_norobots.commands.spider import run_spider
from scrapy_norobots.commands.stream import Stream
from scrapy_norobots.commands.url_reader import UrlReader
from scrapy_norobots.scrapy_api.identity import Identity
from scrapy_norobots.settings import Config
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
        """Add the options of the command."""
        super().add_options(parser)
        parser.add_argument(
            "--robot",
            metavar="NAME",
            action="append",
            default=[],
            help="robot to check for: a name or a whole User-Agent header; can be given several times",
        )
        parser.add_argument(
            "--file", metavar="PATH", help="read this robots.txt for all sites ('-': standard input)"
        )
        parser.add_argument(
            "--store",
            metavar="STORE",
            help="answer from this store, a value of NOROBOTS_STORE; nothing is downloaded",
        )
        parser.add_argument(
            "--compare", action="store_true", help="also show what an RFC 9309 parser answers"
        )

    def process_options(self, args: list[str], opts: Namespace) -> None:
        """Read settings and options. Raises `UsageError` if one is invalid."""
        super().process_options(args, opts)
        for robot in opts.robot:
            if not to_name(robot):
                raise UsageError(f"--robot {robot!r}: must contain the name of a robot")
        for option, value in (("--file", opts.file), ("--store", opts.store)):
            if value == "":
                raise UsageError(f"{option}: the path is empty")
        if opts.file == STDIN and STDIN in args:
            raise UsageError("standard input cannot be both a robots.txt and a list of URLs")
        if opts.file is not None and opts.store is not None:
            raise UsageError("--file and --store cannot be combined")

    def run(self, args: list[str], opts: Namespace) -> None:
        """Write the answers for each URL."""
        self._opts = opts
        try:
            self._file = None
            if opts.file is not None:
                self._file = display_name(opts.file), read_input(opts.file, self.config.maxsize)
            self._reader = UrlReader(args)
            run_spider(self.crawler_process, self._prepare)
        except CommandError as exc:
            self.fail(str(exc))
        else:
            self.exitcode = self._answerer.status

    def _prepare(self, crawler: Crawler) -> Coroutine[Any, Any, None]:
        """Return the work, by the settings of a crawler. Raises `ValueError` if one is invalid."""
        opts, config = self._opts, Config.from_settings(crawler.settings)
        robots = opts.robot or [Identity(crawler, config.robot).robot(Request("http://localhost/"))]
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
        # Someone who types URLs needs no progress bar.
        progress = Progress(is_wanted=not (self._reader.has_stdin and sys.stdin.isatty()))

        def write_answers(answers: list[str]) -> None:
            progress.make_way()
            write(answers)

        self._answerer = Answerer(robots, as_json=opts.json)
        return Stream(crawler, self._reader, source, self._answerer, write_answers, progress, thread).run()
