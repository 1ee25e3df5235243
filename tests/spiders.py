"""Spiders for the tests' crawls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.http import Response, TextResponse
from twisted.python.failure import Failure

from tests.crawling import Drop


class Pages(Spider):
    """Fetches the requests of a job, follows links if told to, and remembers what came of each."""

    name = "pages"
    custom_settings: dict[str, Any] | None = None

    def __init__(self, requests: list[str | dict[str, Any]], follow: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._requests = requests
        self._follow = follow
        self.pages: list[str] = []
        self.drops: list[Drop] = []
        self.notes: dict[str, Any] = {}

    async def start(self) -> AsyncIterator[Request]:
        for request in self.start_requests():
            yield request

    def start_requests(self) -> Iterator[Request]:
        for given in self._requests:
            yield self.request(**({"url": given} if isinstance(given, str) else given))

    def request(self, url: str, **kwargs: Any) -> Request:
        return Request(url, callback=self.parse, errback=self.dropped, **kwargs)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        self.pages.append(response.url)
        if self._follow and isinstance(response, TextResponse):
            for link in response.css("a::attr(href)").getall():
                yield self.request(response.urljoin(link))

    def dropped(self, failure: Failure) -> None:
        error = failure.value
        rule = getattr(getattr(error, "decision", None), "rule", None)
        self.drops.append(
            Drop(
                url=failure.request.url,  # type: ignore[attr-defined]
                type=type(error).__name__,
                text=str(error),
                line=rule.line if rule else None,
            )
        )
