"""`waiting_room`: where the requests of a crawl wait for robots.txt.

If the crawl's downloader is a `RobotsDownloader` and Scrapy has all of the `INTERNALS`, they wait there
without counting against ``CONCURRENT_REQUESTS``. Otherwise, they wait in their places, as with Scrapy's own
robots.txt middleware, and one WARNING says so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import scrapy

from scrapy_norobots.downloader import RobotsDownloader, Turn, no_turn
from scrapy_norobots.internals import missing_internals

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_norobots.standard import Origin

logger = logging.getLogger(__name__)


class NoWaitingRoom:
    """Replaces a `RobotsDownloader` where there is none: requests that wait take places."""

    def must_wait(self, request: Request) -> bool:
        """Return False: a request with known rules never waits."""
        return False

    def line_up(self, slot: Any) -> None:
        """Do nothing."""

    @contextmanager
    def hold(self, origin: Origin | None, request: Request) -> Iterator[Turn]:
        """Do nothing."""
        yield no_turn

    def set_aside(self, request: Request) -> None:
        """Return None: a request that waits would keep its place."""

    def is_scheduled(self, request: Request) -> bool:
        """Return True; nothing depends on it, because no request is set aside."""
        return True


def waiting_room(crawler: Crawler) -> RobotsDownloader | NoWaitingRoom:
    """Return the object in which the requests of a crawl wait. Log a WARNING if they take places there."""
    downloader = getattr(crawler.engine, "downloader", None)
    if not isinstance(downloader, RobotsDownloader):
        problem = "DOWNLOADER is not scrapy_norobots.RobotsDownloader"
    elif missing := missing_internals(crawler):
        problem = f"Scrapy {scrapy.__version__} has no {', no '.join(missing)}"
    else:
        downloader.is_in_use = True
        return downloader
    logger.warning(
        "Requests that wait for robots.txt count against CONCURRENT_REQUESTS, so a slow host can stall the "
        "crawl of other hosts: %s",
        problem,
        extra={"spider": crawler.spider},
    )
    return NoWaitingRoom()
