"""`SlotDelays`: make download slots keep the `Crawl-delay` of the sites that are crawled in them.

Each request brings the delay of its origin to the slot in which it is sent, and the slot keeps the largest of
these delays. It is a lower bound: `Slot.delay` still applies, whatever Scrapy, AutoThrottle or an extension
set it to. The delay is counted from the previous response if that has arrived, because only then is it
certain that the site has received the request.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import scrapy
from scrapy import Request, signals
from scrapy.core.downloader import Downloader
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_norobots.events import Core, Events, Load
from scrapy_norobots.features.crawl_delay.turns import FleetTurns, Turn
from scrapy_norobots.question import Question, is_overridden
from scrapy_norobots.rules.parser import crawl_delay
from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.scrapy_api.internals import (
    crawl_delay_of,
    has_slot_of_host,
    least_own_delay,
    missing_internals,
    named_slot_of,
    now,
    set_crawl_delay,
)
from scrapy_norobots.scrapy_api.log import Named, crawl_log
from scrapy_norobots.settings import Config, error, read
from scrapy_norobots.standard import Origin
from scrapy_norobots.standard.decision import printable

logger = logging.getLogger(__name__)

# How many origins of one slot are remembered.
_ORIGINS_MAX = 1_000


@dataclass(slots=True)
class _Delayed:
    """A slot with a `Crawl-delay`, its turns in a fleet, and the delays of its origins, in seconds."""

    slot: Any
    turn: Turn | None
    delays: dict[Origin, float] = field(default_factory=dict)


def subscribe(crawler: Crawler, config: Config, events: Events) -> None:
    """Keep the delays of a crawl if ``NOROBOTS_CRAWL_DELAY_MAX`` is set.

    Raises `ValueError` if ``NOROBOTS_CRAWL_DELAY_SHARED`` is true and the store is not in Redis.
    """
    is_shared = read(crawler.settings, "NOROBOTS_CRAWL_DELAY_SHARED")
    if config.crawl_delay_max:
        fleet = FleetTurns(crawler, config.store) if is_shared else None
        events.opened.connect(lambda core: SlotDelays(crawler, events, core, config.crawl_delay_max, fleet))
    elif is_shared:
        raise error("NOROBOTS_CRAWL_DELAY_SHARED", True, "needs NOROBOTS_CRAWL_DELAY_MAX, which is 0")


class SlotDelays:
    """The `Crawl-delay` of each download slot of one crawl."""

    def __init__(
        self,
        crawler: Crawler,
        events: Events,
        core: Core,
        longest: float,
        fleet: FleetTurns | None = None,
    ) -> None:
        """Take the longest delay that is kept, in seconds, and what the turns of a fleet share."""
        self._crawler = crawler
        self._core = core
        self._longest = longest
        self._fleet = fleet
        self._log = crawl_log(crawler, logger)
        self._shortened = Named()
        self._slots: dict[str, _Delayed] = {}
        crawler.signals.connect(self._reach, signals.request_reached_downloader)
        crawler.signals.connect(self._respond, signals.response_downloaded)
        # `RobotsScheduler` needs the slot of a request before the middleware has received it.
        events.scheduled.connect(self.use_slot_of_host)
        events.received.connect(self.use_slot_of_host)
        events.loaded.connect(self.loaded)

    def loaded(self, event: Load) -> None:
        """Make the slot of the request for which an origin was loaded keep its delay from now on."""
        snapshot, stats = event.access.snapshot, compat.stats(self._crawler)
        asked = crawl_delay(event.access.rules, event.robot) or 0.0
        kept = min(asked, self._longest)
        if kept:
            stats.inc_value("norobots/crawl_delay/kept")
            stats.max_value("norobots/crawl_delay/longest", kept)
        if asked > kept:
            stats.inc_value("norobots/crawl_delay/shortened")
            self._log(
                self._shortened.level(snapshot.origin, logging.WARNING),
                "%s asks for a Crawl-delay of %g s; NOROBOTS_CRAWL_DELAY_MAX limits it to %g s",
                printable(snapshot.url),
                asked,
                kept,
            )
        if self._downloader is not None:
            name, slot = named_slot_of(self._downloader, event.request, self._crawler.spider)
            self._keep(name, slot, snapshot.origin, kept)
            if name in self._slots and (turn := self._slots[name].turn):
                # Another process may have downloaded the file just now, on a machine whose clock is ahead.
                age = max(0.0, time.time() - snapshot.time)
                turn.not_before = max(turn.not_before, now() + crawl_delay_of(slot) - age)

    def use_slot_of_host(self, request: Request) -> None:
        """Let a redirected request be sent in the slot of its new host, unless the user has chosen a slot."""
        if "redirect_urls" in request.meta and has_slot_of_host(request):
            del request.meta["download_slot"]

    @cached_property
    def _downloader(self) -> Downloader | None:
        """The downloader, which exists from the first request on; None if it cannot keep a delay."""
        downloader = compat.downloader(self._crawler)
        if not isinstance(downloader, Downloader):
            problem = "DOWNLOADER is not derived from scrapy.core.downloader.Downloader"
        elif missing := missing_internals(self._crawler):
            problem = f"Scrapy {scrapy.__version__} has no {', no '.join(missing)}"
        else:
            return downloader
        self._log(
            logging.WARNING, "NOROBOTS_CRAWL_DELAY_MAX has no effect, so no Crawl-delay is kept: %s", problem
        )
        return None

    def _reach(self, request: Request) -> None:
        """Set the delay of the slot in which a request is sent, by the latest file of its origin."""
        name = request.meta["download_slot"]  # the downloader has set it
        question = None if is_overridden(request) else self._core.ask(request)
        access = self._core.origins.latest(question.origin) if isinstance(question, Question) else None
        if self._downloader is None or (access is None and name not in self._slots):
            return
        origin, seconds = None, 0.0
        # A large file may not have been read for this robot yet.
        if isinstance(question, Question) and access is not None and access.is_ready(question.robot):
            origin = question.origin
            seconds = min(crawl_delay(access.rules, question.robot) or 0.0, self._longest)
        self._keep(name, self._downloader.slots[name], origin, seconds)

    def _respond(self, response: Response, request: Request) -> None:
        """Count the delay of a slot from a response on."""
        name = request.meta.get("download_slot")
        if name in self._slots:
            _count_from_now(self._slots[name].slot)

    def _keep(self, name: str, slot: Any, origin: Origin | None, seconds: float) -> None:
        """Make a slot keep the delay of an origin, if it is the longest of its origins."""
        kept = self._slots.get(name)
        if kept is None:
            if not seconds:
                return
            self._forget_slots()
            turn = None if self._fleet is None else Turn(self._fleet, name)
            kept = self._slots[name] = _Delayed(slot, turn)
        if kept.slot is slot and (origin is None or kept.delays.get(origin, 0.0) == seconds):
            return
        before = crawl_delay_of(kept.slot)
        if kept.slot is not slot:  # Scrapy has collected the previous one
            slot.lastseen = max(slot.lastseen, kept.slot.lastseen)
            kept.slot = slot
        if origin is not None:
            kept.delays[origin] = seconds
        if len(kept.delays) > _ORIGINS_MAX:
            del kept.delays[min(kept.delays, key=kept.delays.__getitem__)]
        longest = max(kept.delays.values())
        set_crawl_delay(slot, longest, kept.turn)
        if slot.lastseen <= 0:
            # It has sent nothing, and need not wait, even if the machine started less than a delay ago.
            slot.lastseen = min(0.0, now() - longest)
        elif longest > before:
            _count_from_now(slot)
        if not longest:
            del self._slots[name]

    def _forget_slots(self) -> None:
        """Forget the two oldest slots, unless Scrapy has not collected them or their delay is not over."""
        for name in list(islice(self._slots, 2)):
            kept = self._slots.pop(name)
            is_over = kept.slot.lastseen + crawl_delay_of(kept.slot) < now()
            if not is_over or compat.downloader(self._crawler).slots.get(name) is kept.slot:
                self._slots[name] = kept


def _count_from_now(slot: Any) -> None:
    """Start the `Crawl-delay` of a slot again now."""
    # The slot's own delay is still counted from the last request, even if Scrapy chooses the shortest one.
    longer = max(0.0, least_own_delay(slot) - crawl_delay_of(slot))
    slot.lastseen = max(slot.lastseen, now() - longer)
