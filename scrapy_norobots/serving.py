"""A spider's own request for a robots.txt, answered from the snapshot: one download for everybody.

What is answered is what came: final URL, status, body, and those headers that a snapshot keeps. Only the
bodies of 2xx answers are kept; any other answer has an empty one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.http import Headers
from scrapy.responsetypes import responsetypes

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

    from scrapy_norobots.snapshot import Snapshot

# Marks such an answer, in the log and for the callback.
FLAG = "norobots"

# Headers of requests that ask for something else than what anybody gets, whole and perhaps an hour old.
_OF_ITS_OWN = (
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
        and not any(name in request.headers for name in _OF_ITS_OWN)
    )


def answer_from(snapshot: Snapshot, request: Request) -> Response:
    """Return what was downloaded as the answer to a request."""
    assert snapshot.status is not None  # there was an answer
    headers = Headers({name: value.encode("latin-1") for name, value in snapshot.headers.items()})
    make = responsetypes.from_args(headers=headers, url=snapshot.url, body=snapshot.body)
    return make(
        snapshot.url,
        status=snapshot.status,
        headers=headers,
        body=snapshot.body,
        flags=[FLAG],
        request=request,
    )
