"""Spiders that note what happens in a crawl: responses, signals, download slots, threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from protego import Protego
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response, TextResponse
from scrapy.robotstxt import RobotParser

from scrapy_norobots import RobotsTxt, compat
from tests.helpers.spiders.pages import Pages

if TYPE_CHECKING:
    from typing_extensions import Self


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

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Listening:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.parsed, signal=signals.robots_parsed)
        return spider

    def parsed(self, robotparser: RobotParser, request: Request) -> None:
        allowed = robotparser.allowed(f"{request.url}back/", "FooBot")
        self.notes.setdefault("parsed", []).append([type(robotparser).__name__, request.url, allowed])
        self.notes.setdefault("delays", []).append(robotparser.crawl_delay("FooBot"))


class Slots(Pages):
    """Records the download slot of each request that is sent."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.came, signal=signals.response_downloaded)
        return spider

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


class NotesThreadOfProtego(Pages):
    """Notes the threads in which Protego reads a file."""

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> NotesThreadOfProtego:
        spider = super().from_crawler(crawler, *args, **kwargs)
        threads = spider.notes.setdefault("threads", [])
        parse = Protego.parse

        def parse_and_note(text: str) -> Protego:
            threads.append(threading.current_thread().name)
            return parse(text)

        Protego.parse = parse_and_note  # type: ignore[assignment, method-assign]
        return spider


class WatchesReading(Pages):
    """Records the threads in which the strict parser reads files."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.notes["threads"] = []
        read = RobotsTxt._read

        def read_and_note(robots: RobotsTxt) -> Any:
            name = threading.current_thread().name
            if name not in self.notes["threads"]:
                self.notes["threads"].append(name)
            return read(robots)

        RobotsTxt._read = read_and_note  # type: ignore[assignment, method-assign]
