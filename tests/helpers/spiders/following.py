"""Spiders that send more requests, or follow links in other ways."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar
from urllib.parse import urlsplit

from scrapy import Request, signals
from scrapy.http import Response, TextResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule, SitemapSpider
from twisted.python.failure import Failure

from tests.helpers.spiders.pages import Pages, Recording


class WithoutErrback(Pages):
    """Has no errback for the links that it follows; notes the requests that leave the downloader."""

    listens: ClassVar = {"left": signals.request_left_downloader}

    def left(self, request: Request) -> None:
        self.notes.setdefault("sent", []).append(urlsplit(request.url).path)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        for request in super().parse(response, **kwargs):
            yield request.replace(errback=None)


class UnfilteredFirst(WithoutErrback):
    """Does not filter the links of its first page."""

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        is_first = urlsplit(response.url).path == "/"
        for request in super().parse(response, **kwargs):
            yield request.replace(dont_filter=is_first)


class Then(Pages):
    """Fetches one more URL, from the first page."""

    def __init__(self, then: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._then = then

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        yield from super().parse(response)
        if len(self.pages) == 1:
            yield self.request(self._then)


class ThenAnyway(Then):
    """Requests one more URL when a request has failed."""

    def dropped(self, failure: Failure) -> Iterator[Request]:  # type: ignore[override]
        super().dropped(failure)
        if len(self.drops) == 1:
            yield self.request(self._then)


class RepeatsTheRequest(Pages):
    """Yields the object of each start request three times."""

    def first_requests(self) -> Iterator[Request]:
        for request in super().first_requests():
            request.dont_filter = True
            yield from (request, request, request)


class Following(Pages):
    """Follows links with each method that responses have for it."""

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        self.pages.append(response.url)
        assert isinstance(response, TextResponse)
        links = response.css("a")
        yield response.follow(links[0], callback=self.parse_linked, errback=self.dropped)
        yield from response.follow_all(links[1:], callback=self.parse_linked, errback=self.dropped)

    def parse_linked(self, response: Response) -> None:
        self.pages.append(response.url)


class ByRules(Recording, CrawlSpider):
    """Scrapy's own spider that follows the links of link extractors."""

    name = "by rules"
    rules = (Rule(LinkExtractor(), callback="parse_linked", follow=True, errback="dropped"),)

    def __init__(self, requests: list[str], **kwargs: Any) -> None:
        self.start_urls = requests
        super().__init__(**kwargs)

    def parse_linked(self, response: Response) -> None:
        self.pages.append(response.url)


class FromSitemaps(Recording, SitemapSpider):
    """Scrapy's own sitemap spider, starting from the robots.txt of sites."""

    name = "sitemaps"

    def __init__(self, requests: list[str], **kwargs: Any) -> None:
        self.sitemap_urls = requests
        super().__init__(**kwargs)

    def parse(self, response: Response, **kwargs: Any) -> None:
        self.pages.append(response.url)
