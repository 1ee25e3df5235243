"""`Stream`: answer questions about URLs, in their order, while more are read.

If the origin of a question is in memory, it is answered at once. Otherwise the origin is loaded, at most
`CONCURRENT_REQUESTS` origins at once. Answers wait for those before them. The questions that were read and
whose answers are not written yet are the window; it has at most `WINDOW` answers, so memory does not grow
with the number of questions. A slow site delays the answers after it, but the origins of all questions in
the window are loaded meanwhile. The event loop never waits for input or output.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from scrapy import Request, signals
from twisted.internet.defer import Deferred

from scrapy_norobots import compat
from scrapy_norobots.commands.answerer import Answerer, address
from scrapy_norobots.commands.base import CommandError
from scrapy_norobots.commands.spider import Pool
from scrapy_norobots.commands.url_reader import LINE_MAX, DaemonThreads, LongLine, UrlReader
from scrapy_norobots.standard import Reason

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_norobots.commands.progress import Progress
    from scrapy_norobots.commands.sources import Found, Source
    from scrapy_norobots.standard import Origin

# The limits of the window: answers, and characters of answers and questions.
WINDOW = 10_000
_WINDOW_SIZE = 64 * 1024 * 1024

# How many questions are answered in one turn of the event loop.
_AT_ONCE = 100

# How long to wait for loads when the crawl is stopped, in seconds; their downloads have ended by then.
_CLOSING_LIMIT = 2.0


@dataclass(slots=True, eq=False)
class _Question:
    url: str
    sent: str = ""
    answer: str | None = None


class Stream:
    """Answers the questions of `reader` with `answerer`, by the robots.txt files of `source`.

    `write` writes answers of one or more lines, and is called in a thread. `thread` is for work that would
    block the event loop, and is shut down at the end.
    """

    def __init__(
        self,
        crawler: Crawler,
        reader: UrlReader,
        source: Source,
        answerer: Answerer,
        write: Callable[[list[str]], None],
        progress: Progress,
        thread: Executor,
    ) -> None:
        self._reader = reader
        self._source = source
        self._answerer = answerer
        self._write = write
        self._progress = progress
        self._thread = thread
        self._most = max(WINDOW // len(answerer.robots), 1)
        self._window: deque[_Question] = deque()
        self._waiting: dict[Origin, list[_Question]] = {}  # questions whose origin is being loaded
        self._loads = Pool(crawler, self._load)
        # The size of the window, in questions and in characters. What is being written is still in it.
        self._unwritten = 0
        self._size = 0
        self._written = 0
        self._input_has_ended = False
        self._failure: Exception | None = None
        self._room: Deferred[None] | None = None
        self._finished: Deferred[None] = Deferred()
        self._reading: Deferred[None] | None = None
        self._writing: Deferred[None] | None = None
        self._is_writing = False
        self._writer = ThreadPoolExecutor(1, "norobots-output")
        crawler.signals.connect(self._stop, signals.spider_closed)

    async def run(self) -> None:
        """Answer all questions.

        Raises `InputError` if they cannot be read, and `CommandError` if the source or the output fails, or
        if the crawl is stopped before all questions are read.
        """
        self._reading = compat.spawn(self._read())
        try:
            await compat.waiting_for(self._finished)
        finally:
            self._writer.shutdown(wait=False)
            self._thread.shutdown(wait=False)
            self._progress.clear()

    async def _read(self) -> None:
        batches, threads = self._reader.batches(), DaemonThreads()
        try:
            while (batch := await compat.in_thread(threads, partial(next, batches, None))) is not None:
                for number, url in enumerate(batch, 1):
                    if self._is_full():
                        await self._wait_for_room()
                    self._ask(url)
                    if number % _AT_ONCE == 0:
                        self._go_on()
                        await compat.sleep(0)
                self._go_on()
        except Exception as exc:
            if self._input_has_ended:
                return  # it was cancelled
            self._failure = exc
        self._input_has_ended = True
        self._go_on()

    def _stop_reading(self) -> None:
        if not self._input_has_ended and self._reading is not None:
            self._input_has_ended = True
            compat.cancel(self._reading)

    def _is_full(self) -> bool:
        return self._unwritten >= self._most or self._size >= _WINDOW_SIZE

    async def _wait_for_room(self) -> None:
        self._room = Deferred()
        self._go_on()
        await compat.waiting_for(self._room)

    def _ask(self, url: str) -> None:
        """Answer a question, or load its origin."""
        question = _Question(url)
        self._window.append(question)
        self._unwritten += 1
        self._size += len(url)
        if isinstance(url, LongLine):
            detail = f"the line has more than {LINE_MAX:,} bytes, too many for a URL"
            self._set(question, self._answerer.unknown(url, Reason.BAD_URL, detail))
            return
        try:
            origin, question.sent = address(url)
        except ValueError as exc:
            detail = f"the URL is invalid ({exc})"
            self._set(question, self._answerer.unknown(url, Reason.BAD_URL, detail))
            return
        if origin is None:
            self._set(question, self._answerer.unknown(url, Reason.NOT_WEB))
            return
        found = self._source.get(origin)
        if found is not None and self._answerer.is_ready(found):
            self._set(question, self._answerer.answer(url, question.sent, found))
        elif origin in self._waiting:
            self._waiting[origin].append(question)
        else:
            self._waiting[origin] = [question]
            self._loads.add(origin)

    def _set(self, question: _Question, answer: str) -> None:
        question.answer = answer
        self._size += len(answer)

    async def _load(self, origin: Origin) -> None:
        """Load an origin, and answer the questions that wait for it."""
        try:
            found = await self._source.load(origin, Request(self._waiting[origin][0].url))
            await self._answer_all(origin, found, self._waiting.pop(origin))
        except Exception as exc:
            self._end(exc)
        else:
            self._go_on()

    async def _answer_all(self, origin: Origin, found: Found | None, questions: list[_Question]) -> None:
        if found is not None and not self._answerer.is_ready(found):
            answers = await compat.in_thread(
                self._thread, lambda: [self._answerer.answer(one.url, one.sent, found) for one in questions]
            )
            for question, answer in zip(questions, answers, strict=True):
                self._set(question, answer)
            return
        for number, question in enumerate(questions, 1):
            if found is None:
                detail = f"{origin} is not in the store"
                self._set(question, self._answerer.unknown(question.url, Reason.ERROR, detail))
            else:
                self._set(question, self._answerer.answer(question.url, question.sent, found))
            if number % _AT_ONCE == 0:
                await compat.sleep(0)

    def _go_on(self) -> None:
        """Write the answers that are ready, and end when all are written."""
        if not self._is_writing:
            if self._window and self._window[0].answer is not None:
                self._is_writing = True
                self._writing = compat.spawn(self._write_ready())
            elif self._input_has_ended and not self._window:
                self._end(self._failure)
            else:
                self._show_progress()

    async def _write_ready(self) -> None:
        try:
            while self._window and self._window[0].answer is not None:
                answers, size = self._take_ready()
                await compat.in_thread(self._writer, partial(self._write, answers))
                self._written += len(answers)
                self._unwritten -= len(answers)
                self._size -= size
                if self._room is not None and not self._is_full():
                    room, self._room = self._room, None
                    room.callback(None)
        except Exception as exc:
            self._end(exc)
        self._is_writing = False
        self._go_on()

    def _take_ready(self) -> tuple[list[str], int]:
        """Remove the answers to write next from the window; return them and the size that is freed."""
        answers, size = [], 0
        while self._window and (answer := self._window[0].answer) is not None:
            size += len(self._window.popleft().url) + len(answer)
            answers.append(answer)
        return answers, size

    def _show_progress(self) -> None:
        loads = len(self._loads)
        sites = f", {loads:,} site{'s' * (loads != 1)} left" if loads else ""
        answers = f"{self._written:,} answer{'s' * (self._written != 1)}"
        self._progress.show(answers + sites, self._reader.fraction(self._written))

    def _end(self, failure: Exception | None) -> None:
        if self._finished.called:
            return
        self._stop_reading()
        self._loads.clear()
        if failure is None:
            self._finished.callback(None)
        else:
            self._finished.errback(failure)

    async def _stop(self) -> None:
        """Answer the questions that were read, if the crawl is stopped before that."""
        if self._finished.called:
            return
        if not self._input_has_ended:
            self._failure = CommandError("the crawl was stopped before all URLs were read")
            self._stop_reading()
        self._loads.clear()
        with suppress(TimeoutError):
            await compat.within(_CLOSING_LIMIT, self._loads.join())
        for question in self._window:
            if question.answer is None:
                detail = "the crawl was stopped before robots.txt was downloaded"
                self._set(question, self._answerer.unknown(question.url, Reason.ERROR, detail))
        self._go_on()
        if self._is_writing and self._writing is not None:
            await compat.waiting_for(self._writing)
