"""``scrapy robots-check URL...``: check whether URLs may be crawled, and why.

The same `RobotsLoader` as in a crawl with the same settings loads each robots.txt; no page is downloaded. The
output has one line per URL, in the order given: ``allowed``, ``forbidden``, or ``unknown`` if there is no
answer. The exit status is 2 if any URL is unknown, else 1 if any is forbidden, else 0.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.exceptions import UsageError
from scrapy.robotstxt import ProtegoRobotParser

from scrapy_norobots import compat
from scrapy_norobots.access import Access, Judge, StatusPolicy
from scrapy_norobots.commands.base import (
    GREEN,
    RED,
    STDIN,
    YELLOW,
    InputError,
    RobotsCommand,
    coloured,
    display_name,
    read_input,
    to_json,
)
from scrapy_norobots.commands.spider import CommandError, run_spider
from scrapy_norobots.identity import Identity
from scrapy_norobots.loader import RobotsLoader
from scrapy_norobots.parser import Reader
from scrapy_norobots.report import CrawlReport
from scrapy_norobots.settings import Config
from scrapy_norobots.snapshot import Snapshot
from scrapy_norobots.standard import Decision, Origin, Reason, Verdict
from scrapy_norobots.standard.decision import printable, quoted
from scrapy_norobots.standard.names import to_name
from scrapy_norobots.standard.urls import split

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from scrapy.crawler import Crawler

ALLOWED, FORBIDDEN, UNKNOWN = "allowed", "forbidden", "unknown"

# The exit status for each answer, and its colour.
_STATUS = {ALLOWED: 0, FORBIDDEN: 1, UNKNOWN: 2}
_COLOUR = {ALLOWED: GREEN, FORBIDDEN: RED, UNKNOWN: YELLOW}


class RobotsCheck(RobotsCommand):
    """``scrapy robots-check``."""

    def syntax(self) -> str:
        """Return the arguments of the command."""
        return "[options] URL..."

    def short_desc(self) -> str:
        """Return a short description."""
        return "Check whether robots.txt allows URLs, and why"

    def long_desc(self) -> str:
        """Return a description with the exit status."""
        return (
            "Download the robots.txt of each URL's site as a crawl would, and print whether it allows the "
            "URL, and why. '-' reads URLs from standard input, one per line. The exit status is 2 if the "
            "answer for any URL is unknown, else 1 if any URL is forbidden, else 0."
        )

    def add_options(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        super().add_options(parser)
        parser.add_argument(
            "--robot", metavar="NAME", help="robot to check for: a name or a whole User-Agent header"
        )
        parser.add_argument(
            "--file", metavar="PATH", help="read this robots.txt for all sites ('-': standard input)"
        )
        parser.add_argument(
            "--compare", action="store_true", help="also show what an RFC 9309 parser answers"
        )

    def process_options(self, args: list[str], opts: Namespace) -> None:
        """Read settings and options; ``--robot`` overrides `ROBOTSTXT_USER_AGENT`."""
        super().process_options(args, opts)
        if opts.robot is not None:
            if not to_name(opts.robot):
                raise UsageError(f"--robot {opts.robot!r}: must contain the name of a robot")
            assert self.settings is not None  # Scrapy has set them
            self.settings.set("ROBOTSTXT_USER_AGENT", opts.robot, priority="cmdline")
        if opts.file == STDIN and STDIN in args:
            raise UsageError("standard input cannot be both a robots.txt and a list of URLs")

    def run(self, args: list[str], opts: Namespace) -> None:
        """Write an answer for each URL."""
        file = None
        try:
            if opts.file is not None:
                file = display_name(opts.file), read_input(opts.file, self.config.maxsize)
            urls = list(_urls(args))
        except InputError as exc:
            self.fail(str(exc))
            return
        check = Check(urls, file=file, compare=opts.compare)
        try:
            run_spider(self.crawler_process, check.prepare, check.origins)
        except CommandError as exc:
            self.fail(str(exc))
            return
        self.answer(self._lines(check, as_json=opts.json))

    def _lines(self, check: Check, *, as_json: bool) -> Iterator[str]:
        for answer in check.answers():
            self.exitcode = max(self.exitcode, _STATUS[answer.word])
            yield to_json(answer.facts()) if as_json else answer.line()


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer for one URL: one word, and the decision; `rfc9309` is the word of an RFC 9309 parser."""

    url: str
    word: str
    decision: Decision
    rfc9309: str | None = None

    def line(self) -> str:
        """Return the answer as a line of text."""
        robot = f" for {quoted(self.decision.robot)}" if self.decision.robot else ""
        word = coloured(f"{self.word:<9}", _COLOUR[self.word])
        line = f"{word} {printable(self.url)}{robot}: {self.decision.why}"
        if self.rfc9309 is None:
            return line
        if self.rfc9309 == self.word:
            return f"{line} [RFC 9309: the same]"
        return f"{line} {coloured(f'[RFC 9309 differs: {self.rfc9309}]', YELLOW)}"

    def facts(self) -> dict[str, object]:
        """Return the answer as data for JSON."""
        decision = self.decision
        return {
            "url": self.url,
            "answer": self.word,
            "robot": decision.robot,
            "reason": decision.reason.name.lower(),
            "why": decision.why,
            "source": decision.source,
            "rule": decision.rule and decision.rule._asdict(),
            "record": decision.record and {"line": decision.record.line, "names": decision.record.names},
            "rfc9309": self.rfc9309,
            "differs": self.rfc9309 not in (None, self.word),
        }


