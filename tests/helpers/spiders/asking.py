"""Spiders that ask the middleware themselves, or download something themselves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from twisted.internet.defer import CancelledError

from scrapy_norobots.rules import access
from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.settings import Config
from tests.helpers.spiders.noting import Listening
from tests.helpers.spiders.pages import Pages


class InMemory(Pages):
    """Checks a request to an origin in memory, and records whether anything was awaited."""

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        for name, path in (("allowed", "/open"), ("forbidden", "/back/")):
            coroutine = self.middleware().process_request(Request(response.urljoin(path)))
            try:
                coroutine.send(None)
            except StopIteration:
                self.notes[name] = "passed at once"
            except IgnoreRequest as exc:
                self.notes[name] = f"{type(exc).__name__} at once"
            else:
                self.notes[name] = "waited"
                coroutine.close()
        yield from ()


class Cancelling(Pages):
    """Cancels the first and the last request that wait for the robots.txt of another site.

    Then it requests `/cancelled` there.
    """

    def __init__(self, other: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._other = other

    async def parse(self, response: Response, **kwargs: Any) -> None:  # type: ignore[override]
        paths = {"first": "/open", "second": "/back/", "third": "/open", "last": "/back/"}
        waiting = {name: compat.spawn(self._ask(name, path)) for name, path in paths.items()}
        # Let the download start.
        await compat.waiting_for(compat.spawn(self._download("data:,")))
        for name in ("first", "last"):
            waiting[name].cancel()
        await compat.waiting_for(compat.spawn(self._download(f"{self._other}/cancelled")))
        for name, deferred in waiting.items():
            try:
                await compat.waiting_for(deferred)
            except (CancelledError, asyncio.CancelledError):
                self.notes[name] = "CancelledError"
        await compat.waiting_for(compat.spawn(self._ask("later", "/back/")))

    async def _download(self, url: str) -> None:
        await compat.download(self.crawler, Request(url, meta={"dont_obey_robotstxt": True}))

    async def _ask(self, name: str, path: str) -> None:
        try:
            await self.middleware().process_request(Request(self._other + path))
        except IgnoreRequest as exc:
            self.notes[name] = type(exc).__name__
        else:
            self.notes[name] = "passed"


class Asking(Pages):
    """Lets the middleware check URLs, one after another, and records the results.

    `plan` has pairs of a pause in seconds and a URL. A pause only moves the plugin's clocks forward. A result
    is ``passed`` or the name of an exception, followed by that of its cause, if it has one.
    """

    def __init__(self, plan: list[tuple[float, str]], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._plan = plan
        self._ahead = 0.0
        monotonic, wall = time.monotonic, time.time
        time.time = lambda: wall() + self._ahead
        access.monotonic = lambda: monotonic() + self._ahead  # type: ignore[attr-defined]

    async def parse(self, response: Response, **kwargs: Any) -> None:  # type: ignore[override]
        results = self.notes["results"] = []
        for pause, url in self._plan:
            self._ahead += pause
            try:
                await self.middleware().process_request(Request(url))
            except IgnoreRequest as exc:
                names = [type(error).__name__ for error in (exc, exc.__cause__) if error is not None]
                results.append(" from ".join(names))
            else:
                results.append("passed")


class SetsClockBack(Pages):
    """Sets the clock back by an hour when its first page comes."""

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        if not self.pages:
            wall = time.time
            time.time = lambda: wall() - 3600
        yield from super().parse(response, **kwargs)


class ListeningAndAsking(Listening, Asking):
    """Does what both do."""


class Downloading(Pages):
    """Downloads URLs itself, in its callback or at its start, and notes each status or exception.

    After `seconds` it cancels a download.
    """

    def __init__(self, then: list[str], place: str = "callback", seconds: float = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._then = then
        self._place = place
        self._seconds = seconds

    async def start(self) -> AsyncIterator[Request]:
        if self._place == "start":
            await self._download()
        for request in self.first_requests():
            yield request

    async def parse(self, response: Response, **kwargs: Any) -> None:  # type: ignore[override]
        if self._place == "callback":
            await self._download()

    async def _download(self) -> None:
        told = self.notes.setdefault("told", [])
        for url in self._then:
            download = compat.download(self.crawler, Request(url))
            try:
                answer = await (asyncio.wait_for(download, self._seconds) if self._seconds else download)
            except (IgnoreRequest, asyncio.TimeoutError) as exc:
                told.append([type(exc).__name__, getattr(exc, "retry_after", None)])
            else:
                told.append([answer.status, None])


class Hasty(Pages):
    """Does not wait long for a robots.txt that another process downloads."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        Config.longest_download = 3  # type: ignore[assignment, method-assign]
