"""`FleetTurns`: let all processes of a fleet together keep the `Crawl-delay` of a site.

When a slot could send a request, the process takes a turn in Redis, and the request waits until the turn
begins. If it is not sent soon enough after that, because the process is busy, the process takes another turn,
and may be later then. If all turns of the near future are taken, the process asks again. While Redis fails or
is slow, each process keeps the delay by itself.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scrapy import signals

from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.scrapy_api.internals import now
from scrapy_norobots.scrapy_api.log import CrawlLog
from scrapy_norobots.standard.decision import printable
from scrapy_norobots.stores import error_text, without_password
from scrapy_norobots.stores.opening import open_turns

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred

logger = logging.getLogger(__name__)

# How long Redis may take for a turn, and how long it is left alone after a failure, in seconds.
_TIMEOUT = 1.0
_PAUSE = 5.0

# How long after the beginning of its turn a request may be sent, as a fraction of the delay; and if the last
# turn was missed, which costs a whole delay.
_WINDOW, _WINDOW_IF_SLOW = 0.025, 1.0
# How long a request may be on its way to the site, as a fraction of the delay.
_ON_THE_WAY = 0.1
# A shorter delay counts as this long, in seconds: the window must not end before Redis answers, and the
# request is sent.
_SHORTEST = 1.0

# How far ahead a turn may be, as a multiple of the delay. Farther ones have other causes, such as a wrong
# clock.
_AHEAD = 10

# The shortest and the longest pause between two looks at a slot whose turn Redis has not given yet.
_LOOK_MIN, _LOOK_MAX = 0.002, 0.1


@dataclass(slots=True)
class _Turn:
    """What is known of a slot: its site, the `Crawl-delay`, and the times between which it may send.

    `not_before` is the earliest time of the first turn. `end` is 0 while there is no turn. `window` is the
    fraction of the delay in which the request may be sent.
    """

    site: str
    delay: float
    not_before: float
    window: float = _WINDOW
    start: float = 0.0
    end: float = 0.0
    taking: Deferred[None] | None = None


class FleetTurns:
    """The turns of the slots of one crawl.

    Raises `ValueError` if the store is not a Redis server.
    """

    def __init__(self, crawler: Crawler, store: str) -> None:
        self._crawler = crawler
        self._log = CrawlLog(crawler, logger)
        self._name = without_password(store)
        self._turns = open_turns(store)
        self._slots: dict[Any, _Turn] = {}
        self._round_trip = 0.0
        self._off_until = 0.0
        self._has_failed = False
        crawler.signals.connect(self._close, signals.spider_closed)

    def keep(self, slot: Any, site: str, delay: float, not_before: float = 0.0) -> None:
        """Let a slot wait for its turns; `not_before` is when the first one may begin, by `now`."""
        turn = self._slots.get(slot)
        if turn is None:
            self._slots[slot] = _Turn(site, delay, not_before)
        else:
            turn.delay = delay
            turn.not_before = max(turn.not_before, not_before)

    def forget(self, slot: Any) -> None:
        """Forget a slot that keeps no delay any longer."""
        self._slots.pop(slot, None)

    def seconds(self, slot: Any) -> float:
        """Return after how many seconds to ask again whether a slot may send a request; 0 if it may now."""
        turn, moment = self._slots.get(slot), now()
        if turn is None or moment < self._off_until:
            return 0.0
        if turn.taking is not None:
            return min(max(self._round_trip, _LOOK_MIN), _LOOK_MAX)
        if turn.end and slot.lastseen >= turn.start:  # it was used
            turn.end, turn.window = 0.0, _WINDOW
        if moment < turn.start:
            return turn.start - moment
        if moment <= turn.end:
            return 0.0
        if turn.end:  # it was missed
            turn.end, turn.window = 0.0, _WINDOW_IF_SLOW
        turn.taking = compat.spawn(self._take(turn))
        return min(max(self._round_trip, _LOOK_MIN), _LOOK_MAX)

    async def _take(self, turn: _Turn) -> None:
        asked = now()
        # A turn must not end before Redis has answered.
        base = max(turn.delay, _SHORTEST)
        window = turn.window * base + min(self._round_trip, base)
        least = max(0.0, turn.not_before - asked)
        try:
            tolerance = window + _ON_THE_WAY * turn.delay
            taking = self._turns.take(turn.site, turn.delay, tolerance, min(least, turn.delay), _AHEAD * base)
            wait = await compat.within(_TIMEOUT, taking)
        except Exception as exc:  # redis-py has many
            self._fail(exc)
        else:
            answered = now()
            self._round_trip = answered - asked
            if wait is None:
                turn.start = answered + turn.delay  # to ask again
            else:
                turn.start, turn.end = answered + wait, asked + wait + window
            self._recover()
        turn.taking = None
        compat.look_for_next_request(self._crawler)

    def _fail(self, exc: Exception) -> None:
        self._off_until = now() + _PAUSE
        if self._has_failed:
            return
        self._has_failed = True
        self._log(
            logging.WARNING,
            "NOROBOTS_CRAWL_DELAY_SHARED has no effect at the moment, so each process keeps the Crawl-delay "
            "of a site by itself: %s failed (%s)",
            self._name,
            printable(": ".join(filter(None, (type(exc).__name__, error_text(exc))))),
        )

    def _recover(self) -> None:
        if self._has_failed:
            self._has_failed = False
            self._log(logging.WARNING, "NOROBOTS_CRAWL_DELAY_SHARED is in effect again: %s works", self._name)

    async def _close(self) -> None:
        for turn in self._slots.values():
            if turn.taking is not None:
                compat.cancel(turn.taking)
        with suppress(Exception):  # the store logs that Redis fails
            await compat.within(_TIMEOUT, self._turns.close())
