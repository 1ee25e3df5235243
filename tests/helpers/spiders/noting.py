"""Spiders that note what happens in a crawl: responses, signals, download slots, threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from scrapy import Request, signals
from scrapy.http import Response, TextResponse
from scrapy.robotstxt import RobotParser

from scrapy_norobots import RobotsTxt
from scrapy_norobots.rules.delay_values import CrawlDelay
from scrapy_norobots.scrapy_api import compat
from tests.helpers.spiders.pages import Pages


class Answers(Pages):
    """Records status, headers, body and flags of each response."""

    handle_httpstatus_list: ClassVar[list[int]] = [403, 404, 503]

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        headers = response.headers.to_unicode_dict()
        self.notes.setdefault("answers", []).append(
            {
                "url": response.url,
                "status": response.status,
                "type": headers.get("Content-Type"),
                "body": response.body.decode(),
                "flags": response.flags,
                "is_text": isinstance(response, TextResponse),
            }
        )
        yield from super().parse(response)


class MetaNotes(Pages):
    """Records whether pages allow to follow their links."""

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        self.notes.setdefault("follow", []).append(response.meta["robots_meta"].follow)
        yield from super().parse(response)


class Listening(Pages):
    """Records each `robots_parsed` signal: the parser, the request, and its answer for /back/."""

    # Older versions of Scrapy have no such signal.
    listens: ClassVar = {"parsed": getattr(signals, "robots_parsed", None)}

    def parsed(self, robotparser: RobotParser, request: Request) -> None:
        allowed = robotparser.allowed(f"{request.url}back/", "FooBot")
        self.notes.setdefault("parsed", []).append([type(robotparser).__name__, request.url, allowed])
        self.notes.setdefault("delays", []).append(robotparser.crawl_delay("FooBot"))


class DownloadsWhenParsed(Pages):
    """Downloads a page of each site whose robots.txt is parsed, for example its site map."""

    listens: ClassVar = {"parsed": getattr(signals, "robots_parsed", None)}

    async def parsed(self, request: Request) -> None:
        response = await compat.download(self.crawler, Request(f"{request.url}sitemap.xml"))
        self.notes["status"] = response.status


class Slots(Pages):
    """Records the download slot of each request that is sent."""

    listens: ClassVar = {"came": signals.response_downloaded}

    def came(self, request: Request) -> None:
        self.notes[request.url] = request.meta["download_slot"]


class CollectsSlots(Pages):
    """Follows links, and makes Scrapy collect all idle download slots at each page."""

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        downloader = compat.downloader(self.crawler)
        before = len(downloader.slots)
        downloader._slot_gc(age=0)
        self.notes["collected"] = self.notes.get("collected", 0) + before - len(downloader.slots)
        self._follow = True
        yield from super().parse(response, **kwargs)


class NotesThreads(Pages):
    """Notes the thread of each call of a function."""

    def noting(self, read: Callable[..., Any]) -> Any:
        """Return the function with this addition."""
        threads = self.notes.setdefault("threads", [])

        def read_and_note(*what: Any) -> Any:
            threads.append(threading.current_thread().name)
            return read(*what)

        return read_and_note


class NotesThreadsOfTheDelay(NotesThreads):
    """Notes the threads in which `Crawl-delay` lines are read."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        CrawlDelay.read = self.noting(CrawlDelay.read)  # type: ignore[method-assign]


class NotesThreadsOfTheParser(NotesThreads):
    """Notes the threads in which the strict parser reads files."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        RobotsTxt._read = self.noting(RobotsTxt._read)  # type: ignore[method-assign]
