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

from scrapy import Request, signals
from scrapy.crawler import Crawler
from twisted.internet.defer import Deferred

from scrapy_norobots.commands.answerer import Answerer, address
from scrapy_norobots.commands.base import CommandError
from scrapy_norobots.commands.progress import Progress
from scrapy_norobots.commands.sources import Found, Source
from scrapy_norobots.commands.spider import Bell, Pool
from scrapy_norobots.commands.url_reader import LINE_MAX, DaemonThreads, LongLine, UrlReader
from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.standard import Origin, Reason

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
        self._has_failed = False  # the source or the output
        self._has_finished = False
        self._failure: Exception | None = None
        self._change = Bell()
        self._reading: Deferred[None] | None = None
        crawler.signals.connect(self._stop, signals.spider_closed)

    async def run(self) -> None:
        """Answer all questions.

        Raises `InputError` if they cannot be read, and `CommandError` if the source or the output fails, or
        if the crawl is stopped before all questions are read.
        """
        self._reading = compat.spawn(self._read())
        writer = ThreadPoolExecutor(1, "norobots-output")
        try:
            await self._write_all(writer)
            if self._failure is not None:
                raise self._failure
        finally:
            self._stop_reading()
            self._loads.clear()
            writer.shutdown(wait=False)
            self._thread.shutdown(wait=False)
            self._progress.clear()
            self._has_finished = True
            self._change.ring()

    async def _read(self) -> None:
        batches, threads = self._reader.batches(), DaemonThreads()
        try:
            while (batch := await compat.in_thread(threads, partial(next, batches, None))) is not None:
                for number, url in enumerate(batch, 1):
                    while self._is_full():
                        self._change.ring()  # some answers may be ready
                        await self._change.wait()
                    self._ask(url)
                    if number % _AT_ONCE == 0:
                        self._change.ring()
                        await compat.sleep(0)
                self._change.ring()
        except Exception as exc:
            if self._input_has_ended:
                return  # it was cancelled
            self._failure = exc
        self._input_has_ended = True
        self._change.ring()

    def _stop_reading(self) -> None:
        if not self._input_has_ended and self._reading is not None:
            self._input_has_ended = True
            compat.cancel(self._reading)

    def _is_full(self) -> bool:
        return self._unwritten >= self._most or self._size >= _WINDOW_SIZE

    def _ask(self, url: str) -> None:
        """Answer a question, or load its origin."""
        question = _Question(url)
        self._window.append(question)
        self._unwritten += 1
        self._size += len(url)
        if isinstance(url, LongLine):
            self._refuse(question, f"the line has more than {LINE_MAX:,} bytes, too many for a URL")
            return
        try:
            origin, question.sent = address(url)
        except ValueError as exc:
            self._refuse(question, f"the URL is invalid ({exc})")
            return
        if origin is None:
            self._refuse(question, "", Reason.NOT_WEB)
            return
        found = self._source.get(origin)
        if found is not None and self._answerer.is_ready(found):
            self._set(question, self._answerer.answer(url, question.sent, found))
        elif origin in self._waiting:
            self._waiting[origin].append(question)
        else:
            self._waiting[origin] = [question]
            self._loads.add(origin)

    def _refuse(self, question: _Question, detail: str, reason: Reason = Reason.BAD_URL) -> None:
        """Answer a question that no robots.txt answers."""
        self._set(question, self._answerer.unknown(question.url, reason, detail))

    def _set(self, question: _Question, answer: str) -> None:
        question.answer = answer
        self._size += len(answer)

    async def _load(self, origin: Origin) -> None:
        """Load an origin, and answer the questions that wait for it."""
        try:
            found = await self._source.load(origin, Request(self._waiting[origin][0].url))
            for number, question in enumerate(self._waiting.pop(origin), 1):
                await self._answer(question, origin, found)
                if number % _AT_ONCE == 0:
                    await compat.sleep(0)
        except Exception as exc:
            self._failure = exc
            self._has_failed = True
        self._change.ring()

    async def _answer(self, question: _Question, origin: Origin, found: Found | None) -> None:
        if found is None:
            self._refuse(question, f"{origin} is not in the store", Reason.ERROR)
            return
        answer = partial(self._answerer.answer, question.url, question.sent, found)
        is_ready = self._answerer.is_ready(found)
        self._set(question, answer() if is_ready else await compat.in_thread(self._thread, answer))

    async def _write_all(self, writer: Executor) -> None:
        """Write the answers in order, until all are written, or the source fails."""
        while not self._has_failed and (self._window or not self._input_has_ended):
            answers, size = self._take_ready()
            if self._window or answers:
                self._show_progress()
            if not answers:
                await self._change.wait()
                continue
            await compat.in_thread(writer, partial(self._write, answers))
            self._written += len(answers)
            self._unwritten -= len(answers)
            self._size -= size
            self._change.ring()

    def _take_ready(self) -> tuple[list[str], int]:
        """Remove the answers to write next from the window; return them and the size that is freed."""
        answers, size = [], 0
        while self._window and (answer := self._window[0].answer) is not None:
            size += len(self._window.popleft().url) + len(answer)
            answers.append(answer)
        return answers, size

    def _show_progress(self) -> None:
        loads = len(self._waiting)
        sites = f", {loads:,} site{'s' * (loads != 1)} left" if loads else ""
        answers = f"{self._written:,} answer{'s' * (self._written != 1)}"
        self._progress.show(answers + sites, self._reader.fraction(self._written))

    async def _stop(self) -> None:
        """Answer the questions that were read, if the crawl is stopped before that."""
        if self._has_finished:
            return
        if not self._input_has_ended:
            self._failure = self._failure or CommandError("the crawl was stopped before all URLs were read")
            self._stop_reading()
        self._loads.clear()
        with suppress(TimeoutError):
            await compat.within(_CLOSING_LIMIT, self._loads.join())
        for question in self._window:
            if question.answer is None:
                self._refuse(question, "the crawl was stopped before robots.txt was downloaded", Reason.ERROR)
        self._change.ring()
        while not self._has_finished:
            await self._change.wait()
