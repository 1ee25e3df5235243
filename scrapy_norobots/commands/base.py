"""Common parts of the commands: settings, options, input, output, progress, and their crawl.

Standard output has results only. Text from sites and users is escaped, in JSON too. Exit status 2 means that
something could not be read or downloaded, or that the command crashed; it takes precedence over 0 and 1.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import shutil
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, TextIO

from scrapy import Request, Spider
from scrapy.commands import ScrapyCommand
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError

from scrapy_norobots.settings import Config
from scrapy_norobots.standard import Origin
from scrapy_norobots.standard.decision import printable
from scrapy_norobots.standard.urls import split
from scrapy_norobots.stores import error_text, without_password

STDIN = "-"

# Colours on a terminal (ECMA-48).
GREEN, YELLOW, RED, BLUE = "32", "33", "31", "36"

# The time between two updates of the progress, in seconds.
_INTERVAL = 0.1
_CLEAR = "\r\x1b[K"

# Settings that override those of the project and the command line: robots.txt is obeyed; the answers come
# from the site and not from the store of a crawl, for every URL; no request waits for a closed site; nothing
# but the answers goes to standard output; no file of a crawl is overwritten; and asyncio runs, with its
# reactor or, if TWISTED_REACTOR_ENABLED is false, without a reactor.
_FORCED: dict[str, Any] = {
    "CLOSESPIDER_PAGECOUNT": 0,
    "CLOSESPIDER_PAGECOUNT_NO_ITEM": 0,
    "CLOSESPIDER_TIMEOUT": 0,
    "CLOSESPIDER_TIMEOUT_NO_ITEM": 0,
    "DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter",  # nothing is scheduled
    "FEEDS": {},
    "FEED_URI": None,
    "ITEM_PIPELINES": {},
    "JOBDIR": None,
    "LOG_STDOUT": False,
    "NOROBOTS_CRAWL_DELAY_SHARED": False,  # it needs a store
    "NOROBOTS_DRY_RUN": False,
    "NOROBOTS_EVIDENCE": "",
    "NOROBOTS_REPORT": "",
    "NOROBOTS_RETRY_CLOSED": 0,
    "NOROBOTS_STORE": "memory",
    "REMOTE_CONTROL_ENABLED": False,
    "ROBOTSTXT_OBEY": True,
    "SCHEDULER": "scrapy.core.scheduler.Scheduler",  # nothing is scheduled
    "SPIDER_LOADER_CLASS": "scrapy.spiderloader.SpiderLoader",
    "SPIDER_MIDDLEWARES": {},  # they could send requests
    "SPIDER_MODULES": [],  # no spider is needed, so a broken one does no harm
    "TELNETCONSOLE_ENABLED": False,
    "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
}

# The work of a command during its crawl.
Work = Callable[[Crawler], Awaitable[None]]


class RobotsCommand(ScrapyCommand):
    """Base class of the commands. They need no project, and use its settings if there is one.

    The docstring of a command is its help.
    """

    requires_project = False
    arguments: ClassVar[str]
    # The answers name failures.
    default_settings: ClassVar[dict[str, Any]] = {"LOG_LEVEL": "ERROR", "RETRY_GIVE_UP_LOG_LEVEL": "DEBUG"}

    def syntax(self) -> str:
        return f"[options] {self.arguments}"

    def short_desc(self) -> str:
        return self.long_desc().partition(". ")[0]

    def long_desc(self) -> str:
        return " ".join((self.__doc__ or "").split())

    def add_options(self, parser: ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--json", action="store_true", help="print one JSON object per line")

    def process_options(self, args: list[str], opts: Namespace) -> None:
        """Read settings and options. Raises `UsageError` if one is invalid, or if arguments are missing."""
        sys.excepthook = _end_with_2
        if sys.stderr is None:  # closed by the parent process; Scrapy logs to it
            sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115  # until the end
        assert self.settings is not None  # Scrapy has set them
        self.settings.set("LOG_FILE", None, priority="cmdline")  # the file of the project is for its crawls
        super().process_options(args, opts)
        for arg in args:
            if not arg and self.arguments != "URL...":  # any text that stands for a URL gets an answer
                raise UsageError("an argument is empty: expected a path or a URL")
            if arg.startswith("-") and arg != STDIN:
                raise UsageError(f"no such option: {printable(arg)}")
        if not args:
            raise UsageError(f"nothing to do: expected {self.arguments}")
        if sys.stdout is None:
            raise UsageError("standard output is closed")
        if sys.stdin is None and STDIN in (*args, *vars(opts).values()):
            raise UsageError("standard input is closed")
        self.settings.setdict(_FORCED, priority="cmdline")
        self.config = Config.from_settings(self.settings)


class CommandError(Exception):
    """A command failed. The arguments are what failed and why; none if the user need not know."""

    def __str__(self) -> str:
        return ": ".join(self.args)


def _end_with_2(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Show an exception, also of Scrapy around a command, and exit with status 2, since 1 is an answer."""
    if isinstance(error, KeyboardInterrupt):
        error = CommandError("stopped before the end")
    if not isinstance(error, CommandError):
        sys.__excepthook__(kind, error, trace)
    elif error.args:
        print(printable(str(error)), file=sys.stderr)
    sys.exit(2)


