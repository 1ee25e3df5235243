"""What the commands share: their settings and options, what they read, and how they write.

Answers go to standard output and nothing else does. Text that came from a site or a user is escaped, in
JSON too. A status of 2 means that something could not be had, and stands above any other; a command that
Scrapy's own code lets crash ends with it too.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections import deque
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, TextIO

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError
from scrapy.settings import SETTINGS_PRIORITIES

from scrapy_norobots.settings import Config
from scrapy_norobots.standard.decision import printable

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

STDIN = "-"

# How what is good, doubtful and bad looks on a terminal (ECMA-48).
GREEN, YELLOW, RED, BLUE = "32", "33", "31", "36"


# What counts whatever the project or the command line says. The commands are about obeying, and their
# answers are no log; they ask the site and not what was kept of it, all that they are to ask; and they write
# over nothing that a crawl has left.
_FORCED: dict[str, Any] = {
    "CLOSESPIDER_ERRORCOUNT": 0,
    "CLOSESPIDER_ITEMCOUNT": 0,
    "CLOSESPIDER_PAGECOUNT": 0,
    "CLOSESPIDER_PAGECOUNT_NO_ITEM": 0,
    "CLOSESPIDER_TIMEOUT": 0,
    "CLOSESPIDER_TIMEOUT_NO_ITEM": 0,
    "FEEDS": {},
    "ITEM_PIPELINES": {},
    "JOBDIR": None,
    "LOG_STDOUT": False,
    "NOROBOTS_DRY_RUN": False,
    "NOROBOTS_REPORT": "",
    "NOROBOTS_STORE": "memory",
    "ROBOTSTXT_OBEY": True,
    "SCHEDULER": "scrapy.core.scheduler.Scheduler",  # nothing is scheduled
    "SPIDER_LOADER_CLASS": "scrapy.spiderloader.SpiderLoader",
    "SPIDER_MIDDLEWARES": {},  # they could start requests
    "SPIDER_MODULES": [],  # no spider is needed, so a broken one harms nobody
    "TELNETCONSOLE_ENABLED": False,
}


class RobotsCommand(ScrapyCommand):
    """A command about robots.txt; needs no project, and has the project's settings where there is one."""

    requires_project = False
    default_settings: ClassVar[dict[str, Any]] = {
        # The answers say what failed.
        "LOG_LEVEL": "ERROR",
        "RETRY_GIVE_UP_LOG_LEVEL": "DEBUG",
    }

    config: Config

    def add_options(self, parser: ArgumentParser) -> None:
        """Add the options that all commands have."""
        super().add_options(parser)
        parser.add_argument("--json", action="store_true", help="answer in JSON, an object a line")

    def process_options(self, args: list[str], opts: Namespace) -> None:
        """Read the settings; raise `UsageError` for bad ones, unknown options, or no arguments."""
        sys.excepthook = _end_with_2
        super().process_options(args, opts)
        for arg in args:
            if arg.startswith("-") and arg != STDIN:
                raise UsageError(f"no such option: {printable(arg)}")
        if not args:
            raise UsageError(f"nothing to do: give {self.syntax().split()[-1]} ('-' is standard input)")
        if args.count(STDIN) > 1:
            raise UsageError("standard input can be read once only")
        if sys.stdout is None:
            raise UsageError("standard output is closed")
        assert self.settings is not None  # Scrapy has set them
        for name, value in _FORCED.items():
            self.settings.set(name, value, priority="cmdline")
        if (self.settings.getpriority("LOG_FILE") or 0) < SETTINGS_PRIORITIES["cmdline"]:
            self.settings.set("LOG_FILE", None, priority="cmdline")  # the project's is its crawls'
        try:
            self.config = Config.from_settings(self.settings)
        except ValueError as exc:
            raise UsageError(printable(str(exc))) from None

    def answer(self, lines: Iterable[str]) -> None:
        """Write the answers; where that cannot be done, say so and have the command end with status 2."""
        try:
            write(lines)
        except OSError as exc:
            self.fail(f"standard output: {exc.strerror or exc}")

    def fail(self, message: str) -> None:
        """Say what could not be done, on standard error, and have the command end with status 2."""
        print(printable(message), file=sys.stderr)
        self.exitcode = 2


def _end_with_2(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Show an exception, and end the process with 2; Python's status of 1 is an answer here.

    Scrapy sets up a crawl before and while it runs a command, so no one place could catch what it raises.
    """
    sys.__excepthook__(kind, error, trace)
    if isinstance(error, Exception):
        sys.exit(2)


class InputError(Exception):
    """Something to read could not be had: `path` says what, `problem` why."""

    def __init__(self, path: str, problem: object) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = str(problem)


def read_input(path: str, limit: int = -1) -> bytes:
    """Read a file, or standard input for ``-``; at most `limit` bytes, if it is not negative.

    Raises `InputError` if that cannot be done.
    """
    most = limit if limit < 0 else limit + 1
    try:
        if path != STDIN:
            with Path(path).open("rb") as file:
                data = file.read(most)
        elif sys.stdin is None:  # closed by whoever started this process
            raise InputError(display_name(path), "is closed")
        else:
            data = sys.stdin.buffer.read(most)
    except OSError as exc:
        raise InputError(display_name(path), exc.strerror or exc) from exc
    if 0 <= limit < len(data):
        raise InputError(
            display_name(path), f"has more than {limit} bytes, and NOROBOTS_MAXSIZE allows no more"
        )
    return data


def display_name(path: str) -> str:
    """Return how a path is written in answers."""
    return "<stdin>" if path == STDIN else path


def is_terminal(stream: TextIO) -> bool:
    """Whether a stream is a terminal that knows colours."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


@cache
def _has_colours() -> bool:
    return is_terminal(sys.stdout) and not os.environ.get("NO_COLOR")


def coloured(text: str, colour: str) -> str:
    """Return a text in colour, if standard output is a terminal and the user has nothing against it."""
    return f"\x1b[{colour}m{text}\x1b[0m" if _has_colours() else text


def span(seconds: float) -> str:
    """Return a time span in words: 45 s, 12 min, 3 h or 2 days."""
    for unit, length, most in (("s", 1, 120), ("min", 60, 120), ("h", 3600, 48)):
        if seconds < length * most:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 86400:.0f} days"


def to_json(data: dict[str, object]) -> str:
    """Return an object as a line of JSON, in which all that is not ASCII is escaped."""
    return json.dumps(data)


def write(lines: Iterable[str]) -> bool:
    """Write lines to standard output, and return whether anybody reads them (``| head`` does not for long).

    Works out all of them, read or not. Raises `OSError` if they cannot be written.
    """
    lines = iter(lines)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        for line in lines:
            print(line)
        sys.stdout.flush()
    except OSError as exc:
        # What is left in the buffer goes nowhere, or the interpreter would complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(exc, BrokenPipeError):
            raise
        deque(lines, maxlen=0)  # the exit status is that of all of them
        return False
    return True
