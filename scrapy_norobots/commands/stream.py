"""The answers of ``robots-check``: in the order of the URLs, while more are read.

`Answerer` says for each URL and robot whether the robot may fetch the URL, and why, as text or as JSON.
`Stream` answers a URL whose robots.txt is in memory at once. For another one, a task waits for the load of
its origin; at most `CONCURRENT_REQUESTS` loads run at once. A queue has the answers and tasks in the order of
the URLs, and what it has is limited, so memory does not grow with the number of URLs. A slow site delays the
answers after it, but the origins of all URLs in the queue are loaded meanwhile. The event loop never waits
for input or output.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from codecs import BOM_UTF8
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Future
from itertools import product
from threading import Thread
from typing import Any, NamedTuple

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_norobots.commands.base import (
    GREEN,
    RED,
    STDIN,
    YELLOW,
    InputError,
    Progress,
    coloured,
    display_name,
    places,
    span,
    to_json,
    write,
)
from scrapy_norobots.rules.access import Access, forbidden, spellings_of
from scrapy_norobots.rules.parser import statements_on
from scrapy_norobots.standard import Decision, Origin, Reason, Verdict
from scrapy_norobots.standard.decision import printable, quoted
from scrapy_norobots.standard.names import to_name
from scrapy_norobots.standard.urls import split

ALLOWED, FORBIDDEN, UNKNOWN = "allowed", "forbidden", "unknown"

# The exit status for each answer, and its colour.
_STATUS = {ALLOWED: 0, FORBIDDEN: 1, UNKNOWN: 2}
_COLOUR = {ALLOWED: GREEN, FORBIDDEN: RED, UNKNOWN: YELLOW}

# URLs that a `Request` does not change. Most are such, and making a `Request` takes as long as all the rest.
_PLAIN = re.compile(
    r"https?://[a-z0-9.\-]+(?::[1-9][0-9]{0,3})?/[A-Za-z0-9\-._~/]*(?:\?[A-Za-z0-9\-._~/=&+]+)?", re.ASCII
)

# How many names of a record are in an answer, and how long they are: a site could name 100,000 robots.
_NAMES_MAX = 50
_NAME_LENGTH_MAX = 200

# How many answers may be in the queue.
_WINDOW = 10_000

# How many bytes a line can have, how many of a longer one are shown, and how many are read at a time.
LINE_MAX = 64 * 1024
_SHOWN = 200
_READ_SIZE = 64 * 1024


def _facts(url: str, word: str, decision: Decision) -> dict[str, Any]:
    """Return an answer as data for JSON, from which its line is made too."""
    record = decision.record
    names = record and [name[:_NAME_LENGTH_MAX] for name in record.names[:_NAMES_MAX]]
    return {
        "url": url,
        "answer": word,
        "robot": decision.robot,
        "reason": decision.reason.name.lower(),
        "why": decision.why,
        "decided_for": decision.decided_for or None,
        "source": decision.source,
        "rule": decision.rule and decision.rule._asdict(),
        "record": record and {"line": record.line, "names": names},
        **dict.fromkeys(("rfc9309", "rfc9309_rule", "differs", "age", "fresh", "usage")),
    }


def _line(facts: dict[str, Any]) -> str:
    word, rule = facts["answer"], facts["rfc9309_rule"]
    robot = f" for {quoted(facts['robot'])}" if facts["robot"] else ""
    line = f"{coloured(f'{word:<9}', _COLOUR[word])} {printable(facts['url'])}{robot}: {facts['why']}"
    if facts["age"] is not None:
        line += f" [{span(facts['age'])} old{'' if facts['fresh'] else ', no longer fresh'}]"
    if facts["usage"]:
        texts = [f"line {one['line']}: {printable(one['text'], 200)}" for one in facts["usage"]]
        line += f" [{'; '.join(texts)}]"
    if facts["differs"]:
        why = f"; line {rule['line']}, {quoted(rule['value'])}" if rule else ""
        line += " " + coloured(f"[RFC 9309 differs: {facts['rfc9309']}{why}]", YELLOW)
    elif facts["rfc9309"]:
        line += " [RFC 9309: the same]"
    return line


class Answerer:
    """Answers questions for a list of robots.

    `by_rfc9309` returns the access by RFC 9309 for the same download, if answers are to be compared. If the
    accesses come from a store, answers have their age.
    """

    def __init__(
        self,
        robots: Sequence[str | bytes],
        *,
        as_json: bool,
        by_rfc9309: Callable[[Access], Access] | None = None,
        is_stored: bool = False,
    ) -> None:
        self.robots = robots
        self._as_json = as_json
        self._by_rfc9309 = by_rfc9309
        self._is_stored = is_stored
        self.status = 0  # the exit status for all answers so far: the highest

    async def prepare(self, access: Access) -> None:
        """Read the file of an access for the robots, in a thread, as it may be large."""
        both = [access] if self._by_rfc9309 is None else [access, self._by_rfc9309(access)]

        for each, robot in product(both, self.robots):
            await asyncio.to_thread(each.prepare, robot)

    def answer(self, url: str, sent: str, access: Access) -> str:
        """Return the answers for a URL; `sent` is the URL that a request for it would have."""
        return self._text([self._answer(url, sent, access, robot) for robot in self.robots])

    def _answer(self, url: str, sent: str, access: Access, robot: str | bytes) -> dict[str, Any]:
        decision = _decide(access, sent, robot)
        answer = _facts(url, _word(decision, access), decision)
        answer["usage"] = statements_on(access.rules, sent, robot)
        if self._is_stored:
            answer["age"] = round(max(time.time() - access.snapshot.time, 0.0), 1)
            answer["fresh"] = access.lifetime > 0
        if self._by_rfc9309 is not None:
            access = self._by_rfc9309(access)
            decision = _decide(access, sent, robot)
            answer["rfc9309"] = _word(decision, access)
            answer["rfc9309_rule"] = decision.rule and decision.rule._asdict()
            answer["differs"] = answer["rfc9309"] != answer["answer"]
        return answer

    def unknown(self, url: str, reason: Reason, detail: str = "") -> str:
        """Return the answers for a URL that cannot be checked, with the reason."""
        decisions = (
            Decision(Verdict.FORBIDDEN, url, to_name(robot), reason, detail=detail) for robot in self.robots
        )
        return self._text([_facts(url, UNKNOWN, decision) for decision in decisions])

    def _text(self, answers: list[dict[str, Any]]) -> str:
        self.status = max(self.status, *[_STATUS[answer["answer"]] for answer in answers])
        return "\n".join([to_json(one) if self._as_json else _line(one) for one in answers])


def address(url: str) -> tuple[Origin | None, str]:
    """Return the origin of a URL, and the URL that a request for it would have.

    The origin is None if no robots.txt applies to such a URL. Raises `ValueError` if the URL is invalid.
    """
    sent = url if _PLAIN.fullmatch(url) else Request(url).url
    return Origin.of(sent), sent


def _decide(access: Access, url: str, robot: str | bytes) -> Decision:
    """Decide as the middleware does: a URL is forbidden if any spelling is that may be sent."""
    origin, target = split(url)
    assert origin is not None  # `address` has checked that
    assert target is not None
    decision = forbidden(access, url, origin, target, robot, spellings_of(target))
    return access.decide(url, robot) if decision is None else decision


def _word(decision: Decision, access: Access) -> str:
    """Return the answer in one word; ``unknown`` if a temporary failure forbids the URL, and not the site."""
    if not decision and access.temporary and access.rules is None:
        return UNKNOWN
    return ALLOWED if decision else FORBIDDEN


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
        return self._answerer.answer(url, sent, access)

    async def _load(self, origin: Origin, request: Request) -> Access:
        async with self._places:
            access = await self._lookup.load(origin, request)
        await self._answerer.prepare(access)
        return access

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

    They are the arguments. In place of ``-``, they are the lines of standard input: a batch has those that
    can be read without waiting. So a program can write a URL, read the answer and write the next URL. A line
    that is too long is yielded as `LongLine`. Raises `InputError` if the input cannot be read.
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
