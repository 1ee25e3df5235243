"""A spider's own request for a robots.txt, answered from the snapshot: one download for everybody.

The response is what this crawl downloaded: final URL, status, body, and the headers that a snapshot keeps.
A request for anything else goes to the site: for an error page, of which a snapshot has no body, or for a
file that came from a store. So does a request that is not the spider's own, such as that of ``scrapy fetch``
or the shell: whoever looks at a file by hand wants what the site sends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.http import Headers
from scrapy.responsetypes import responsetypes

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.http import Response

    from scrapy_norobots.access import Access

# Marks such a response, in the log and for the callback.
_FLAG = "norobots"

# Headers of requests that ask for something else than a whole file that may be an hour old.
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


def can_be_answered(request: Request, spider: Spider | None) -> bool:
    """Whether a snapshot can answer a request for a robots.txt: the spider's own, a plain GET to its host.

    A request is the spider's own if its callback is. In ``scrapy fetch`` and ``view`` that is a method of the
    command, in the shell one of a `Deferred`, though the spider may be one of the project's.
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


def answer(access: Access, request: Request) -> Response | None:
    """Return what was downloaded as the response to a request.

    None if there is no file that the site sent to this crawl: what the spider makes of that is its own
    business.
    """
    snapshot = access.snapshot
    if access.rules is None or access.stale or not snapshot.from_site:
        return None
    assert snapshot.status is not None  # there are rules
    request.meta["dont_cache"] = True  # Scrapy's HTTP cache must not take it for the site's response
    headers = Headers({name: value.encode("latin-1") for name, value in snapshot.headers.items()})
    make = responsetypes.from_args(headers=headers, url=snapshot.url, body=snapshot.body)
    response: Response = make(
        snapshot.url,
        status=snapshot.status,
        headers=headers,
        body=snapshot.body,
        flags=[_FLAG],
        request=request,
    )
    return response
