"""`dont_obey_robotstxt`, and how far it goes: a request's own origin, and not where a redirect leads to.

Whoever overrides the robots.txt of one site knows nothing of the sites that it redirects to. Scrapy's
redirect middlewares hand a request's meta on, with the URLs that it came by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_norobots.standard import Origin

if TYPE_CHECKING:
    from scrapy import Request


def is_overridden(request: Request) -> bool:
    """Whether a request is not to be checked."""
    return bool(request.meta.get("dont_obey_robotstxt")) and not leads_elsewhere(request)


def leads_elsewhere(request: Request) -> bool:
    """Whether a redirect has led to another origin than the one that the request was sent to."""
    urls = request.meta.get("redirect_urls")
    if not urls:
        return False
    try:
        return Origin.of(urls[0]) != Origin.of(request.url)
    except ValueError:
        return True
