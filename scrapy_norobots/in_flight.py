"""`BodiesInFlight`: all bodies of robots.txt that are being downloaded take no more memory than allowed.

A download handler keeps a body until its end, and hundreds of downloads may run. Each is bounded by itself;
this bounds them together. A body may grow while there is as much room left as it takes already. So the sum
never exceeds the bound, and where room is short the larger bodies are given up and the small ones still come.

It counts what Scrapy's `bytes_received` signal reports, which all of Scrapy's own HTTP handlers send.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from itertools import count
from traceback import walk_tb
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import StopDownload

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

# What can go on later: clearing its frame would end it.
_CAN_GO_ON = CO_COROUTINE | CO_GENERATOR | CO_ASYNC_GENERATOR

# Commands download beside the middleware, each with a count of its own.
_instances = count()


class NoRoomError(StopDownload):
    """A body was given up for want of room."""

    def __str__(self) -> str:
        return "it is too large: NOROBOTS_MEMORY_MAX bounds it and all that are downloaded meanwhile"


class _NobodyWaitsError(StopDownload):
    """A download goes on though whoever started it has given it up."""


@dataclass(slots=True)
class _Body:
    request: Request | None = None
    size: int = 0


class BodiesInFlight:
    """Counts the bodies that are being downloaded for a crawler: `bytes_max` at most, in all."""

    def __init__(self, crawler: Crawler, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        # In a request's meta: the number of the download that it is made for.
        self._key = f"_norobots_in_flight_{next(_instances)}"
        self._bodies: dict[int, _Body] = {}
        self._numbers = count()
        self._size = 0
        crawler.signals.connect(self._received, signals.bytes_received)

    @contextmanager
    def counted(self) -> Iterator[dict[str, object]]:
        """Count a download that runs inside the ``with``; yield the meta that its requests must have."""
        number = next(self._numbers)
        self._bodies[number] = _Body()
        try:
            yield {self._key: number}
        finally:
            self._resize(self._bodies.pop(number), 0)

    def _received(self, data: bytes, request: Request) -> None:
        number = request.meta.get(self._key)
        if number is None:
            return
        body = self._bodies.get(number)
        if body is None:
            raise _NobodyWaitsError
        if body.request is not request:  # it is tried again, or redirected
            body.request = request
            self._resize(body, 0)
        self._resize(body, body.size + len(data))
        if body.size > self._bytes_max - self._size:
            self._resize(body, 0)
            raise NoRoomError

    def _resize(self, body: _Body, size: int) -> None:
        self._size += size - body.size
        body.size = size


def free_body(exc: StopDownload) -> None:
    """Free the body of a download that was stopped, to make room for others.

    Scrapy's frames that sent the signal refer to each other and to the handler's, so it would stay until
    Python looks for such cycles.
    """
    exc.response = None
    for lowest, _ in walk_tb(exc.__traceback__):
        frame = lowest
        while frame is not None and not frame.f_code.co_flags & _CAN_GO_ON:
            with suppress(RuntimeError):  # it is running
                frame.clear()
            frame = frame.f_back  # type: ignore[assignment]
