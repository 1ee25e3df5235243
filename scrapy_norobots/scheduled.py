"""Decide whether forbidden requests can be dropped when they are scheduled, before they are in a queue.

This must make no difference to the crawl, and must drop nothing that would be allowed later. So requests are
dropped there only if Scrapy lets a handler of `request_scheduled` do so, if no other component can change a
request on its way to the middleware, and if only Scrapy's own components see what the middleware raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_norobots import compat

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

_SCRAPYS_OWN = "scrapy.downloadermiddlewares."
_ONLY_DROPS = "scrapy.downloadermiddlewares.offsite"


class Scheduling:
    """Whether a downloader middleware of a running crawl can drop requests when they are scheduled."""

    def __init__(self, crawler: Crawler, middleware: object) -> None:
        self._duplicates = compat.dupefilter(crawler)
        chain = compat.downloader_middlewares(crawler)
        self.can_drop = (
            self._duplicates is not None
            and middleware in chain
            and all(
                type(one).__module__ == _ONLY_DROPS or not hasattr(one, "process_request")
                for one in chain[: chain.index(middleware)]
            )
            and all(
                type(one).__module__.startswith(_SCRAPYS_OWN) or not hasattr(one, "process_exception")
                for one in chain
            )
        )

    def is_new(self, request: Request) -> bool:
        """Return whether the scheduler would accept a request; if not, it filters it out as a duplicate."""
        assert self._duplicates is not None  # requests can be dropped
        return request.dont_filter or not self._duplicates.request_seen(request)
