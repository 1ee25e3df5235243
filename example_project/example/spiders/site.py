"""Crawl one host: ``scrapy crawl site -a url=http://any.example/``.

Yields a ``PageItem`` for every page, of any status and type, and follows the links of HTML
pages to their own host.  Requests that robots.txt forbids are counted in ``dropped`` by their
``Cause``, with the first URL of each in ``samples``; the counts are logged at the end.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from scrapy import Request, Spider
from scrapy.http import HtmlResponse, Response
from scrapy.linkextractors import LinkExtractor
from w3lib.url import safe_url_string

from example.items import PageItem
from scrapy_norobots import RobotsForbidden

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from twisted.python.failure import Failure


class Cause(NamedTuple):
    """The cause of dropped requests: a rule of robots.txt, or line 0 and a reason in words."""

    line: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line}, Disallow: {self.text!r}" if self.line else self.text


def host_of(url: str) -> str:
    """Return the host of an http or https URL, and "" for anything else."""
    try:
        parts = urlsplit(safe_url_string(url))
        is_web = parts.scheme in ("http", "https") and parts.port != 0
    except ValueError:  # not a URL, or a port that is not a number
        return ""
    return (parts.hostname or "") if is_web else ""


class SiteSpider(Spider):
    """Crawls the site of ``url``, an absolute http or https URL."""

    name = "site"
    link_extractor = LinkExtractor()

    def __init__(self, url: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.url = url
        # Redirects may lead to the site's other name, but not to other sites.
        self.allowed_domains = [host_of(url).removeprefix("www.")]
        self.dropped: Counter[Cause] = Counter()
        self.samples: dict[Cause, str] = {}

    async def start(self) -> AsyncIterator[Request]:
        """Yield the first request."""
        if host_of(self.url):
            yield Request(self.url, errback=self.on_error)
        else:
            self.logger.error("Nothing to crawl: -a url must be an http or https URL, not %r", self.url)

    def parse(self, response: Response) -> Iterator[PageItem | Request]:
        """Yield an item for the page and, if it is HTML without an error, requests for its links."""
        if not isinstance(response, HtmlResponse):
            yield PageItem(response.url, "", response.status)
            return
        title = " ".join(response.css("title::text").get("").split())
        yield PageItem(response.url, title, response.status)
        if response.status >= 400:
            return
        host = urlsplit(response.url).netloc
        for link in self.link_extractor.extract_links(response):
            if host_of(link.url) and urlsplit(link.url).netloc == host:
                yield Request(link.url, errback=self.on_error)

    def on_error(self, failure: Failure) -> None:
        """Count a request that robots.txt forbids; log a warning for any other failure."""
        request: Request = failure.request  # type: ignore[attr-defined]  # set by Scrapy
        if not isinstance(failure.value, RobotsForbidden):
            self.logger.warning("Not fetched: %s (%s)", request.url, failure.getErrorMessage())
            return
        decision = failure.value.decision
        rule = decision.rule
        cause = Cause(rule.line, rule.value) if rule else Cause(0, decision.why)
        self.dropped[cause] += 1
        self.samples.setdefault(cause, request.url)

    def closed(self, reason: str) -> None:
        """Log the counts of dropped requests (Scrapy calls this when the crawl ends)."""
        for cause, count in sorted(self.dropped.items()):
            self.logger.info("Dropped because of robots.txt (%s): %d", cause, count)
