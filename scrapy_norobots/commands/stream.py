"""`Stream`: answer questions about URLs, in their order, while more are read by a `UrlReader`.

A URL whose robots.txt is in memory is answered at once. For another one, a task waits for the load of its
origin; at most `CONCURRENT_REQUESTS` loads run at once. A queue has the answers and tasks in the order of
the URLs, and what it has is limited, so memory does not grow with the number of URLs. A slow site delays the
answers after it, but the origins of all URLs in the queue are loaded meanwhile. The event loop never waits
for input or output.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
import time
from codecs import BOM_UTF8
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import NamedTuple

from scrapy import Request, signals
from scrapy.crawler import Crawler

from scrapy_norobots.commands.answerer import Answerer, address
from scrapy_norobots.commands.base import STDIN, CommandError, InputError, Progress, display_name, write
from scrapy_norobots.commands.spider import Places
from scrapy_norobots.rules.access import Access
from scrapy_norobots.standard import Origin, Reason
from scrapy_norobots.standard.decision import printable

# How much may be in the queue: each answer counts as much as this, and the characters of its URL.
_WINDOW = 10_000_000
_ANSWER = 1_000

# How many URLs are asked about in one turn of the event loop.
_AT_ONCE = 100

# How long to wait for loads when the crawl is stopped, in seconds; their downloads have ended by then.
_CLOSING_LIMIT = 2.0

# How many bytes a line can have.
LINE_MAX = 64 * 1024

# How many bytes are read at a time, and how many of a line that is too long are shown.
_READ_SIZE = 64 * 1024
_SHOWN = 200


class Lookup(NamedTuple):
    """Where robots.txt files come from. Only the thread of the event loop calls it.

    `get` returns the access that is in memory, or None. `load` loads that of an origin for a request; it
    raises `LookupError` if there is none, and `CommandError` if the look-up fails for all origins.
    """

    get: Callable[[Origin], Access | None]
    load: Callable[[Origin, Request], Awaitable[Access]]


class Stream:
    """Answers the URLs of `reader` with `answerer`, by the robots.txt files of `lookup`.

    When nobody reads the answers any more, no more is read from an input that may have no end.
    """

    def __init__(
        self, crawler: Crawler, reader: UrlReader, lookup: Lookup, answerer: Answerer, progress: Progress
    ) -> None:
        self._reader = reader
        self._lookup = lookup
        self._answerer = answerer
        self._progress = progress
        self._places = Places(crawler)
        # Each URL, its size, and its answer; None is the end.
        self._queue: asyncio.Queue[tuple[str, int, str | asyncio.Task[str]] | None] = asyncio.Queue()
        self._size = 0  # of what is in the queue
        self._has_room = asyncio.Event()
        self._loads: dict[Origin, asyncio.Task[Access | None]] = {}
        self._written = 0
        self._was_stopped = False
        self._has_finished = asyncio.Event()
        crawler.signals.connect(self._stop, signals.spider_closed)

    async def run(self) -> None:
        """Answer all URLs.

        Raises `InputError` if they cannot be read, and `CommandError` if the look-up or the output fails, or
        if the crawl is stopped before all URLs are read.
        """
        self._reading = asyncio.ensure_future(self._read_all())
        try:
            await self._write_all()
            if self._was_stopped:
                raise CommandError("the crawl was stopped before all URLs were read")
            with suppress(asyncio.CancelledError):  # nobody reads the answers
                await self._reading
        finally:
            tasks = [self._reading, *self._loads.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._has_finished.set()

    async def _read_all(self) -> None:
        try:
            async for batch in self._reader.batches():
                for url in batch:
                    while self._size >= _WINDOW:
                        self._has_room.clear()
                        await self._has_room.wait()
                    size = _ANSWER * len(self._answerer.robots) + len(url)
                    self._size += size
                    self._queue.put_nowait((url, size, self._ask(url)))
                    if self._queue.qsize() % _AT_ONCE == 0:
                        await asyncio.sleep(0)
        finally:
            self._queue.put_nowait(None)

    def _ask(self, url: str) -> str | asyncio.Task[str]:
        """Return the answer for a URL, or a task that returns it."""
        if isinstance(url, LongLine):
            problem = f"the line has more than {LINE_MAX:,} bytes, too many for a URL"
            return self._answerer.unknown(url, Reason.BAD_URL, problem)
        try:
            origin, sent = address(url)
        except ValueError as exc:
            return self._answerer.unknown(url, Reason.BAD_URL, f"the URL is invalid ({exc})")
        if origin is None:
            return self._answerer.unknown(url, Reason.NOT_WEB)
        access = self._lookup.get(origin)
        if access is not None and self._answerer.is_ready(access):
            return self._answerer.answer(url, sent, access)
        task = asyncio.ensure_future(self._answer(url, sent, origin, access))
        # The first exception ends the command, and asyncio need not log the others.
        task.add_done_callback(lambda task: task.cancelled() or task.exception())
        return task

    async def _answer(self, url: str, sent: str, origin: Origin, access: Access | None) -> str:
        if access is None:
            if origin not in self._loads:
                load = partial(self._lookup.load, origin, Request(url))
                self._loads[origin] = asyncio.ensure_future(self._places.run(load))
                self._loads[origin].add_done_callback(lambda _: self._loads.pop(origin))
            try:
                access = await asyncio.shield(self._loads[origin])
            except LookupError as exc:
                return self._answerer.unknown(url, Reason.ERROR, str(exc))
        if access is None:  # the crawl is stopped
            raise asyncio.CancelledError
        if self._answerer.is_ready(access):
            return self._answerer.answer(url, sent, access)
        return await asyncio.to_thread(self._answerer.answer, url, sent, access)

    async def _write_all(self) -> None:
        """Write the answers in order, as many as there are at a time."""
        answers: list[str] = []
        while (question := await self._queue.get()) is not None:
            url, size, answer = question
            self._size -= size
            if not isinstance(answer, str):
                if not answer.done():
                    await self._flush(answers)
                answer = await self._wait_for(url, answer)
            answers.append(answer)
            if self._queue.empty():
                await self._flush(answers)
        await self._flush(answers)

    async def _wait_for(self, url: str, task: asyncio.Task[str]) -> str:
        """Return the result of a task, and show what it waits for. Exceptions of the load propagate."""
        started, origin = time.monotonic(), printable(str(address(url)[0]), 60)
        while not task.done():
            self._show_progress(f", waiting {time.monotonic() - started:.0f} s for {origin}")
            await asyncio.wait([task], timeout=1)
        if task.cancelled():
            problem = "the crawl was stopped before robots.txt was downloaded"
            return self._answerer.unknown(url, Reason.ERROR, problem)
        return task.result()

    async def _flush(self, answers: list[str]) -> None:
        """Write answers, and empty the list."""
        self._has_room.set()
        if not answers:
            return
        self._progress.clear()
        is_read = await asyncio.to_thread(write, answers)
        self._written += len(answers)
        answers.clear()
        if not self._queue.empty():
            self._show_progress()
        if not is_read and not self._reader.has_end:
            self._reading.cancel()

    def _show_progress(self, wait: str = "") -> None:
        loads = len(self._loads)
        sites = f", {loads:,} site{'s' * (loads != 1)} left" if loads else ""
        answers = f"{self._written:,} answer{'s' * (self._written != 1)}"
        self._progress.show(answers + wait + sites, self._reader.fraction(self._written))

    async def _stop(self) -> None:
        """Answer the URLs that were read, if the crawl is stopped before that."""
        if self._has_finished.is_set():
            return
        self._was_stopped = self._reading.cancel()
        if loads := list(self._loads.values()):
            await asyncio.wait(loads, timeout=_CLOSING_LIMIT)
        for load in loads:
            load.cancel()
        await self._has_finished.wait()


class LongLine(str):
    """The beginning of a line that has more than `LINE_MAX` bytes. It is not a URL."""

    __slots__ = ()


class UrlReader:
    """The URLs of a command, in batches, as soon as they can be read.

    They come from the arguments, and, for ``-``, from standard input, one per line. A batch from standard
    input has what can be read at once, about a thousand URLs at most. So a program can write a URL, read the
    answer and write the next URL. `has_end` is false if standard input is, for example, a pipe, which may
    have no end.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        """Raise `InputError` if standard input is needed and closed."""
        self.has_stdin = STDIN in arguments
        if self.has_stdin and sys.stdin is None:  # closed by the parent process
            raise InputError(display_name(STDIN), "is closed")
        self._arguments = arguments
        self._bytes_read = 0
        self._size = _stdin_size() if self.has_stdin else 0
        self.has_end = not self.has_stdin or self._size > 0

    def fraction(self, answered: int) -> float | None:
        """Return the finished part, from 0 to 1, after `answered` answers; None if the input is a pipe."""
        if not self.has_stdin:
            return answered / len(self._arguments)
        return min(self._bytes_read / self._size, 1.0) if self._size else None

    async def batches(self) -> AsyncIterator[list[str]]:
        """Yield the URLs in batches; blank lines are skipped.

        A line that is too long is yielded as `LongLine`. Raises `InputError` if the input cannot be read.
        """
        at = self._arguments.index(STDIN) if self.has_stdin else len(self._arguments)
        yield list(self._arguments[:at])
        data, rest, mark = b"-", b"", BOM_UTF8
        while self.has_stdin and data:
            try:
                data = await _read_stdin()
            except OSError as exc:
                raise InputError(display_name(STDIN), exc.strerror or exc) from exc
            self._bytes_read += len(data)
            *lines, rest = (rest + data).split(b"\n") if data else (rest, b"")
            rest = rest[: len(mark) + LINE_MAX + 1]  # which is enough to see that the line is too long
            if lines:
                lines[0] = lines[0].removeprefix(mark)
                mark = b""  # only the first line can have one
            yield list(filter(None, map(_url, lines)))
        yield list(self._arguments[at + 1 :])


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


async def _read_stdin() -> bytes:
    """Read what there is. A daemon thread waits for it, which does not keep the process from ending."""
    future: Future[bytes] = Future()
    future.set_running_or_notify_cancel()

    def read() -> None:
        try:
            # Not with `sys.stdin.buffer`, which cannot be closed while a thread waits for it.
            future.set_result(os.read(sys.stdin.fileno(), _READ_SIZE))
        except BaseException as exc:
            future.set_exception(exc)

    Thread(target=read, name="norobots-input", daemon=True).start()
    return await asyncio.wrap_future(future)
