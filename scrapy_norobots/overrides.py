"""The overrides in the meta of a request: `dont_obey_robotstxt` and `norobots_url`.

Both apply only to the origin of the first URL of the request, and not to other origins that redirects lead
to, because the user meant the first one. Scrapy's redirect middlewares copy the meta, and list the previous
URLs in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy_norobots.standard import Origin

if TYPE_CHECKING:
    from scrapy import Request


def is_overridden(request: Request) -> bool:
    """Return whether the meta of a request exempts it from robots.txt."""
    return bool(request.meta.get("dont_obey_robotstxt")) and not _leads_elsewhere(request)


def checked_url(request: Request) -> str:
    """Return the URL to check: `norobots_url` in the meta of a request, or else the request's own URL.

    Raises `ValueError` if `norobots_url` is not an http or https URL.
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
    """Return whether redirects have led the request to another origin than that of its first URL."""
    urls = request.meta.get("redirect_urls")
    if not urls:
        return False
    try:
        return Origin.of(urls[0]) != Origin.of(request.url)
    except ValueError:
        return True
