"""`RobotsDownloader`: Scrapy's downloader, but downloads of robots.txt do not count.

In Scrapy, each request in the downloader counts against `CONCURRENT_REQUESTS`: it takes one of the *places*
of the crawl. Here, up to `NOROBOTS_CONCURRENT_FETCHES` downloads of robots.txt take none, and neither do the
requests that `Parking` lets it hold. It tells `Parking` when a request has moved. It changes no delay.
"""

from __future__ import annotations

import logging
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from scrapy.core.downloader import Downloader

from scrapy_norobots.load.fetch import ROBOTS_DOWNLOAD
from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.scrapy_api.internals import open_files_max, widen_pool
from scrapy_norobots.settings import read

if TYPE_CHECKING:
    from scrapy import Request
    from twisted.internet.defer import Deferred

    from scrapy_norobots.waiting.parking import Parking

logger = logging.getLogger(__name__)

# How many files a crawl opens beside these connections: logs, stores, queues on disk, closing connections.
_OTHER_FILES = 80


class RobotsDownloader(Downloader):
    """Scrapy's downloader, in which downloads of robots.txt do not count against ``CONCURRENT_REQUESTS``.

    The add-on sets ``DOWNLOADER = "scrapy_norobots.RobotsDownloader"``. Without `NoRobotsMiddleware` it does
    what Scrapy's downloader does.
    """

    # There is no `__init__`: Scrapy's warnings about settings name the file that calls Scrapy's `__init__`.
    parking: Parking | None = None  # `RobotsScheduler` sets it when it opens
    _free_downloads = 0  # downloads of robots.txt that take no place
    _widened: frozenset[str] = frozenset()

    @cached_property
    def _can_count(self) -> bool:
        """Without these names of Scrapy, downloads of robots.txt count like all others."""
        return hasattr(self, "active") and hasattr(self, "total_concurrency")

    def needs_backout(self) -> bool:
        """Return True if the engine should send no more requests for now."""
        if self.parking is None or not self._can_count:
            return super().needs_backout()
        return not self.has_place() or self.parking.has_nothing_to_do()

    def has_place(self) -> bool:
        """Return whether one more request may be sent; true if there is no limit, or none is known."""
        if not self._can_count or self.total_concurrency <= 0:
            return True
        more = 0 if self.parking is None else len(self.parking.held) + self.parking.lines.extra_places
        return len(self.active) - self._free_downloads - more < self.total_concurrency

    def fetch(self, request: Request, *args: Any) -> Deferred[Any]:
        """Download a request like Scrapy's downloader. Until Scrapy 2.13, `args` has the spider."""
        if is_free := ROBOTS_DOWNLOAD in request.meta:
            scheme = request.url.partition(":")[0]
            if scheme not in self._widened:  # handlers may open more connections than places
                self._widened |= {scheme}
                widen_pool(self, scheme, self.free_max)
            is_free = self._free_downloads < self.free_max
        self._free_downloads += is_free
        done: Deferred[Any] = super().fetch(request, *args)
        return done.addBoth(self._leave, request, is_free)

    def _enqueue_request(self, request: Request, *args: Any, **kwargs: Any) -> Any:
        enqueue, parking = partial(super()._enqueue_request, request, *args, **kwargs), self.parking
        if parking is None:
            return enqueue()

        def send() -> Any:
            """Send the request, and look at the slot as soon as Scrapy has removed it from there."""
            return compat.finally_call(
                enqueue(), partial(parking.removed, request, parking.slots.of(request))
            )

        if ROBOTS_DOWNLOAD not in request.meta:
            # Scrapy does the same in `send`. Done here, the URL is parsed once and not twice.
            request.meta[self.DOWNLOAD_SLOT] = self.get_slot_key(request)
            if (gate := parking.hold(request)) is not None:
                # A request that has been given back is returned to the engine.
                return compat.after(gate, lambda: send() if parking.reach(request) else request)
        return send()

    def _process_queue(self, *args: Any) -> Any:
        """Send what a slot can send: the last of `args`, which a request has reached or left."""
        result = super()._process_queue(*args)
        if self.parking is not None and args and args[-1] in self.parking.lines.of_slots:
            self.parking.lines.look_soon(args[-1])
        return result

    def _leave(self, result: Any, request: Request, is_free: bool) -> Any:
        self._free_downloads -= is_free
        if self.parking is not None:
            self.parking.leave(request)
        return result

    @cached_property
    def free_max(self) -> int:
        """How many downloads of robots.txt take no place.

        This is `NOROBOTS_CONCURRENT_FETCHES`, lowered if the process may not open so many files.
        """
        wanted: int = read(self.settings, "NOROBOTS_CONCURRENT_FETCHES")
        files = open_files_max()
        others = _OTHER_FILES + self.settings.getint("CONCURRENT_REQUESTS")
        free = wanted if files is None else max(1, files - others)
        if free < wanted:
            logger.info(
                "At most %d robots.txt files are downloaded at a time, and not %d "
                "(NOROBOTS_CONCURRENT_FETCHES), because this process may open only %d files (ulimit -n)",
                free,
                wanted,
                files,
            )
        return min(free, wanted)
