"""Components like those of users, for the crawls of `tests.crawls.test_components`."""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Iterator
from inspect import iscoroutinefunction
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlencode, urljoin, urlsplit

from scrapy import Request, Spider, signals
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.core.scheduler import BaseScheduler, Scheduler
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response, TextResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.pipelines import media
from scrapy.spiders import CrawlSpider, Rule
from twisted.internet.defer import Deferred

from scrapy_norobots import NoRobotsMiddleware, RobotsScheduler, compat
from tests.helpers.spiders.pages import Pages

if TYPE_CHECKING:
    from typing_extensions import Self


class RenderingByDefault(HTTP11DownloadHandler):
    """Renders every request, and says so in a header, unless the meta of the request forbids it."""

    if iscoroutinefunction(HTTP11DownloadHandler.download_request):

        async def download_request(self, request: Request, *args: Any) -> Any:
            return await super().download_request(_rendered(request), *args)

    else:  # before Scrapy 2.14

        def download_request(self, request: Request, *args: Any) -> Any:  # type: ignore[misc]
            return super().download_request(_rendered(request), *args)


def _rendered(request: Request) -> Request:
    if request.meta.get("render", True):
        request.headers["Rendered"] = "yes"
    return request


try:
    from scrapy.core.downloader.handlers._aiohttp import AiohttpDownloadHandler
except ImportError:  # before Scrapy 2.17
    pass
else:

    class AiohttpBesideReactor(AiohttpDownloadHandler):
        """Scrapy's handler with aiohttp, created when the event loop runs."""

        lazy = True


class NeverEnds:
    """A download handler that never returns a response and has no timeout."""

    lazy = True

    def __init__(self, crawler: Crawler) -> None:
        # Keep a reference, or the deferred would be garbage-collected.
        self._answers: list[Deferred[Any]] = []

    def _never(self) -> Deferred[Any]:
        self._answers.append(Deferred())
        return self._answers[-1]

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    if iscoroutinefunction(HTTP11DownloadHandler.download_request):

        async def download_request(self, request: Request, *args: Any) -> Any:
            return await compat.waiting_for(self._never())

        async def close(self) -> None:
            pass

    else:  # before Scrapy 2.14

        def download_request(self, request: Request, *args: Any) -> Any:  # type: ignore[misc]
            return self._never()


class RobotsTxtPlainly:
    """A user's downloader middleware that tells such a handler not to render robots.txt."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        if request.meta.get("norobots_download"):
            request.meta["render"] = False


class RenderAll:
    """A user's downloader middleware that renders every request in a browser."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        request.meta.setdefault("playwright", True)


def is_no_document(request: Any) -> bool:
    """For scrapy-playwright: return whether the browser must not load a resource."""
    return bool(request.resource_type != "document")


class ThroughService:
    """A downloader middleware that sends pages through a service, in a new request."""

    def __init__(self, service: str, names_page: bool) -> None:
        self._service = service
        self._names_page = names_page

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler.settings["SERVICE"], crawler.settings.getbool("NAMES_PAGE"))

    def process_request(self, request: Request, spider: Spider | None = None) -> Request | None:
        if "through" in request.meta or "norobots_download" in request.meta:
            return None
        meta = {**request.meta, "through": True}
        if self._names_page:
            meta["norobots_url"] = request.url
        return request.replace(url=f"{self._service}/get?{urlencode({'url': request.url})}", meta=meta)


class AsksAnotherFirst:
    """A downloader middleware that downloads something before each page, for example to log in."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_request(self, request: Request, spider: Spider | None = None) -> None:
        if not request.url.endswith(("/token", "/robots.txt")):
            await compat.download(self._crawler, Request(self._crawler.settings["OTHER"], dont_filter=True))


class AsksItsHostFirst(AsksAnotherFirst):
    """The same, but it downloads from the host of the page."""

    async def process_request(self, request: Request, spider: Spider | None = None) -> None:
        if not request.url.endswith(("/token", "/robots.txt")):
            token = Request(urljoin(request.url, "/token"), dont_filter=True)
            await compat.download(self._crawler, token)


class SpreadsOverSlots:
    """A downloader middleware that sets the download slot of each page, for example to rotate proxies."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        if "norobots_download" not in request.meta:
            request.meta["download_slot"] = request.url


class OneSlot:
    """A downloader middleware that gives all pages one download slot."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        if "norobots_download" not in request.meta:
            request.meta["download_slot"] = "all"


class SeesExceptions:
    """A downloader middleware that sees the exceptions of others."""

    def process_exception(self, request: Request, exception: Exception, spider: Spider | None = None) -> None:
        """Do nothing."""


class Derived(NoRobotsMiddleware):
    """A middleware of a project, derived from the plugin's."""


