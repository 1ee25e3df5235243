"""Who the crawler says it is: the User-Agent that a page request will be sent with.

The middleware comes early in the chain, before Scrapy sets that header. The choice of a record must go by the
name that the site will see, so this works it out in the order in which Scrapy's own middlewares do.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from scrapy.http import Headers

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

_HEADER = "User-Agent"


class Identity:
    """The User-Agent of a crawler's requests."""

    def __init__(self, crawler: Crawler, robot: str | None) -> None:
        """Take the name for rules from `robot` (`ROBOTSTXT_USER_AGENT`), if there is one."""
        self._crawler = crawler
        self._robot = robot

    def robot(self, request: Request) -> str | bytes:
        """Return the name, or whole User-Agent header, by which rules for a request are looked up.

        A header is in bytes, a name that the user has set is a text; so other parsers know it from Scrapy.
        """
        return self._robot or self.user_agent(request)

    @property
    def default(self) -> str | bytes:
        """The same for requests without a User-Agent of their own."""
        return self._robot or self._default

    def user_agent(self, request: Request) -> bytes:
        """Return the User-Agent that a request will be sent with; empty if it will have none.

        That is the request's own header; else that of `DEFAULT_REQUEST_HEADERS`; else the spider's
        `user_agent` attribute; else the `USER_AGENT` setting.
        """
        own = request.headers.get(_HEADER)
        return self._default if own is None else own

    @cached_property
    def _default(self) -> bytes:
        settings = self._crawler.settings
        headers = settings.getdict("DEFAULT_REQUEST_HEADERS") or {}
        given = {name: value for name, value in headers.items() if value is not None}
        default = Headers(given).get(_HEADER)
        if default is not None:
            return default
        value = getattr(self._crawler.spider, "user_agent", settings.get("USER_AGENT"))
        if not isinstance(value, (str, bytes, type(None))):  # a mock has every attribute
            value = settings.get("USER_AGENT")
        return value if isinstance(value, bytes) else str(value or "").encode("utf-8", "replace")
