"""Answer a spider's own request for a robots.txt from the snapshot, without a second download.

The response has what this crawl downloaded: final URL, status, body, and the headers that a snapshot keeps.
The request is sent to the site if it is not a plain GET, or if there is no such response: after an error,
because a snapshot keeps no error page, or if the file came from a store. Requests of ``scrapy fetch``,
``view`` and ``shell`` are always sent, because their user wants to see what the site sends.
"""

from __future__ import annotations

from functools import partial

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes

from scrapy_norobots.events import Events
from scrapy_norobots.rules.access import Access
from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.settings import Config

# A request with one of these headers asks for more, or less, than a whole file from a cache.
_SPECIAL_HEADERS = (
    "Authorization",
    "Cache-Control",
    "Cookie",
    "If-Match",
    "If-Modified-Since",
    "If-None-Match",
    "If-Unmodified-Since",
    "Pragma",
    "Range",
)


def subscribe(crawler: Crawler, config: Config, events: Events) -> None:
    """Answer the requests of a crawl for robots.txt."""
    events.asked.connect(
        lambda request: (
            partial(answer, crawler, request) if can_be_answered(request, crawler.spider) else None
        )
    )


def can_be_answered(request: Request, spider: Spider | None) -> bool:
    """Return whether a snapshot can answer a request for a robots.txt: a plain GET by the spider itself.

    A request is the spider's own if its callback is; that of ``scrapy fetch``, ``view`` or ``shell`` is not.
    """
    return (
        (request.callback is None or getattr(request.callback, "__self__", None) is spider)
        and request.method == "GET"
        and not request.body
        and not request.cookies
        and "norobots_url" not in request.meta
        and not request.meta.get("dont_redirect")
        and not any(name in request.headers for name in _SPECIAL_HEADERS)
    )


def answer(crawler: Crawler, request: Request, access: Access) -> Response | None:
    """Return the downloaded file as the response to a request; None if the site sent none to this crawl."""
    snapshot = access.snapshot
    if access.rules is None or access.stale or not snapshot.received:
        return None
    assert snapshot.status is not None  # there are rules
    compat.stats(crawler).inc_value("norobots/shared")
    request.meta["dont_cache"] = True  # Scrapy's HTTP cache must not take it for the site's response
    headers = Headers({name: value.encode("latin-1") for name, value in snapshot.headers.items()})
    make = responsetypes.from_args(headers=headers, url=snapshot.url, body=snapshot.body)
    response: Response = make(
        snapshot.url,
        status=snapshot.status,
        headers=headers,
        body=snapshot.body,
        flags=["norobots"],  # for the log and for the callback
        request=request,
    )
    return response