class Check:
    """The check of a list of URLs: loads the access to each origin, then answers in the order of the URLs.

    `file`, a name and a body, replaces the robots.txt of every origin. With `compare`, each answer also has
    the word of an RFC 9309 parser for the same download.
    """

    def __init__(
        self, urls: list[str], *, file: tuple[str, bytes] | None = None, compare: bool = False
    ) -> None:
        self._urls = urls
        self._file = file
        self._compare = compare
        self._accesses: dict[Origin, tuple[Access, Access | None]] = {}
        self._identity: Identity | None = None
        # For each origin the first of its URLs.
        self.origins: dict[Origin, str] = {}
        for url in urls:
            with suppress(ValueError):
                origin = Origin.of(Request(url).url)
                if origin is not None:
                    self.origins.setdefault(origin, url)

    def prepare(self, crawler: Crawler) -> Callable[[Origin], Awaitable[None]]:
        """Return a function that loads an origin with the settings of a crawler."""
        config = Config.from_settings(crawler.settings)
        loader = RobotsLoader(crawler, config, CrawlReport(crawler, config))
        rfc9309 = _rfc9309(crawler, config) if self._compare else None
        self._identity = identity = Identity(crawler, config.robot)

        def with_rfc9309(access: Access) -> tuple[Access, Access | None]:
            return access, rfc9309.judge(access.snapshot) if rfc9309 else None

        async def load(origin: Origin) -> None:
            if origin not in self._accesses:
                request = Request(self.origins[origin])
                access, _ = await loader.load(origin, request, identity.robot(request))
                self._accesses[origin] = with_rfc9309(access)

        if self._file is not None:
            name, body = self._file
            snapshot = Snapshot(next(iter(self.origins)), name, time.time(), status=200, body=body)
            self._accesses = dict.fromkeys(self.origins, with_rfc9309(loader.judge.judge(snapshot)))
        return load

    def answers(self) -> Iterator[Answer]:
        """Yield the answers in the order of the URLs."""
        return map(self._answer, self._urls)

    def _answer(self, url: str) -> Answer:
        try:
            request = Request(url)
            origin = Origin.of(request.url)
        except ValueError as exc:
            return _unknown(url, Reason.BAD_URL, f"the URL is invalid ({exc})")
        if origin is None:
            return _unknown(url, Reason.NOT_WEB)
        if origin not in self._accesses or self._identity is None:
            return _unknown(url, Reason.ERROR, "the crawl was stopped before robots.txt was downloaded")
        robot = self._identity.robot(request)
        access, other = self._accesses[origin]
        decision = _decide(access, request.url, robot)
        word = _word(decision, access)
        if other is None:
            return Answer(url, word, decision)
        if (
            decision.reason is Reason.ROBOTS_TXT
        ):  # the same in RFC 9309, 2.2.2, which its parser does not implement
            return Answer(url, word, decision, word)
        return Answer(url, word, decision, _word(_decide(other, request.url, robot), other))


def _unknown(url: str, reason: Reason, detail: str = "") -> Answer:
    """Return the answer for a URL to which no robots.txt applies, or whose robots.txt was not loaded."""
    return Answer(url, UNKNOWN, Decision(Verdict.FORBIDDEN, url, "", reason, detail=detail))


def _urls(args: list[str]) -> Iterator[str]:
    for arg in args:
        if arg != STDIN:
            yield arg
            continue
        text = read_input(STDIN).decode("utf-8", "surrogateescape").removeprefix("\ufeff")
        yield from filter(None, map(str.strip, text.split("\n")))


def _decide(access: Access, url: str, robot: str | bytes) -> Decision:
    """Decide as the middleware does: a URL is forbidden if any spelling is that may be sent."""
    origin, target = split(url)
    others = compat.spellings(target)[1:] if target is not None else ()
    decisions = [access.decide(sent, robot) for sent in (url, *(f"{origin}{other}" for other in others))]
    return next((decision for decision in decisions if not decision), decisions[0])


def _word(decision: Decision, access: Access) -> str:
    """Return the answer in one word; ``unknown`` if a temporary failure forbids the URL, and not the site."""
    if not decision and access.temporary and access.rules is None:
        return UNKNOWN
    return ALLOWED if decision else FORBIDDEN


def _rfc9309(crawler: Crawler, config: Config) -> Judge:
    """Return a judge by RFC 9309, with Scrapy's default parser."""
    reader = Reader(crawler, ProtegoRobotParser, (), multivalue=False)
    return Judge(StatusPolicy.of("rfc9309"), config.freshness, reader.read)