def split_url(url: str) -> tuple[Origin, str]:
    """Return the origin and the target of a URL. Raises `CommandError` if no robots.txt applies to it."""
    try:
        origin, target = split(url)
        if origin is not None and target is not None and Request(url):  # which Scrapy may refuse
            return origin, target
    except ValueError as exc:
        raise CommandError(url, str(exc)) from None
    raise CommandError(url, "only http and https URLs with a host have a robots.txt")


def read_input(path: str, limit: int) -> bytes:
    """Return the bytes of a file, or of standard input for ``-``: at most `limit`, else `CommandError`."""
    try:
        with nullcontext(sys.stdin.buffer) if path == STDIN else Path(path).open("rb") as file:
            data = file.read(limit + 1)
    except OSError as exc:
        raise CommandError(display_name(path), exc.strerror or str(exc)) from exc
    if len(data) > limit:
        problem = f"has more than {limit} bytes, the limit set by NOROBOTS_MAXSIZE"
        raise CommandError(display_name(path), problem)
    return data


def display_name(path: str) -> str:
    """Return the name of a path in answers."""
    return "<stdin>" if path == STDIN else path


def _is_terminal(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def coloured(text: str, colour: str) -> str:
    """Return a text in a colour, if standard output is a terminal and `NO_COLOR` is not set."""
    has_colours = _is_terminal(sys.stdout) and not os.environ.get("NO_COLOR")
    return f"\x1b[{colour}m{text}\x1b[0m" if has_colours else text


def span(seconds: float) -> str:
    """Return a time span in words: 45 s, 12 min, 3 h or 2 days."""
    for unit, length, most in (("s", 1, 120), ("min", 60, 120), ("h", 3600, 48)):
        if seconds < length * most:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 86400:.0f} days"


to_json = json.dumps  # one line in ASCII


def write(lines: Iterable[str]) -> None:
    """Write lines to standard output. Raises `CommandError` if they cannot be written.

    The error has no text if the reader has closed the output, as ``| head`` does.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        for line in lines:
            print(line)
        sys.stdout.flush()
    except OSError as exc:
        # Discard the rest of the buffer, or the interpreter would report an error when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(exc, BrokenPipeError):
            raise CommandError from exc
        raise CommandError("standard output", exc.strerror or str(exc)) from exc


class Progress:
    """A few words on standard error, in a line that is overwritten; nothing if it is not a terminal."""

    def __init__(self, *, is_wanted: bool = True) -> None:
        self._is_shown = is_wanted and _is_terminal(sys.stderr)
        self._next = 0.0  # when other words may be shown; 0 if none are

    def show(self, words: str) -> None:
        if self._is_shown and time.monotonic() >= self._next:
            columns = shutil.get_terminal_size().columns - 1  # a line that is wrapped could not be cleared
            print(_CLEAR + words[:columns], end="", file=sys.stderr, flush=True)
            self._next = time.monotonic() + _INTERVAL

    def clear(self) -> None:
        if self._next:
            print(_CLEAR, end="", file=sys.stderr, flush=True)
            self._next = 0.0


@contextmanager
def failures_of(value: str) -> Iterator[None]:
    """Raise `CommandError`, which names the store, for an exception of the store inside the ``with``."""
    try:
        yield
    except CommandError:
        raise
    except Exception as exc:  # each library has its own errors
        problem = getattr(exc, "strerror", None) or error_text(exc) or type(exc).__name__
        raise CommandError(without_password(value), problem) from exc


class CommandSpider(Spider):
    """Does the work of a command in place of start requests, so it stays open until that has finished.

    All components are those of the project. `error` says why the work has not finished.
    """

    name = "robots"
    work: Work
    error: Exception | None = CommandError("the crawl did not run to its end")

    async def start(self) -> AsyncIterator[Any]:
        """Do the work, and yield no request. Scrapy cancels this after Ctrl-C."""
        try:
            await self.work(self.crawler)
            self.error = None
        except Exception as exc:  # which Scrapy would only log
            self.error = exc
        for request in list[Request]():
            yield request


def places(crawler: Crawler) -> asyncio.Semaphore:
    """Return what lets `CONCURRENT_REQUESTS` downloads run at once; 0 is no limit."""
    return asyncio.Semaphore(crawler.settings.getint("CONCURRENT_REQUESTS") or sys.maxsize)


def run_spider(process: Any, work: Work) -> None:
    """Run the crawl of a command; raise what the work raises, or `CommandError` if it has not finished."""
    crawler = process.create_crawler(CommandSpider)
    process.crawl(crawler, work=work)
    process.start()
    if error := (crawler.spider or CommandSpider).error:
        raise error
