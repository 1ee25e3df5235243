"""The answers of ``robots-check``: in the order of the URLs, while more are read.

`Stream` starts the load of an origin that is not in memory when it reads the first of its URLs; at most
`CONCURRENT_REQUESTS` loads run at once. A queue has the URLs in their order, each with the access to its
origin, or the load of it. It is limited, so memory does not grow with the number of URLs. A slow site delays
the answers after it, but the origins of all URLs in the queue are loaded meanwhile. The event loop never
waits for input or output.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import product
from threading import Thread
from typing import Any, TypeAlias

from scrapy import Request

from scrapy_norobots.commands.base import (
    GREEN,
    RED,
    STDIN,
    YELLOW,
    CommandError,
    Progress,
    coloured,
    display_name,
    span,
    to_json,
    write,
)
from scrapy_norobots.features.report.counters import counted
from scrapy_norobots.question import Question
from scrapy_norobots.rules.access import Access
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

# How many URLs may be in the queue, and how many answers are written at once.
_WINDOW = 10_000
_BATCH = 500

# How many bytes a line can have, which is also how many are read at a time, and what is shown of longer ones.
LINE_MAX = 64 * 1024
_SHOWN = 200
# What stands before the beginning of a line that is too long.
TOO_LONG = f"more than {LINE_MAX:,} bytes: "

Get: TypeAlias = Callable[[Origin], Access | None]
Load: TypeAlias = Callable[[Origin, Request], Awaitable[Access]]
# The URL that a request for a URL would have, its origin and its target.
_Address: TypeAlias = tuple[str, Origin, str]
# A URL, its address, and the access to its origin or the load of it.
_Asked: TypeAlias = tuple[str, _Address, Access | asyncio.Task[Access]]


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


def address(url: str) -> _Address | None:
    """Return the address of a URL; None if no robots.txt applies to it. Raises `ValueError` if invalid."""
    sent = url if _PLAIN.fullmatch(url) else Request(url).url
    origin, target = split(sent)
    return None if origin is None or target is None else (sent, origin, target)


def _decide(question: Question, access: Access) -> tuple[str, Decision]:
    """Return the answer in one word, ``unknown`` if a temporary failure forbids the URL, and why."""
    decision = question.forbidden_by(access)
    if decision is None:
        return ALLOWED, access.decide(question.url, question.robot)
    return UNKNOWN if access.temporary and access.rules is None else FORBIDDEN, decision


@dataclass
class Stream:
    """Answers URLs for a list of robots.

    `get` returns the access of an origin that is in memory, or None. `load` loads one for a request; it
    raises `LookupError` if there is none, and `CommandError` if it fails for all origins. `by_rfc9309`
    returns the access by RFC 9309 for the same download, if answers are to be compared. If the accesses come
    from a store, answers have their age. At most as many loads run as there are `places`. `status` is the
    exit status for all answers so far: the highest.
    """

    get: Get
    load: Load
    robots: Sequence[str | bytes]
    progress: Progress
    places: asyncio.Semaphore
    as_json: bool
    by_rfc9309: Callable[[Access], Access] | None = None
    is_stored: bool = False
    status: int = 0
    _written: int = 0
    _queue: asyncio.Queue[str | _Asked | None] = field(default_factory=asyncio.Queue)  # None is the end
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_WINDOW))
    _loads: dict[Origin, asyncio.Task[Access]] = field(default_factory=dict)

    async def run(self, arguments: Sequence[str]) -> None:
        """Answer all URLs. Raises `CommandError` if they cannot be read, or if a load or the output fails."""
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

    def _ask(self, url: str) -> str | _Asked:
        """Start the load of an origin, if need be. Return the answer if no robots.txt applies to a URL."""
        try:
            sent = address(url)
        except ValueError as exc:
            return self._unknown(url, Reason.BAD_URL, f"the URL is invalid ({exc})")
        if sent is None:
            return self._unknown(url, Reason.NOT_WEB)
        origin = sent[1]
        access = self.get(origin) or self._loads.get(origin)
        if access is None:
            access = self._loads[origin] = asyncio.create_task(self._load(origin, Request(url)))
            # The first exception ends the command, and asyncio need not log the others.
            access.add_done_callback(lambda task: task.cancelled() or task.exception())
        return url, sent, access

    async def _load(self, origin: Origin, request: Request) -> Access:
        try:
            async with self.places:
                access = await self.load(origin, request)
            both = [access] if self.by_rfc9309 is None else [access, self.by_rfc9309(access)]
            for each, robot in product(both, self.robots):
                await asyncio.to_thread(each.prepare, robot)  # the file may be large
            return access
        finally:
            del self._loads[origin]

    async def _write_all(self) -> None:
        """Write the answers in order, as many as there are at a time."""
        answers: list[str] = []
        while (asked := await self._queue.get()) is not None:
            self._room.release()
            if not isinstance(asked, str):
                url, sent, access = asked
                while isinstance(access, asyncio.Task) and not access.done():
                    await self._write(answers, awaited=url)
                    await asyncio.wait([access], timeout=1)
                asked = await self._answer(url, sent, access)
            answers.append(asked)
            if self._queue.empty() or len(answers) * len(self.robots) >= _BATCH:
                await self._write(answers)
        await self._write(answers)

    async def _answer(self, url: str, sent: _Address, access: Access | asyncio.Task[Access]) -> str:
        try:
            loaded = access if isinstance(access, Access) else await access
        except LookupError as exc:
            return self._unknown(url, Reason.ERROR, str(exc))
        return self._text([self._judge(url, Question(*sent, robot), loaded) for robot in self.robots])

    def _judge(self, url: str, question: Question, access: Access) -> dict[str, Any]:
        answer = _facts(url, *_decide(question, access))
        answer["usage"] = statements_on(access.rules, question.url, question.robot)
        if self.is_stored:
            answer["age"] = round(max(time.time() - access.snapshot.time, 0.0), 1)
            answer["fresh"] = access.lifetime > 0
        if self.by_rfc9309 is not None:
            answer["rfc9309"], decision = _decide(question, self.by_rfc9309(access))
            answer["rfc9309_rule"] = decision.rule and decision.rule._asdict()
            answer["differs"] = answer["rfc9309"] != answer["answer"]
        return answer

    def _unknown(self, url: str, reason: Reason, detail: str = "") -> str:
        """Return the answers for a URL that cannot be checked, with the reason."""
        decisions = (
            Decision(Verdict.FORBIDDEN, url, to_name(robot), reason, detail=detail) for robot in self.robots
        )
        return self._text([_facts(url, UNKNOWN, decision) for decision in decisions])

    def _text(self, answers: list[dict[str, Any]]) -> str:
        self.status = max(self.status, *[_STATUS[answer["answer"]] for answer in answers])
        return "\n".join([to_json(one) if self.as_json else _line(one) for one in answers])

    async def _write(self, answers: list[str], awaited: str = "") -> None:
        """Write answers, and empty the list; show how many there are, and which URL the next one awaits."""
        if answers:
            self.progress.clear()
            await asyncio.to_thread(write, answers)
            self._written += len(answers)
            answers.clear()
        left = f", {counted(len(self._loads), 'site')} left: {printable(awaited, 60)}" if awaited else ""
        self.progress.show(f"{counted(self._written, 'answer')}{left}")


async def read_urls(arguments: Sequence[str]) -> AsyncIterator[list[str]]:
    """Yield the URLs of a command: the arguments, and in place of ``-``, the lines of standard input.

    A batch has those that can be read without waiting, so a program can write a URL, read the answer and
    write the next URL. Blank lines are skipped. Raises `CommandError` if the input cannot be read.
    """
    for argument in arguments:
        if argument != STDIN:
            yield [argument]
            continue
        data, rest = b"-", b""
        while data:
            data = await _read_stdin()
            *lines, rest = (rest + data).split(b"\n") if data else (rest, b"")
            rest = rest[: LINE_MAX + 1]  # which is enough to see that the line is too long
            yield list(filter(None, map(_url, lines)))


def _url(line: bytes) -> str:
    """Return the URL in a line, without a byte-order mark; empty if it is blank."""
    if len(line) > LINE_MAX:
        # Not a URL, so its answer is unknown.
        return TOO_LONG + line[:_SHOWN].decode("utf-8", "surrogateescape")
    return line.decode("utf-8", "surrogateescape").removeprefix("\ufeff").strip()


async def _read_stdin() -> bytes:
    """Read what there is. A daemon thread waits for it, which does not keep the process from ending."""
    future: Future[bytes] = Future()
    future.set_running_or_notify_cancel()

    def read() -> None:
        try:
            # Not with `sys.stdin.buffer`, which cannot be closed while a thread waits for it.
            future.set_result(os.read(sys.stdin.fileno(), LINE_MAX))
        except OSError as exc:
            future.set_exception(CommandError(display_name(STDIN), exc.strerror or str(exc)))

    Thread(target=read, name="norobots-input", daemon=True).start()
    return await asyncio.wrap_future(future)
