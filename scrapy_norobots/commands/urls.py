"""`UrlReader`: the URLs that a command is asked about, a batch at a time, as they come.

They stand in the arguments, and on standard input for ``-``, one a line. A batch from standard input is what
there is to read by then, about a thousand URLs at most, so that a program can write a URL, read the answer
and write the next. Reading blocks, so it is done in a thread; that thread does not keep the process from
ending.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from threading import Thread
from typing import ParamSpec, TypeVar

from scrapy_norobots.commands.base import STDIN, InputError, display_name

_P = ParamSpec("_P")
_T = TypeVar("_T")

# How many bytes are read at a time.
_READ_SIZE = 64 * 1024


class UrlReader:
    """Reads the URLs that are among a command's arguments."""

    def __init__(self, arguments: Sequence[str]) -> None:
        """Raise `InputError` if standard input is wanted and closed."""
        self.has_stdin = STDIN in arguments
        if self.has_stdin and sys.stdin is None:  # closed by whoever started this process
            raise InputError(display_name(STDIN), "is closed")
        self._arguments = arguments
        self._bytes_read = 0
        self._size = _stdin_size() if self.has_stdin else 0

    def fraction(self, answered: int) -> float | None:
        """Return how far the command has come, from 0 to 1, with so many answers; None with a pipe."""
        if not self.has_stdin:
            return answered / len(self._arguments)
        return min(self._bytes_read / self._size, 1.0) if self._size else None

    def batches(self) -> Iterator[list[str]]:
        """Yield the URLs in batches; blank lines are skipped. Raises `InputError` if they cannot be read."""
        at = self._arguments.index(STDIN) if self.has_stdin else len(self._arguments)
        yield list(self._arguments[:at])
        if self.has_stdin:
            yield from self._read()
            yield list(self._arguments[at + 1 :])

    def _read(self) -> Iterator[list[str]]:
        rest, mark = b"", "\ufeff"
        while True:
            try:
                # Not through a buffer of Python's, which cannot be freed while a thread waits for it.
                data = os.read(sys.stdin.fileno(), _READ_SIZE)
            except OSError as exc:
                raise InputError(display_name(STDIN), exc.strerror or exc) from exc
            self._bytes_read += len(data)
            whole, newline, rest = (rest + data).rpartition(b"\n") if data else (rest, b"", b"")
            if data and not newline:
                continue
            text = whole.decode("utf-8", "surrogateescape").removeprefix(mark)
            mark = ""  # it stands at the beginning only
            urls = list(filter(None, map(str.strip, text.split("\n"))))
            if urls:
                yield urls
            if not data:
                return


def _stdin_size() -> int:
    """Return the size of standard input, if that is a file; 0 if there is no telling."""
    try:
        facts = os.fstat(sys.stdin.fileno())
    except (OSError, ValueError):
        return 0
    return facts.st_size if stat.S_ISREG(facts.st_mode) else 0


class DaemonThreads(Executor):
    """Calls each function in a daemon thread of its own: one that never returns does no harm at the end."""

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
