"""Decide whether forbidden requests can be dropped when they are scheduled, before they are in a queue.

This must make no difference to the crawl, and must drop nothing that would be allowed later. So requests are
dropped there only if Scrapy lets a handler of `request_scheduled` do so, if no other component can change a
request on its way to the middleware, and if only Scrapy's own components see what the middleware raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_norobots import compat

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.dupefilters import BaseDupeFilter

_SCRAPYS_OWN = "scrapy.downloadermiddlewares."
_ONLY_DROPS = "scrapy.downloadermiddlewares.offsite"


def duplicates_filter(crawler: Crawler, middleware: object) -> BaseDupeFilter | None:
    """Return the filter for duplicate requests of a running crawl.

    Returns None if `middleware`, a downloader middleware, cannot drop requests when they are scheduled.
    """
    chain = compat.downloader_middlewares(crawler)
    can_drop = (
        middleware in chain
        and all(
            type(one).__module__ == _ONLY_DROPS or not hasattr(one, "process_request")
            for one in chain[: chain.index(middleware)]
        )
        and all(
            type(one).__module__.startswith(_SCRAPYS_OWN) or not hasattr(one, "process_exception")
            for one in chain
        )
    )
    return compat.dupefilter(crawler) if can_drop else None
