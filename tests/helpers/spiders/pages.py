"""Sends requests and records what comes of them: `Pages`, the base of the spiders of crawls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy import Request, Spider
from scrapy.core.engine import ExecutionEngine
from scrapy.crawler import Crawler
from scrapy.http import Response, TextResponse
from twisted.python.failure import Failure

from scrapy_norobots import NoRobotsMiddleware

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class Drop:
    """A failed request: its URL, the type and text of the exception, the line of the rule, and
    `RobotsUnreachable.retry_after`.
    """

    url: str
    type: str
    text: str
    line: int | None = None
    retry_after: float | None = None


class Recording(Spider):
    """Has what a test reads when a crawl is over: URLs of pages, failed requests, and notes."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pages: list[str] = []
        self.drops: list[Drop] = []
        self.notes: dict[str, Any] = {}

    def dropped(self, failure: Failure) -> None:
        error = failure.value
        rule = getattr(getattr(error, "decision", None), "rule", None)
        self.drops.append(
            Drop(
                url=failure.request.url,  # type: ignore[attr-defined]
                type=type(error).__name__,
                text=str(error),
                line=rule.line if rule else None,
                retry_after=getattr(error, "retry_after", None),
            )
        )


class Pages(Recording):
    """Sends the requests of a job, follows links if the job says so, and records the results.

    `listens` has the names of methods, and the signals that call them.
    """

    name = "pages"
    custom_settings: dict[str, Any] | None = None
    listens: ClassVar[dict[str, object]] = {}

    def __init__(self, requests: list[str | dict[str, Any]], follow: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._requests = requests
        self._follow = follow

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        for name, signal in cls.listens.items():
            crawler.signals.connect(getattr(spider, name), signal=signal)
        return spider

    @property
    def engine(self) -> ExecutionEngine:
        """The engine of the crawl, when it runs."""
        assert self.crawler.engine is not None
        return self.crawler.engine

    async def start(self) -> AsyncIterator[Request]:
        for request in self.first_requests():
            yield request

    def first_requests(self) -> Iterator[Request]:
        for given in self._requests:
            yield self.request(**({"url": given} if isinstance(given, str) else given))

    def request(self, url: str, **kwargs: Any) -> Request:
        return Request(url, callback=self.parse, errback=self.dropped, **kwargs)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        self.pages.append(response.url)
        if self._follow and isinstance(response, TextResponse):
            for link in response.css("a::attr(href)").getall():
                yield self.request(response.urljoin(link))

    def middleware(self) -> NoRobotsMiddleware:
        """Return the plugin's middleware of this crawl."""
        for middleware in self.engine.downloader.middleware.middlewares:
            if isinstance(middleware, NoRobotsMiddleware):
                return middleware
        raise LookupError("the middleware is not enabled")
