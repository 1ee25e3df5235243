"""Schedulers of users."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider
from scrapy.core.scheduler import BaseScheduler, Scheduler
from scrapy.crawler import Crawler

from scrapy_norobots import RobotsScheduler
from tests.helpers.spiders.pages import Pages

if TYPE_CHECKING:
    from typing_extensions import Self


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


class OwnScheduler(Scheduler):
    """A scheduler of a project, derived from Scrapy's."""


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
