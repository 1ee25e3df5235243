"""`UrlReader`: the URLs of a command, in batches, as soon as they can be read.

URLs come from the arguments, and, for ``-``, from standard input, one per line. A batch from standard input
has what can be read at once, about a thousand URLs at most. So a program can write a URL, read the answer and
write the next URL. A line is limited to `LINE_MAX` bytes. Reading blocks, so it is done in a daemon thread,
which does not keep the process from ending.
"""

from __future__ import annotations

import os
import stat
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from threading import Thread
from typing import ParamSpec, TypeVar

from scrapy_norobots.commands.base import STDIN, InputError, display_name

_P = ParamSpec("_P")
_T = TypeVar("_T")

# How many bytes a line can have.
LINE_MAX = 64 * 1024

# How many bytes are read at a time, and how many of a line that is too long are shown.
_READ_SIZE = 64 * 1024
_SHOWN = 200


class LongLine(str):
    """The beginning of a line that has more than `LINE_MAX` bytes. It is not a URL."""

    __slots__ = ()


class UrlReader:
    """Reads the URLs that the arguments of a command name."""

    def __init__(self, arguments: Sequence[str]) -> None:
        """Raise `InputError` if standard input is needed and closed."""
        self.has_stdin = STDIN in arguments
        if self.has_stdin and sys.stdin is None:  # closed by the parent process
            raise InputError(display_name(STDIN), "is closed")
        self._arguments = arguments
        self._bytes_read = 0
        self._size = _stdin_size() if self.has_stdin else 0

    def fraction(self, answered: int) -> float | None:
        """Return the finished part, from 0 to 1, after `answered` answers; None if the input is a pipe."""
        if not self.has_stdin:
            return answered / len(self._arguments)
        return min(self._bytes_read / self._size, 1.0) if self._size else None

    def batches(self) -> Iterator[list[str]]:
        """Yield the URLs in batches; blank lines are skipped.

        A line that is too long is yielded as `LongLine`. Raises `InputError` if the input cannot be read.
        """
        at = self._arguments.index(STDIN) if self.has_stdin else len(self._arguments)
        yield list(self._arguments[:at])
        if self.has_stdin:
            yield from self._read()
            yield list(self._arguments[at + 1 :])

    def _read(self) -> Iterator[list[str]]:
        rest, mark = b"", BOM_UTF8
        while True:
            try:
                # Not with `sys.stdin.buffer`, which cannot be closed while a thread waits for it.
                data = os.read(sys.stdin.fileno(), _READ_SIZE)
            except OSError as exc:
                raise InputError(display_name(STDIN), exc.strerror or exc) from exc
            self._bytes_read += len(data)
            *lines, rest = (rest + data).split(b"\n") if data else (rest, b"")
            rest = rest[: len(mark) + LINE_MAX + 1]  # which is enough to see that the line is too long
            if lines:
                lines[0] = lines[0].removeprefix(mark)
                mark = b""  # only the first line can have one
            urls = list(filter(None, map(_url, lines)))
            if urls:
                yield urls
            if not data:
                return


def _url(line: bytes) -> str:
    """Return the URL in a line; empty if it is blank."""
    if len(line) > LINE_MAX:
        return LongLine(line[:_SHOWN].decode("utf-8", "surrogateescape"))
    return line.decode("utf-8", "surrogateescape").strip()


def _stdin_size() -> int:
    """Return the size of standard input if it is a file, else 0."""
    try:
        facts = os.fstat(sys.stdin.fileno())
    except (OSError, ValueError):
        return 0
    return facts.st_size if stat.S_ISREG(facts.st_mode) else 0


class DaemonThreads(Executor):
    """Calls each function in a new daemon thread, so it cannot keep the process from ending."""

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Call a function, and return its future."""
        future: Future[_T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as exc:
                future.set_exception(exc)
            else:
                future.set_result(result)

        Thread(target=run, name="norobots-input", daemon=True).start()
        return future
