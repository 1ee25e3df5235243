"""`Stream`: answer questions about URLs, in their order, while more are read.

A URL whose robots.txt is in memory is answered at once. For another one, a task waits for the load of its
origin; at most `CONCURRENT_REQUESTS` loads run at once. A queue has the answers and tasks in the order of
the URLs, and what it has is limited, so memory does not grow with the number of URLs. A slow site delays the
answers after it, but the origins of all URLs in the queue are loaded meanwhile. The event loop never waits
for input or output.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from codecs import BOM_UTF8
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Future
from threading import Thread
from typing import NamedTuple

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_norobots.commands.answerer import Answerer, address
from scrapy_norobots.commands.base import STDIN, InputError, Progress, display_name, write
from scrapy_norobots.commands.spider import places
from scrapy_norobots.rules.access import Access
from scrapy_norobots.standard import Origin, Reason
from scrapy_norobots.standard.decision import printable

# How many answers may be in the queue.
_WINDOW = 10_000

# How many bytes a line can have, how many of a longer one are shown, and how many are read at a time.
LINE_MAX = 64 * 1024
_SHOWN = 200
_READ_SIZE = 64 * 1024


class Lookup(NamedTuple):
    """Where robots.txt files come from. Only the thread of the event loop calls it.

    `get` returns the access that is in memory, or None. `load` loads that of an origin for a request; it
    raises `LookupError` if there is none, and `CommandError` if the look-up fails for all origins.
    """

    get: Callable[[Origin], Access | None]
    load: Callable[[Origin, Request], Awaitable[Access]]


class Stream:
    """Answers URLs with `answerer`, by the robots.txt files of `lookup`."""

    def __init__(self, crawler: Crawler, lookup: Lookup, answerer: Answerer, progress: Progress) -> None:
        self._lookup = lookup
        self._answerer = answerer
        self._progress = progress
        self._places = places(crawler)
        # The answers, and tasks that return them; None is the end.
        self._queue: asyncio.Queue[str | asyncio.Task[str] | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(max(1, _WINDOW // len(answerer.robots)))
        self._loads: dict[Origin, asyncio.Task[Access]] = {}
        self._written = 0

    async def run(self, arguments: Sequence[str]) -> None:
        """Answer all URLs: the arguments, and, for ``-``, the lines of standard input.

        Raises `CommandError` if they cannot be read, or if the look-up or the output fails.
        """
        reading = asyncio.ensure_future(self._read_all(arguments))
        reading.add_done_callback(lambda _: self._queue.put_nowait(None))
        try:
            await self._write_all()
            await reading
        finally:
            for task in (reading, *self._loads.values()):
                task.cancel()

    async def _read_all(self, arguments: Sequence[str]) -> None:
        async for urls in read_urls(arguments):
            for url in urls:
                await self._room.acquire()
                self._queue.put_nowait(self._ask(url))

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
        if access is not None:
            return self._answerer.answer(url, sent, access)
        task = asyncio.create_task(self._answer(url, sent, origin), name=printable(str(origin), 60))
        # The first exception ends the command, and asyncio need not log the others.
        task.add_done_callback(lambda task: task.cancelled() or task.exception())
        return task

    async def _answer(self, url: str, sent: str, origin: Origin) -> str:
        if origin not in self._loads:
            self._loads[origin] = asyncio.create_task(self._load(origin, Request(url)))
            self._loads[origin].add_done_callback(lambda _: self._loads.pop(origin))
        try:
            access = await asyncio.shield(self._loads[origin])
        except LookupError as exc:
            return self._answerer.unknown(url, Reason.ERROR, str(exc))
        # The first question about a robot may have to read a large file.
        return await asyncio.to_thread(self._answerer.answer, url, sent, access)

    async def _load(self, origin: Origin, request: Request) -> Access:
        async with self._places:
            return await self._lookup.load(origin, request)

    async def _write_all(self) -> None:
        """Write the answers in order, as many as there are at a time."""
        answers: list[str] = []
        while (answer := await self._queue.get()) is not None:
            self._room.release()
            if not isinstance(answer, str):
                if not answer.done():
                    await self._write(answers)
                answer = await self._wait_for(answer)
            answers.append(answer)
            if self._queue.empty():
                await self._write(answers)
        await self._write(answers)

    async def _wait_for(self, task: asyncio.Task[str]) -> str:
        """Return the result of a task, and show what it waits for. Exceptions of the load propagate."""
        started = time.monotonic()
        while not task.done():
            self._show_progress(f", waiting {time.monotonic() - started:.0f} s for {task.get_name()}")
            await asyncio.wait([task], timeout=1)
        return task.result()

    async def _write(self, answers: list[str]) -> None:
        """Write answers, and empty the list."""
        if answers:
            self._progress.clear()
            await asyncio.to_thread(write, answers)
            self._written += len(answers)
            answers.clear()
            self._show_progress()

    def _show_progress(self, wait: str = "") -> None:
        loads = len(self._loads)
        sites = f", {loads:,} site{'s' * (loads != 1)} left" if loads else ""
        self._progress.show(f"{self._written:,} answer{'s' * (self._written != 1)}{wait}{sites}")


class LongLine(str):
    """The beginning of a line that has more than `LINE_MAX` bytes. It is not a URL."""

    __slots__ = ()


async def read_urls(arguments: Sequence[str]) -> AsyncIterator[list[str]]:
    """Yield the URLs of a command in batches, as soon as they can be read; blank lines are skipped.

    They are the arguments, and, for ``-``, the lines of standard input, of which a batch has what can be read
    at once. So a program can write a URL, read the answer and write the next URL. A line that is too long is
    yielded as `LongLine`. Raises `InputError` if the input cannot be read.
    """
    at = arguments.index(STDIN) if STDIN in arguments else len(arguments)
    yield list(arguments[:at])
    data, rest, mark = b"-", b"", BOM_UTF8
    while at < len(arguments) and data:
        data = await _read_stdin()
        *lines, rest = (rest + data).split(b"\n") if data else (rest, b"")
        rest = rest[: len(mark) + LINE_MAX + 1]  # which is enough to see that the line is too long
        if lines:
            lines[0] = lines[0].removeprefix(mark)
            mark = b""  # only the first line can have one
        yield list(filter(None, map(_url, lines)))
    yield list(arguments[at + 1 :])


def _url(line: bytes) -> str:
    """Return the URL in a line; empty if it is blank."""
    if len(line) > LINE_MAX:
        return LongLine(line[:_SHOWN].decode("utf-8", "surrogateescape"))
    return line.decode("utf-8", "surrogateescape").strip()


async def _read_stdin() -> bytes:
    """Read what there is. A daemon thread waits for it, which does not keep the process from ending."""
    future: Future[bytes] = Future()
    future.set_running_or_notify_cancel()

    def read() -> None:
        try:
            # Not with `sys.stdin.buffer`, which cannot be closed while a thread waits for it.
            future.set_result(os.read(sys.stdin.fileno(), _READ_SIZE))
        except OSError as exc:
            future.set_exception(InputError(display_name(STDIN), exc.strerror or exc))

    if sys.stdin is None:  # closed by the parent process
        raise InputError(display_name(STDIN), "is closed")
    Thread(target=read, name="norobots-input", daemon=True).start()
    return await asyncio.wrap_future(future)
