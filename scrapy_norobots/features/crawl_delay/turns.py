"""`Turn`: let all processes that share a Redis together keep the `Crawl-delay` of a download slot.

When a slot could send a request, the process takes a turn from `RedisStore`, and the request waits until that
begins. If it is not sent soon enough after that, because the process is busy, the process takes another turn,
and may be later then. If all turns of the near future are taken, the process asks again. While Redis fails or
is slow, each process keeps the delay by itself.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler
from twisted.internet.defer import Deferred

from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.scrapy_api.internals import crawl_delay_of, now
from scrapy_norobots.scrapy_api.log import crawl_log
from scrapy_norobots.settings import error
from scrapy_norobots.standard.decision import printable
from scrapy_norobots.stores import error_text, without_password
from scrapy_norobots.stores.opening import open_turns

logger = logging.getLogger(__name__)

# How long Redis may take for a turn, and how long it is left alone after a failure, in seconds.
_TIMEOUT = 1.0
_PAUSE = 5.0

# As fractions of the delay: how long after the beginning of its turn a request may be sent; the same if the
# last turn was missed, which costs a whole delay; how long a request may be on its way to the site; and how
# far ahead a turn may be: farther ones have other causes, such as a wrong clock.
_WINDOW, _WINDOW_IF_SLOW, _ON_THE_WAY, _AHEAD = 0.025, 1.0, 0.1, 10
# A shorter delay counts as this long, in seconds: the window must not end before the request is sent.
_SHORTEST = 1.0

# The shortest and the longest pause between two looks at a slot whose turn Redis has not given yet.
_LOOK_MIN, _LOOK_MAX = 0.002, 0.1


class FleetTurns:
    """What the turns of all slots share: Redis, and whether it works. Raises `ValueError` if it is none."""

    def __init__(self, crawler: Crawler, store: str) -> None:
        self.crawler = crawler
        self._name = without_password(store)
        try:
            self.redis = open_turns(store)
        except (ImportError, ValueError) as exc:
            problem = f"NOROBOTS_STORE = {self._name!r} {exc}"
            raise error("NOROBOTS_CRAWL_DELAY_SHARED", True, problem) from None
        # The turns that are being taken, by slot.
        self.taking: dict[str, Deferred[None]] = {}
        self.round_trip = self.off_until = 0.0
        self._log = crawl_log(crawler, logger)
        self.has_failed = False
        crawler.signals.connect(self._close, signals.spider_closed)

    def fail(self, exc: Exception) -> None:
        self.off_until = now() + _PAUSE
        if not self.has_failed:
            self._log(
                logging.WARNING,
                "NOROBOTS_CRAWL_DELAY_SHARED has no effect at the moment, so each process keeps the "
                "Crawl-delay of a site by itself: %s failed (%s)",
                self._name,
                printable(": ".join(filter(None, (type(exc).__name__, error_text(exc))))),
            )
        self.has_failed = True

    async def _close(self) -> None:
        for taking in list(self.taking.values()):
            compat.cancel(taking)
        with suppress(Exception):  # the store logs that Redis fails
            await compat.within(_TIMEOUT, self.redis.close())


class Turn:
    """The turns of one slot in a fleet; `not_before` is the earliest time of the first, by `now`."""

    def __init__(self, fleet: FleetTurns, slot_name: str) -> None:
        self._fleet = fleet
        self._slot_name = slot_name
        self.not_before = 0.0
        # The end is 0 while there is no turn. The window is a fraction of the delay.
        self._start = self._end = 0.0
        self._window = _WINDOW

    def seconds(self, slot: Any) -> float:
        """Return after how many seconds to ask again whether the slot may send a request; 0 if it may now."""
        moment = now()
        if moment < self._fleet.off_until:
            return 0.0
        if self._slot_name not in self._fleet.taking:
            if self._end and slot.lastseen >= self._start:  # it was used
                self._end, self._window = 0.0, _WINDOW
            if moment < self._start:
                return self._start - moment
            if moment <= self._end:
                return 0.0
            if self._end:  # it was missed
                self._end, self._window = 0.0, _WINDOW_IF_SLOW
            self._fleet.taking[self._slot_name] = compat.spawn(self._take(crawl_delay_of(slot)))
        return min(max(self._fleet.round_trip, _LOOK_MIN), _LOOK_MAX)

    async def _take(self, delay: float) -> None:
        fleet, asked = self._fleet, now()
        # A turn must not end before Redis has answered.
        base = max(delay, _SHORTEST)
        window = self._window * base + min(fleet.round_trip, base)
        tolerance = window + _ON_THE_WAY * delay
        least = min(max(0.0, self.not_before - asked), delay)
        try:
            taking = fleet.redis.take(self._slot_name, delay, tolerance, least, _AHEAD * base)
            wait = await compat.within(_TIMEOUT, taking)
        except Exception as exc:  # redis-py has many
            fleet.fail(exc)
        else:
            answered = now()
            fleet.round_trip, fleet.has_failed = answered - asked, False
            if wait is None:
                self._start = answered + delay  # to ask again
            else:
                self._start, self._end = answered + wait, asked + wait + window
        fleet.taking.pop(self._slot_name, None)
        compat.look_for_next_request(fleet.crawler)
