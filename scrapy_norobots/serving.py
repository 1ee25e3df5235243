"""A spider's own request for a robots.txt, answered from the snapshot: one download for everybody.

The response is what was downloaded: final URL, status, body, and the headers that a snapshot keeps. Only the
bodies of 2xx responses are kept; any other response has an empty one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.http import Headers
from scrapy.responsetypes import responsetypes

if TYPE_CHECKING:
    from scrapy import Request
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


def can_be_answered(request: Request) -> bool:
    """Whether a request for a robots.txt is one that a snapshot can answer: a plain GET to its host."""
    return (
        request.method == "GET"
        and not request.body
        and not request.cookies
        and "norobots_url" not in request.meta
        and not request.meta.get("dont_redirect")
        and not any(name in request.headers for name in _SPECIAL_HEADERS)
    )


def answer(access: Access, request: Request) -> Response | None:
    """Return what was downloaded as the response to a request.

    None if the download failed or led nowhere: what the spider makes of that is its own business.
    """
    if access.temporary or access.outcome == "3xx":
        return None
    snapshot = access.snapshot
    assert snapshot.status is not None  # without one it is temporary
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
