"""What the meta of a request overrides: `dont_obey_robotstxt` and `norobots_url`.

Both apply to the origin that the request was sent to, and not to one that a redirect leads to: whoever
overrides the robots.txt of a site knows nothing of the sites that it redirects to. Scrapy's redirect
middlewares copy a request's meta, with the URLs that it came by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy_norobots.standard import Origin

if TYPE_CHECKING:
    from scrapy import Request


def is_overridden(request: Request) -> bool:
    """Whether a request is not to be checked."""
    return bool(request.meta.get("dont_obey_robotstxt")) and not _leads_elsewhere(request)


def checked_url(request: Request) -> str:
    """Return the URL to check: that of a request, or its `norobots_url` if it goes to a service elsewhere.

    Raises `ValueError` if `norobots_url` is no http or https URL.
    """
    url = request.meta.get("norobots_url")
    if url is None or _leads_elsewhere(request):
        return request.url
    try:
        if isinstance(url, str) and Origin.of(url) is not None and urlsplit(url).hostname:
            return url
        problem = "it must be an http or https URL"
    except ValueError as exc:
        problem = str(exc)
    raise ValueError(f"norobots_url = {url!r} in the meta of {request}: {problem}")


def _leads_elsewhere(request: Request) -> bool:
    """Whether a redirect has led to another origin than the one that the request was sent to."""
    urls = request.meta.get("redirect_urls")
    if not urls:
        return False
    try:
        return Origin.of(urls[0]) != Origin.of(request.url)
    except ValueError:
        return True