class OtherScheduler(BaseScheduler):
    """A scheduler with the methods that the engine needs, and without the attributes of Scrapy's own."""

    def __init__(self, crawler: Crawler) -> None:
        self._inner = Scheduler.from_crawler(crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def open(self, spider: Spider) -> Any:
        return self._inner.open(spider)

    def close(self, reason: str) -> Any:
        return self._inner.close(reason)

    def has_pending_requests(self) -> bool:
        return self._inner.has_pending_requests()

    def enqueue_request(self, request: Request) -> bool:
        return self._inner.enqueue_request(request)

    def next_request(self) -> Request | None:
        return self._inner.next_request()


class AnswersItself:
    """A downloader middleware that returns a response for each page after a while, like a renderer."""

    async def process_request(self, request: Request, spider: Spider | None = None) -> Response | None:
        if request.url.endswith("/robots.txt"):
            return None
        await compat.sleep(0.02)
        return TextResponse(request.url, body=b"")


class TakesItsTime:
    """A downloader middleware that takes long for each response, and counts how many it has at once."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._now = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Response:
        if not request.url.endswith("/robots.txt"):
            self._now += 1
            assert self._crawler.stats is not None
            self._crawler.stats.max_value("looked at", self._now)
            await compat.sleep(0.3)
            self._now -= 1
        return response


class OurOwn(NoRobotsMiddleware):
    """A subclass of this package's middleware in a project."""


class HalfPorted(NoRobotsMiddleware):
    """A subclass that was derived from Scrapy's own middleware before."""

    DOWNLOAD_PRIORITY = 5

    def process_request_2(self, rp: object, request: Request) -> None:
        raise AssertionError("never called")


class UsualUserAgent:
    """A downloader middleware that sets the User-Agent of requests without one."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        request.headers.setdefault("User-Agent", "UsualBot/1.0")


class OtherUserAgent:
    """A downloader middleware that sets the User-Agent of each request, for example to rotate it."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        request.headers["User-Agent"] = "TurnBot/1.0"


class SeesResponses:
    """A spider middleware that records its input."""

    def process_spider_input(self, response: Response, spider: Spider | None = None) -> None:
        spider = cast("Any", response.request).callback.__self__
        cast("Pages", spider).notes.setdefault("input", []).append(urlsplit(response.url).path)


class Items(Pages):
    """Yields one item from its first page, and records what the pipelines return."""

    def __init__(self, item: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._item = item
        if not hasattr(media, "_MediaRequestFiltered"):
            # Older versions log a traceback for each file that any middleware drops.
            logging.getLogger(media.__name__).setLevel(logging.CRITICAL)

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.scraped, signal=signals.item_scraped)
        return spider

    def scraped(self, item: dict[str, Any]) -> None:
        self.notes["item"] = item

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        yield from super().parse(response)
        yield self._item


class Downloading(Pages):
    """Downloads other URLs in its callback, and records the results."""

    def __init__(self, then: list[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._then = then

    async def parse(self, response: Response, **kwargs: Any) -> None:  # type: ignore[override]
        for url in self._then:
            try:
                inner = await compat.download(self.crawler, Request(url))
            except IgnoreRequest as exc:
                self.notes[urlsplit(url).path] = type(exc).__name__
            else:
                self.notes[urlsplit(url).path] = inner.status


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


class ByRules(CrawlSpider):
    """Scrapy's own spider that follows the links of link extractors."""

    name = "by rules"
    rules = (Rule(LinkExtractor(), callback="parse_linked", follow=True, errback="dropped"),)

    def __init__(self, requests: list[str], **kwargs: Any) -> None:
        self.start_urls = requests
        super().__init__(**kwargs)
        self.pages: list[str] = []
        self.drops: list[Any] = []
        self.notes: dict[str, Any] = {}

    parse_linked = Following.parse_linked
    dropped = Pages.dropped


class Slots(Pages):
    """Records the download slot of each request that is sent."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.came, signal=signals.response_downloaded)
        return spider

    def came(self, request: Request) -> None:
        self.notes[request.url] = request.meta["download_slot"]


PROJECT = {
    "scrapy.cfg": "[settings]\ndefault = settings\n",
    "settings.py": 'ADDONS = {"scrapy_norobots.Addon": 500}\nSPIDER_MODULES = ["spiders"]\n',
    "spiders.py": '''\
from scrapy import Spider


class Checked(Spider):
    name = "checked"

    def parse(self, response):
        """A page.

        @url %(site)s/open
        @returns items 1 1
        """
        yield {}

    def parse_back(self, response):
        """A page that robots.txt forbids.

        @url %(site)s/back/1
        @returns items 1 1
        """
        yield {}
''',
}


def make_project(folder: Path, site: str) -> Path:
    """Write a small Scrapy project with contracts for pages of a site."""
    for name, text in PROJECT.items():
        (folder / name).write_text(text.replace("%(site)s", site))
    return folder


class DerivedScheduler(RobotsScheduler):
    """A user's scheduler, a subclass of the plugin's."""


class MinimalScheduler:
    """A scheduler with only what the engine needs: no `open`, no `close` and no length."""

    def __init__(self) -> None:
        self._requests: deque[Request] = deque()

    def has_pending_requests(self) -> bool:
        return bool(self._requests)

    def enqueue_request(self, request: Request) -> bool:
        self._requests.append(request)
        return True

    def next_request(self) -> Request | None:
        return self._requests.popleft() if self._requests else None


class QueueInFile(MinimalScheduler):
    """A scheduler that keeps the URLs of its requests in a file between crawls."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(Path(crawler.settings["QUEUE"]))

    def open(self, spider: Pages) -> None:
        if self._path.exists():
            self._requests.extend(map(spider.request, json.loads(self._path.read_text())))

    def close(self, reason: str) -> None:
        self._path.write_text(json.dumps([request.url for request in self._requests]))


class AnswersLate:
    """A downloader middleware that returns a response for each page after a while, like a slow renderer.

    Counts how many pages it has at once.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._now = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_request(self, request: Request, spider: Spider | None = None) -> Response | None:
        if request.url.endswith("/robots.txt"):
            return None
        self._now += 1
        assert self._crawler.stats is not None
        self._crawler.stats.max_value("at once", self._now)
        await compat.sleep(1.2)
        self._now -= 1
        return TextResponse(request.url, body=b"")
