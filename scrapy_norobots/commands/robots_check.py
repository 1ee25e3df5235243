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
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError

from scrapy_norobots.commands.answerer import Answerer
from scrapy_norobots.commands.base import (
    STDIN,
    CommandError,
    Progress,
    RobotsCommand,
    display_name,
    read_input,
)
from scrapy_norobots.commands.sources import from_file, from_sites, from_store, with_rfc9309
from scrapy_norobots.commands.spider import run_spider
from scrapy_norobots.commands.stream import Stream, UrlReader
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
        if opts.file is not None and opts.store is not None:
            raise UsageError("--file and --store cannot be combined")

    def run(self, args: list[str], opts: Namespace) -> None:
        try:
            file = None
            if opts.file is not None:
                file = display_name(opts.file), read_input(opts.file, self.config.maxsize)
            reader = UrlReader(args)
            run_spider(self.crawler_process, lambda crawler: self._prepare(crawler, opts, reader, file))
        except CommandError as exc:
            self.fail(str(exc))
        else:
            self.exitcode = self._answerer.status

    def _prepare(
        self, crawler: Crawler, opts: Namespace, reader: UrlReader, file: tuple[str, bytes] | None
    ) -> Coroutine[Any, Any, None]:
        """Return the work, by the settings of a crawler. Raises `ValueError` if one is invalid."""
        config = Config.from_settings(crawler.settings)
        robots = opts.robot or [Identity(crawler, config.robot).robot(Request("http://localhost/"))]
        if file is not None:
            source = from_file(crawler, config, *file)
        elif opts.store is not None:
            source = from_store(crawler, config, opts.store)
        else:
            source = from_sites(crawler, config, robots[0])
        if opts.compare:
            source = with_rfc9309(source, crawler, config)
        # Someone who types URLs needs no progress bar.
        progress = Progress(is_wanted=not (reader.has_stdin and sys.stdin.isatty()))
        self._answerer = Answerer(robots, as_json=opts.json)
        return Stream(crawler, reader, source, self._answerer, progress).run()
