"""Find the robot of a request: `ROBOTSTXT_USER_AGENT`, or the User-Agent that Scrapy will send."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from scrapy.downloadermiddlewares.useragent import UserAgentMiddleware
from scrapy.http import Headers

from scrapy_norobots.scrapy_api import compat

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

_USER_AGENT = next(iter(Headers({"User-Agent": ""})))  # as headers keep their names


class Identity:
    """The User-Agent of a crawler's requests."""

    def __init__(self, crawler: Crawler, robot: str | None) -> None:
        """Use `robot` (the setting `ROBOTSTXT_USER_AGENT`) for all requests, unless it is None."""
        self._crawler = crawler
        self._robot = robot
        self._user_agent = crawler.settings.get("USER_AGENT")
        self._last: tuple[Any, bytes] = None, b""  # the last User-Agent, as given and encoded

    def robot(self, request: Request) -> str | bytes:
        """Return the name, or the whole User-Agent header, by which the rules for a request are chosen.

        A header is `bytes`, the value of the setting is `str`; other parsers get the same types from Scrapy.
        The header is the first of: the request's own, that in `DEFAULT_REQUEST_HEADERS`, the spider's
        `user_agent` attribute, the `USER_AGENT` setting; empty if the request will have none.
        """
        if self._robot:
            return self._robot
        headers = request.headers
        if _USER_AGENT not in headers.keys():  # noqa: SIM118  # to ask the headers takes ten times as long
            return self.default_user_agent
        return headers.get(_USER_AGENT) or b""  # one that is None keeps out the others

    @property
    def default(self) -> str | bytes:
        """The same for requests without a User-Agent of their own."""
        return self._robot or self.default_user_agent

    @property
    def default_user_agent(self) -> bytes:
        """The User-Agent of requests that have none of their own."""
        if self._default_header is not None:
            return self._default_header
        # When the spider is opened, this middleware takes its `user_agent`; a later one is not sent. It is
        # asked each time, because another handler of `spider_opened` may schedule requests before that.
        source = self._scrapys if type(self._scrapys) is UserAgentMiddleware else self._crawler.spider
        agent = getattr(source, "user_agent", self._user_agent)
        if agent is not self._last[0]:
            self._last = (
                agent,
                agent if isinstance(agent, bytes) else str(agent or "").encode("utf-8", "replace"),
            )
        return self._last[1]

    @cached_property
    def _default_header(self) -> bytes | None:
        headers = self._crawler.settings.getdict("DEFAULT_REQUEST_HEADERS")
        return Headers({name: value for name, value in headers.items() if value is not None}).get(
            "User-Agent"
        )

    @cached_property
    def _scrapys(self) -> UserAgentMiddleware | None:
        return compat.downloader_middleware(self._crawler, UserAgentMiddleware)
