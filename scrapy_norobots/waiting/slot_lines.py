"""`Lines`: requests that may go on, in one line for each download slot, until their slot can send them.

In a line, requests with a higher priority come first, then those that have waited longer. The slots that can
send come by the priority of their first requests; equal ones alternate. A slot with a delay lets requests go
before it can send them, as Scrapy's HTTP cache may answer them; those that no middleware answers are *held*
in the downloader until the slot can send them.

`Slots` says when a slot can send a request. Those that wait are registered in their slots, so that Scrapy's
priority queue sees a busy slot and takes requests of other slots first. Without the internal names of Scrapy,
or with a downloader that does not say when a request has moved, each slot is None, which can always send.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count
from time import monotonic
from typing import TYPE_CHECKING, Any

from scrapy_norobots.load.fetch import ROBOTS_DOWNLOAD
from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.scrapy_api.internals import (
    least_delay,
    missing_internals,
    now,
    seconds_to_turn,
    slot_of,
)
from scrapy_norobots.waiting.states import Parked

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

# How many requests make a line long.
_LONG = 100

# How long the crawl stands still before a request goes without a place, in seconds: longer than a middleware
# takes that is only slow, as more requests than the user allows would be in it.
_STANDSTILL = 10.0


class Slots:
    """The download slots of one crawl, whose engine exists.

    `has_place` returns whether the downloader may send one more request. Without it, the downloader does not
    say when a request has moved.
    """

    def __init__(self, crawler: Crawler, has_place: Callable[[], bool] | None = None) -> None:
        self._crawler = crawler
        self.missing = missing_internals(crawler)
        self.are_watched = has_place is not None and not self.missing
        self.has_place = has_place or (lambda: True)
        self._downloader = compat.downloader(crawler)
        self._waiting: dict[Any, int] = defaultdict(int)

    def of(self, request: Request) -> Any | None:
        """Return the slot in which a request will be sent, unless a middleware changes that."""
        if not self.are_watched:
            return None
        try:
            return slot_of(self._downloader, request, self._crawler.spider)
        except Exception:  # the URL or the slot in the meta is invalid, so Scrapy cannot send it
            return None

    def enter(self, slot: Any | None, request: Request) -> None:
        """Register a request that begins to wait."""
        if slot is not None:
            slot.active.add(request)
            self._waiting[slot] += 1

    def leave(self, slot: Any | None, request: Request) -> None:
        """Undo `enter`."""
        if slot is not None:
            slot.active.discard(request)
            self._waiting[slot] -= 1
            if not self._waiting[slot]:
                del self._waiting[slot]

    @staticmethod
    def has_delay(slot: Any | None) -> bool:
        """Return whether requests of a slot are sent at intervals."""
        return slot is not None and bool(slot.delay or least_delay(slot))

    def under_way(self, slot: Any) -> int:
        """Return how many requests a slot has, or are on their way to it."""
        return len(slot.active) - self._waiting.get(slot, 0)

    def are_sending(self) -> bool:
        """Return whether a slot has a request of a page, as far as that is known."""
        return not self.are_watched or any(
            sum(ROBOTS_DOWNLOAD not in request.meta for request in slot.active) > self._waiting.get(slot, 0)
            for slot in self._downloader.slots.values()
        )

    def seconds(self, slot: Any | None, *, is_usual: bool = False) -> float | None:
        """Return in how many seconds a slot can send a request; None: when one of its requests has moved.

        Scrapy varies a delay at random: the result is for the least delay that it may choose, or for the
        usual one if `is_usual`.
        """
        if slot is None:
            return 0.0
        delay: float = max(least_delay(slot), slot.delay if is_usual else 0)
        under_way = self.under_way(slot)
        if not self.has_delay(slot):
            return 0.0 if under_way < slot.concurrency else None
        sent = len(slot.transferring)
        if slot.queue or under_way > sent or sent >= slot.concurrency:
            return None
        return max(0.0, float(slot.lastseen) + delay - now()) or seconds_to_turn(slot)


@dataclass(slots=True, eq=False)
class _Line:
    """The requests of a slot. If one may go on, `entry` is the valid entry of the line in the heap.

    Else the line is looked at when a request of its slot has moved, or by a timer, which `stop_timer` stops.
    """

    slot: Any | None
    waiting: list[tuple[int, int, Parked]] = field(default_factory=list)
    held: list[tuple[int, int, Parked]] = field(default_factory=list)
    entry: tuple[float, int, _Line] | None = None
    stop_timer: Callable[[], object] | None = None


class Lines:
    """The lines of one crawl. There are `places` for requests (0: any number), and no line holds more.

    `wake` is called when time has passed and a request may go on.
    """

    def __init__(self, slots: Slots, wake: Callable[[], None], *, places: int) -> None:
        self._slots = slots
        self._wake = wake
        self._places = places if places > 0 else math.inf
        self.of_slots: dict[Any, _Line] = {}
        self._turns = count()
        # Lines whose slot can send, by negative priority and turn. An entry that is not the `entry` of its
        # line is out of date.
        self._sendable: list[tuple[float, int, _Line]] = []
        # Requests that have gone on, and not yet reached a slot, with the slot whose line they were in.
        self.coming: dict[Request, Any] = {}
        self._seen: list[Request] = []  # those that `late` found among them
        # By what they have in common, requests that wait until the same one has been answered, which Scrapy's
        # HTTP cache then has. One robots.txt has released all of them.
        self._repeats: dict[object, list[Parked]] = {}
        self.extra_places = 0  # 1 while a request that was overtaken may go on although there is no place
        self._moved_at = 0.0

    def may_pass(self, slot: Any | None) -> bool:
        """Return whether a request need not wait in line: a slot can send one, and none waits for it."""
        return slot is None or (slot not in self.of_slots and self._slots.seconds(slot) == 0)

    def add(self, parked: Parked) -> None:
        """Add a request to the line of its slot."""
        line = self.of_slots.get(parked.slot)
        if line is None:
            line = self.of_slots[parked.slot] = _Line(parked.slot)
        heap = line.waiting if parked.gate is None else line.held
        heapq.heappush(heap, (-parked.request.priority, parked.number, parked))
        if line.entry is None or heap[0][2] is parked:
            self._look_at(line)

    def add_once(self, parked: Parked) -> None:
        """Add a request, or let it wait for an equal one that was added so."""
        request = parked.request
        key = parked.slot, request.priority, request.method, request.url, request.body
        if key in self._repeats:
            self._repeats[key].append(parked)
        else:
            parked.key, self._repeats[key] = key, []
            self.add(parked)

    def let_repeats_go(self, sent: Parked | None) -> None:
        """Add those that wait for a request, which has been answered, is late, or waits again."""
        if sent is not None:
            self._moved_at = monotonic()
            for parked in self._repeats.pop(sent.key, ()):
                self.add(parked)
                self._wake()
            sent.key = None

    def is_long(self, slot: Any | None) -> bool:
        """Return whether so many requests are in the line of a slot that no more should be taken for now."""
        line = self.of_slots.get(slot)
        return line is not None and len(line.waiting) + len(line.held) >= _LONG

    def has_one_alone(self) -> bool:
        """Return whether a line has one request."""
        return any(len(line.waiting) + len(line.held) == 1 for line in self.of_slots.values())

    def first(self) -> Parked | None:
        """Return the request that goes on next; None if all must wait for their slots."""
        while self._sendable:
            entry = self._sendable[0]
            line = entry[2]
            if entry is line.entry and (parked := self._first_of(line, self._seconds(line.slot))):
                return parked
            heapq.heappop(self._sendable)
            if entry is line.entry:
                self._look_at(line)
        return None

    def expect(self, request: Request, slot: Any | None) -> None:
        """Let a slot have a request that is on its way to it."""
        self.extra_places, self._moved_at = 0, monotonic()
        if slot is not None:
            slot.active.add(request)
            self.coming[request] = slot

    def remove(self, parked: Parked) -> None:
        """Remove the request that `first` has returned."""
        line = self.of_slots[parked.slot]
        heapq.heappop(line.waiting if parked.gate is None else line.held)
        if line.waiting or line.held:
            self._look_at(line)
        else:
            del self.of_slots[parked.slot]
            self._reset(line)

    def may_reach(self, request: Request, slot: Any | None) -> bool:
        """Return whether a request need not wait for the delay of its slot, to which it has come."""
        if not self._slots.has_delay(slot):
            return True
        self.no_longer_comes(request)
        line = self.of_slots.get(slot)  # where none is overtaken
        if line is not None and line.held and line.held[0][0] <= -request.priority:
            return False
        return self._seconds(slot) == 0

    def late(self) -> dict[Request, Any]:
        """Return the requests that were on their way at the last call too, with their slots.

        A middleware may keep one for long, even until others of the slot have come.
        """
        late = {request: self.coming[request] for request in self._seen if request in self.coming}
        self._seen = list(self.coming)
        return late

    def no_longer_comes(self, request: Request, reached: Any | None = None) -> None:
        """Take a request from the slot that it was on its way to, if any, unless it has reached that one."""
        slot = self.coming.pop(request, None)
        if slot is not None and slot is not reached:
            slot.active.discard(request)
            self.look(slot)

    def look(self, slot: Any | None) -> None:
        """Look again at the line of a slot, if any, when one of its requests has moved or time has passed."""
        line = self.of_slots.get(slot)
        if line is not None and line.entry is None and self._look_at(line):
            self._wake()

    def look_at_places(self, newest: int) -> None:
        """If the crawl stands still, let the line with the oldest request go first, without a place.

        It does if no place is free, nothing is being sent, and nothing has moved for a while. Only requests
        count that are older than the newest one that has a place: they have been overtaken.
        """
        self.extra_places = 0
        if monotonic() - self._moved_at < _STANDSTILL or self._slots.has_place() or self._slots.are_sending():
            return
        older = {
            oldest: line
            for line in self.of_slots.values()
            if line.entry is not None
            and (oldest := min(one.number for *_, one in line.waiting + line.held)) < newest
        }
        if older:
            line = older[min(older)]
            line.entry = -math.inf, next(self._turns), line
            heapq.heappush(self._sendable, line.entry)
            self.extra_places = 1

    def look_soon(self, slot: Any | None) -> None:
        """Look again at a slot that sends a request, when Scrapy has begun the transfer: after this call."""
        if self.of_slots[slot].entry is None:
            # A look before that does not stop this one.
            compat.call_later(0, partial(self.look, slot))

    def clear(self) -> list[Parked]:
        """Remove and return all requests."""
        lines = list(self.of_slots.values())
        self.of_slots.clear()
        for line in lines:
            self._reset(line)
        in_line = [one for line in lines for _, _, one in line.waiting + line.held]
        return list(chain(in_line, *self._repeats.values()))

    def _seconds(self, slot: Any | None) -> float | None:
        # If places are rare, a request should not take one long before its slot can send it.
        return self._slots.seconds(slot, is_usual=len(self.of_slots) > self._places)

    def _look_at(self, line: _Line) -> bool:
        """Find out when a request of a line may go on; return whether one may now."""
        seconds = self._seconds(line.slot)
        parked = self._first_of(line, seconds)
        self._reset(line)
        if parked is not None:
            line.entry = -parked.request.priority, next(self._turns), line
            heapq.heappush(self._sendable, line.entry)
        elif seconds:
            line.stop_timer = compat.call_later(seconds, partial(self.look, line.slot))
        return parked is not None

    @staticmethod
    def _reset(line: _Line) -> None:
        line.entry = None
        if line.stop_timer is not None:
            line.stop_timer()
            line.stop_timer = None

    def _first_of(self, line: _Line, seconds: float | None) -> Parked | None:
        """Return the request of a line that goes on, if its slot can send one in so many seconds."""
        if seconds != 0:
            return line.waiting[0][2] if self._may_try(line) else None
        candidates = line.held[:1] + line.waiting[:1]
        return min(candidates)[2] if candidates else None

    def _may_try(self, line: _Line) -> bool:
        """Return whether the first of a line may go to the middlewares before its slot can send it."""
        slot: Any = line.slot
        return (
            bool(line.waiting)
            and not slot.queue
            and self._slots.has_delay(slot)
            and self._slots.under_way(slot) <= len(slot.transferring)  # else another is on its way
            and len(line.held) < self._places
        )
