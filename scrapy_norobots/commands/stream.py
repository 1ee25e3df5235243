"""`Stream`: answer questions about URLs, in their order, while more are read by a `UrlReader`.

`_ask_all` reads URLs and queues a question for each, some at a time. If the origin is in memory, the question
is answered at once, else by the task that loads the origin. At most `CONCURRENT_REQUESTS` origins are loaded
at once. `_write_all` takes the questions from the queue, waits for the answer of each, and writes it. The
questions whose answers are not written yet have at most `WINDOW` answers, so memory does not grow with the
number of questions. A slow site delays the answers after it, but the origins of all questions in the queue
are loaded meanwhile. The event loop never waits for input or output.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
import time
from codecs import BOM_UTF8
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from threading import Thread

from scrapy import Request, signals
from scrapy.crawler import Crawler

from scrapy_norobots.commands.answerer import Answerer, address
from scrapy_norobots.commands.base import STDIN, CommandError, InputError, Progress, display_name, write
from scrapy_norobots.commands.sources import Source
from scrapy_norobots.commands.spider import Places
from scrapy_norobots.standard import Origin, Reason
from scrapy_norobots.standard.decision import printable

# The limits of what is not written yet: answers, and characters of answers and questions.
WINDOW = 10_000
_WINDOW_SIZE = 64 * 1024 * 1024

# How many questions are answered in one turn of the event loop.
_AT_ONCE = 100

# How long to wait for loads when the crawl is stopped, in seconds; their downloads have ended by then.
_CLOSING_LIMIT = 2.0

# How many bytes a line can have.
LINE_MAX = 64 * 1024

# How many bytes are read at a time, and how many of a line that is too long are shown.
_READ_SIZE = 64 * 1024
_SHOWN = 200


@dataclass(slots=True, eq=False)
class _Question:
    url: str
    sent: str = ""
    answer: str | None = None
    load: asyncio.Task[None] | None = None  # answers it, unless it fails or the crawl is stopped


class Stream:
    """Answers the questions of `reader` with `answerer`, by the robots.txt files of `source`.

    When nobody reads the answers any more, no more is read from an input that may have no end.
    """

    def __init__(
        self, crawler: Crawler, reader: UrlReader, source: Source, answerer: Answerer, progress: Progress
    ) -> None:
        self._reader = reader
        self._source = source
        self._answerer = answerer
        self._progress = progress
        self._places = Places(crawler)
        self._most = max(WINDOW // len(answerer.robots), 1)
        self._queue: asyncio.Queue[list[_Question] | None] = asyncio.Queue()  # None is the end
        self._waiting: dict[Origin, list[_Question]] = {}  # questions whose origin is being loaded
        # What is not written yet, in questions and in characters.
        self._unwritten = self._size = 0
        self._written = 0
        self._has_room = asyncio.Event()
        self._was_stopped = False
        self._has_finished = asyncio.Event()
        crawler.signals.connect(self._stop, signals.spider_closed)

    async def run(self) -> None:
        """Answer all questions.

        Raises `InputError` if they cannot be read, and `CommandError` if the source or the output fails, or
        if the crawl is stopped before all questions are read.
        """
        self._asking = asyncio.ensure_future(self._ask_all())
        try:
            await self._write_all()
            if self._was_stopped:
                raise CommandError("the crawl was stopped before all URLs were read")
            with suppress(asyncio.CancelledError):  # nobody reads the answers
                await self._asking
        finally:
            tasks = [self._asking, *self._loads()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._progress.clear()
            self._has_finished.set()

    async def _ask_all(self) -> None:
        step = min(_AT_ONCE, self._most)
        try:
            async for batch in self._reader.batches():
                for start in range(0, len(batch), step):
                    while self._unwritten >= self._most or self._size >= _WINDOW_SIZE:
                        self._has_room.clear()
                        await self._has_room.wait()
                    self._queue.put_nowait([self._ask(url) for url in batch[start : start + step]])
                    await asyncio.sleep(0)
        finally:
            self._queue.put_nowait(None)

    def _ask(self, url: str) -> _Question:
        """Return a question that is answered, or whose origin is being loaded."""
        question = _Question(url)
        self._unwritten += 1
        self._size += len(url)
        if isinstance(url, LongLine):
            return self._refuse(question, f"the line has more than {LINE_MAX:,} bytes, too many for a URL")
        try:
            origin, question.sent = address(url)
        except ValueError as exc:
            return self._refuse(question, f"the URL is invalid ({exc})")
        if origin is None:
            return self._refuse(question, "", Reason.NOT_WEB)
        found = self._source.get(origin)
        if found is not None and self._answerer.is_ready(found):
            return self._set(question, self._answerer.answer(url, question.sent, found))
        if origin in self._waiting:
            question.load = self._waiting[origin][0].load
            self._waiting[origin].append(question)
        else:
            load = self._places.run(partial(self._load, origin, Request(url)))
            question.load = asyncio.ensure_future(load)
            self._waiting[origin] = [question]
        return question

    def _refuse(self, question: _Question, detail: str, reason: Reason = Reason.BAD_URL) -> _Question:
        """Answer a question that no robots.txt answers."""
        return self._set(question, self._answerer.unknown(question.url, reason, detail))

    def _set(self, question: _Question, answer: str) -> _Question:
        question.answer = answer
        self._size += len(answer)
        return question

    async def _load(self, origin: Origin, request: Request) -> None:
        """Load an origin, and answer the questions that wait for it."""
        found = await self._source.load(origin, request)
        for number, question in enumerate(self._waiting[origin], 1):  # meanwhile, there may be more
            if found is None:
                self._refuse(question, f"{origin} is not in the store", Reason.ERROR)
            elif self._answerer.is_ready(found):
                self._set(question, self._answerer.answer(question.url, question.sent, found))
            else:
                answer = partial(self._answerer.answer, question.url, question.sent, found)
                self._set(question, await asyncio.to_thread(answer))
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        del self._waiting[origin]

    def _loads(self) -> list[asyncio.Task[None]]:
        return [load for questions in self._waiting.values() if (load := questions[0].load) is not None]

    async def _write_all(self) -> None:
        """Write the answers in order, as many as there are at a time."""
        ready: list[_Question] = []
        while (questions := await self._queue.get()) is not None:
            for question in questions:
                if question.answer is None:
                    await self._flush(ready)
                    await self._wait_for(question)
                ready.append(question)
            if self._queue.empty():
                await self._flush(ready)
        await self._flush(ready)

    async def _wait_for(self, question: _Question) -> None:
        """Wait until a question is answered. Exceptions of its load propagate."""
        assert question.load is not None
        started = time.monotonic()
        while question.answer is None and not question.load.done():
            origin = printable(str(Origin.of(question.sent)), 60)
            self._show_progress(f", waiting {time.monotonic() - started:.0f} s for {origin}")
            await asyncio.wait([question.load], timeout=1)
        if question.answer is None:
            if not question.load.cancelled():
                question.load.result()
            self._refuse(question, "the crawl was stopped before robots.txt was downloaded", Reason.ERROR)

    async def _flush(self, ready: list[_Question]) -> None:
        """Write the answers of questions, and empty the list."""
        if not ready:
            return
        answers = [question.answer or "" for question in ready]
        self._progress.make_way()
        is_read = await asyncio.to_thread(write, answers)
        self._written += len(ready)
        self._unwritten -= len(ready)
        self._size -= sum(len(question.url) for question in ready) + sum(map(len, answers))
        ready.clear()
        self._has_room.set()
        if self._unwritten:
            self._show_progress()
        if not is_read and not self._reader.has_end:
            self._asking.cancel()

    def _show_progress(self, wait: str = "") -> None:
        loads = len(self._waiting)
        sites = f", {loads:,} site{'s' * (loads != 1)} left" if loads else ""
        answers = f"{self._written:,} answer{'s' * (self._written != 1)}"
        self._progress.show(answers + wait + sites, self._reader.fraction(self._written))

    async def _stop(self) -> None:
        """Answer the questions that were read, if the crawl is stopped before that."""
        if self._has_finished.is_set():
            return
        self._was_stopped = self._asking.cancel()
        if loads := self._loads():
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
