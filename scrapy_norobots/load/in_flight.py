"""`BodiesInFlight`: limit the memory of all robots.txt bodies that are being downloaded.

A download handler keeps a body in memory until it is complete, and hundreds of downloads may run at once.
`NOROBOTS_MAXSIZE` limits each of them; this class limits their sum. A body may grow while the free room is at
least the size that it has already. So the sum never exceeds the limit, and if room is short, larger bodies
are stopped and small ones still arrive.

Sizes come from Scrapy's signal `bytes_received`, which all of Scrapy's own HTTP handlers send.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from itertools import count
from traceback import walk_tb
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import StopDownload

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

# Code that may be resumed later: to clear its frame would end it.
_RESUMABLE = CO_COROUTINE | CO_GENERATOR | CO_ASYNC_GENERATOR

# The meta key for the download that a request belongs to, and who counts it: in a command, the add-on has a
# counter too. A retry belongs to the same download. They are numbers, so that a middleware may copy the meta.
_DOWNLOAD = "_norobots_in_flight"


class NoRoomError(StopDownload):
    """The download of a body was stopped because of the memory limit."""

    def __str__(self) -> str:
        return "too large: NOROBOTS_MEMORY_MAX limits the total size of the files being downloaded"


class BodiesInFlight:
    """Limits the bodies that a crawler downloads at the same time to `bytes_max` bytes in total."""

    def __init__(self, crawler: Crawler, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        # By download: its last request (each retry and redirect has its own), and the bytes received for it.
        self._bodies: dict[int, tuple[Request | None, int]] = {}
        self._numbers = count()
        crawler.signals.connect(self._received, signals.bytes_received)

    @contextmanager
    def counted(self) -> Iterator[dict[str, object]]:
        """Count a download that runs inside the ``with``. Yields the meta that its requests must have."""
        download = next(self._numbers)
        self._bodies[download] = None, 0
        try:
            yield {_DOWNLOAD: (id(self), download)}
        finally:
            del self._bodies[download]

    def _received(self, data: bytes, request: Request) -> None:
        counter, download = request.meta.get(_DOWNLOAD, (None, None))
        if counter != id(self):
            return
        if download not in self._bodies:  # its caller has stopped waiting for it
            raise StopDownload
        last, size = self._bodies[download]
        size = len(data) + (size if last is request else 0)
        self._bodies[download] = request, size
        if size > self._bytes_max - sum(size for _, size in self._bodies.values()):
            self._bodies[download] = request, 0
            raise NoRoomError


def free_body(exc: StopDownload) -> None:
    """Free the body of a stopped download, to make room for others.

    The frames of Scrapy that sent the signal refer to each other and to the frame of the handler. Without
    this function, the body would stay in memory until Python's garbage collector finds that cycle.
    """
    exc.response = None
    for lowest, _ in walk_tb(exc.__traceback__):
        frame = lowest
        while frame is not None and not frame.f_code.co_flags & _RESUMABLE:
            with suppress(RuntimeError):  # the frame is running
                frame.clear()
            frame = frame.f_back  # type: ignore[assignment]
