"""Spiders that look at the scheduler and the downloader, or decide when requests are scheduled."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, ClassVar
from urllib.parse import urlsplit

from scrapy import Request, signals
from scrapy.core.engine import ExecutionEngine
from scrapy.exceptions import CloseSpider, DontCloseSpider
from scrapy.http import Response

from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.scrapy_api.internals import now
from scrapy_norobots.waiting import parking, slot_lines
from tests.helpers.components.schedulers import OwnScheduler
from tests.helpers.spiders.pages import Pages


class Watching(Pages):
    """Puts many requests on the scheduler at once, from its first page.

    Records the largest numbers of requests in the downloader and of parked requests, as seen when pages
    arrive. With `most_waiting`, no more requests than that can wait.
    """

    listens: ClassVar = {
        "scheduled": signals.request_scheduled,
        "reached": signals.request_reached_downloader,
    }

    def __init__(self, then: list[str], most_waiting: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._then = then
        if most_waiting:
            parking._WAITING_MAX = most_waiting
        self._scheduled = 0

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        engine = self.engine
        now = len(engine.downloader.active)
        self.notes["most active"] = max(now, self.notes.get("most active", 0))
        parked = getattr(engine.downloader, "parking", None)
        self.notes["most parked"] = max(len(parked or ()), self.notes.get("most parked", 0))
        yield from super().parse(response)
        if len(self.pages) == 1:
            engine.pause()
            for number, url in enumerate(self._then):
                yield self.request(url, priority=number % 3)

    def reached(self, request: Request) -> None:
        """Record the requests that reach their slots, and which of them come before the usual delay."""
        if request.url in self._then:
            self.notes.setdefault("reached", []).append(urlsplit(request.url).path)
            slot = self.engine.downloader.slots[request.meta["download_slot"]]
            self.notes.setdefault("early", []).append(now() < slot.lastseen + slot.delay)

    def scheduled(self, request: Request) -> None:
        """Let the engine continue when all requests are scheduled; before, its choice would be random."""
        if request.url in self._then:
            self._scheduled += 1
        if self._scheduled == len(self._then):
            self.engine.unpause()  # the engine gets this last request next, and then asks the scheduler


class WithoutHeartbeat(Pages):
    """Keeps the engine from asking for a request every few seconds without a reason."""

    listens: ClassVar = {"scheduled": signals.request_scheduled}

    def scheduled(self) -> None:
        slot: Any = self.engine._slot
        if slot.heartbeat.running:
            slot.heartbeat.stop()


class LooksForPlaces(Pages):
    """Looks at the places when a response has come, before Scrapy has removed its request from the slot.

    Two seconds without progress are enough for a request to go without a place.
    """

    listens: ClassVar = {"look": signals.request_left_downloader}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        slot_lines._STANDSTILL = 2.0

    def look(self) -> None:
        downloader: Any = self.engine.downloader
        downloader.parking.lines.look_at_places(newest=sys.maxsize)
        compat.look_for_next_request(self.crawler)


class ExemptsRepeated(Pages):
    """Exempts a request from robots.txt when it is scheduled again."""

    listens: ClassVar = {"scheduled": signals.request_scheduled}

    def scheduled(self, request: Request) -> None:
        request.meta["dont_obey_robotstxt"] = "dont_obey_robotstxt" in request.meta


class WhenIdle(Pages):
    """Lets the engine look more often than every 5 s if anything is left to do."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        ExecutionEngine._SLOT_HEARTBEAT_INTERVAL = 0.2


class FeedsWhenIdle(WhenIdle):
    """Adds one request each time when the crawl is idle, and closes the spider when it has no more."""

    listens: ClassVar = {"idle": signals.spider_idle}

    def __init__(self, then: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._then = list(then)

    def idle(self) -> None:
        if not self._then:
            raise CloseSpider("all fed")
        self.engine.crawl(self.request(self._then.pop(0)))
        raise DontCloseSpider


class DisagreesWhenIdle(WhenIdle):
    """Has two handlers for an idle crawl: one closes the spider, one keeps it open until a page has come.

    The second one adds a request, if the job has one, or else raises `DontCloseSpider`.
    """

    listens: ClassVar = {"give_up": signals.spider_idle, "keep_open": signals.spider_idle}

    def __init__(self, then: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._then = then

    def give_up(self) -> None:
        raise CloseSpider("idle")

    def keep_open(self) -> None:
        if self.pages:
            return
        self.notes["kept open"] = True
        if not self._then:
            raise DontCloseSpider
        self.engine.crawl(self.request(self._then))


class StartsLazily(Pages):
    """Yields a start request only if nothing else is left to do, as Scrapy's documentation proposes."""

    async def start(self) -> AsyncIterator[Request]:
        for request in self.first_requests():
            if self.engine.needs_backout():
                await self.crawler.signals.wait_for(signals.scheduler_empty)
            yield request


class StopsWhenIdle(WhenIdle):
    """Stops the crawl when requests only wait, and notes how many are in the downloader."""

    listens: ClassVar = {"idle": signals.spider_idle}

    def idle(self) -> None:
        if "active" in self.notes:
            return
        downloader = self.engine.downloader
        self.notes["active"] = len(downloader.active)
        self.notes["in slots"] = sum(len(slot.active) for slot in downloader.slots.values())
        if hasattr(self.crawler, "stop_async"):
            compat.spawn(self.crawler.stop_async())
        else:
            self.crawler.stop()


class LooksAtItsScheduler(StopsWhenIdle):
    """Stops the crawl when requests only wait, and notes what can be seen of the scheduler."""

    def idle(self) -> None:
        if "scheduler" not in self.notes:
            slot: Any = compat.engine_slot(self.crawler)
            scheduler = slot.scheduler
            dupefilter = getattr(scheduler, "df", None)
            self.notes["scheduler"] = {
                "class": type(scheduler).__name__,
                "wrapped": type(getattr(scheduler, "_source", slot).scheduler).__name__,
                "filter": dupefilter and type(dupefilter).__name__,
                "missing": getattr(scheduler, "no_such_attribute", None),
                "length": len(scheduler),
                "is empty": not scheduler,
            }
        super().idle()


class HasItsOwnScheduler(LooksAtItsScheduler):
    """Sets a scheduler in its own settings."""

    custom_settings = {"SCHEDULER": "tests.helpers.components.schedulers.OtherScheduler"}  # noqa: RUF012  # as users write it


class HasAClassOfScheduler(LooksAtItsScheduler):
    """Sets a scheduler in its own settings, by its class."""

    custom_settings = {"SCHEDULER": OwnScheduler}  # noqa: RUF012  # as users write it
