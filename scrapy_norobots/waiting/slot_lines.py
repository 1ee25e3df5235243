"""`Lines`: requests that may go on, in one line for each download slot, until their slot can send them.

In a line, requests with a higher priority come first, then those that have waited longer. Slots that can
send take turns. A line ends when all requests that robots.txt made wait have gone: if no slot can send and
places are left over, others that have joined the line then go on as they would without the plugin.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any

from scrapy_norobots.question import Question
from scrapy_norobots.scrapy_api.internals import now
from scrapy_norobots.waiting.recent import PATIENCE

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_norobots.waiting.slots import Slots

# Whether a request has no place, its negative priority, its number: the lowest goes first.
_Rank = tuple[bool, int, int]


@dataclass(slots=True, eq=False)
class Parked:
    """A request that waits.

    - `number` grows with each request that begins to wait.
    - `since` is when it began to wait, in monotonic seconds.
    - `is_held_up` is true if it waits, or has waited, for a robots.txt, and not only for others.
    - `has_reloaded` is true if it had to wait again, because its rules had expired.
    - `is_closed` is true while it waits for a site that is closed for now.
    """

    request: Request
    question: Question | None
    slot: Any | None
    number: int
    since: float
    is_held_up: bool = True
    has_reloaded: bool = False
    is_closed: bool = False

    @property
    def priority(self) -> int:
        """The priority of the request."""
        priority: int = self.request.priority
        return priority


@dataclass(slots=True, eq=False)
class _Line:
    slot: Any | None
    waiting: list[tuple[_Rank, Parked]] = field(default_factory=list)
    held_up: int = 0
    key: tuple[bool, int, int] | None = None  # of its entry in `_sendable`; None if it has none
    is_due: bool = False  # it has an entry in `_due`


class Lines:
    """The lines of one crawl, which sends `most` requests at a time.

    `coming_soon` returns how many requests will probably be in line soon.
    """

    def __init__(self, slots: Slots, most: int, coming_soon: Callable[[], int]) -> None:
        self._slots = slots
        self._most = most
        self._coming_soon = coming_soon
        self._lines: dict[Any, _Line] = {}
        # Lines whose slot can send: the heap's top is the line that is next. Entries may be out of date.
        self._sendable: list[tuple[tuple[bool, int, int], _Line]] = []
        self._due: list[tuple[float, int, _Line]] = []
        # Lines in which no request is left that robots.txt made wait, by their slots.
        self._ended: dict[Any, _Line] = {}
        self._turn = 0
        # Requests that have gone on, and not yet reached a slot: the slot whose line they were in, and until
        # when they count, in monotonic seconds. A middleware may keep them, even until others have come.
        self._coming: dict[Request, tuple[Any, float]] = {}
        self._coming_to: Counter[Any] = Counter()

    @property
    def is_idle(self) -> bool:
        """Whether no request is in line or on its way to its slot, so that `moved` need not be called."""
        return not self._lines and not self._coming

    def __contains__(self, slot: Any | None) -> bool:
        return slot is not None and slot in self._lines

    def can_send(self, slot: Any | None) -> bool:
        """Return whether a slot can send a request now."""
        return self._slots.seconds(slot, self._coming_to[slot]) == 0

    def add(self, parked: Parked, *, has_place: bool) -> int:
        """Add a request to the line of its slot; return the length of the line."""
        line = self._lines.get(parked.slot)
        if line is None:
            line = self._lines[parked.slot] = _Line(parked.slot)
        heapq.heappush(line.waiting, ((not has_place, -parked.priority, parked.number), parked))
        line.held_up += parked.is_held_up
        self._note_end(line)
        if line.key is None or line.waiting[0][1] is parked:
            self._look_at(line)
        return len(line.waiting)

    def first(self, places: int | None = None) -> Parked | None:
        """Return the request that goes on next; None if all must wait for their slots.

        The crawl has so many places left (None: any number).
        """
        while self._due and self._due[0][0] <= now():
            _, _, line = heapq.heappop(self._due)
            line.is_due = False
            self._look_at(line)
        while self._lines and self._coming and self._coming_until <= monotonic():
            self._has_come(next(iter(self._coming)))
        while self._sendable:
            key, line = self._sendable[0]
            if key == line.key and line.waiting and self._seconds(line) == 0:
                return line.waiting[0][1]
            heapq.heappop(self._sendable)
            if key == line.key:
                line.key = None
                self._look_at(line)
        if not self._ended or self.need(places):
            return None
        return next(iter(self._ended.values())).waiting[0][1]

    def need(self, places: int | None) -> bool:
        """Return whether requests that robots.txt made wait will soon need all of so many places."""
        return places is not None and places <= len(self._lines) - len(self._ended) + self._coming_soon()

    def take(self, parked: Parked) -> None:
        """Remove the request that `first` has returned. It is on its way to its slot."""
        self.expect(parked.request, parked.slot)
        self.remove(parked)

    def expect(self, request: Request, slot: Any | None) -> None:
        """Count a request that is on its way to its slot."""
        if slot is not None:
            self._coming[request] = slot, monotonic() + PATIENCE
            self._coming_to[slot] += 1

    def remove(self, parked: Parked) -> None:
        """Remove the request that `first` has returned."""
        line = self._lines[parked.slot]
        heapq.heappop(line.waiting)
        line.held_up -= parked.is_held_up
        line.key = None
        self._note_end(line)
        if line.waiting:
            self._look_at(line)
        else:
            del self._lines[parked.slot]

    def moved(self, request: Request, slot: Any | None) -> None:
        """Look again at the slot of a request that has reached it, or has left the downloader."""
        if request in self._coming:
            self._has_come(request)
        self._look_again(slot)

    def look_soon(self, slot: Any) -> None:
        """Look again at a slot when the next request is asked for."""
        line = self._lines[slot]
        if line.key is None:
            self._add_due(line, 0.0)

    def seconds_left(self) -> float | None:
        """Return in how many seconds a slot may be able to send; None: when a request of a slot has moved."""
        times = [self._due[0][0] - now()] if self._due else []
        if self._lines and self._coming:
            times.append(self._coming_until - monotonic())
        return max(0.0, min(times)) if times else None

    def clear(self) -> list[Parked]:
        """Remove and return all requests."""
        waiting = [parked for line in self._lines.values() for _, parked in line.waiting]
        self._lines.clear()
        self._sendable.clear()
        self._due.clear()
        self._ended.clear()
        return waiting

    @property
    def _coming_until(self) -> float:
        return next(iter(self._coming.values()))[1]

    def _has_come(self, request: Request) -> None:
        before, _ = self._coming.pop(request)
        self._coming_to[before] -= 1
        if not self._coming_to[before]:
            del self._coming_to[before]
        self._look_again(before)

    def _note_end(self, line: _Line) -> None:
        if line.waiting and not line.held_up:
            self._ended[line.slot] = line
        else:
            self._ended.pop(line.slot, None)

    def _seconds(self, line: _Line) -> float | None:
        # While places are rare, a request should not hold one while it waits in its slot.
        is_usual = self.need(self._most)
        return self._slots.seconds(line.slot, self._coming_to[line.slot], is_usual=is_usual)

    def _look_again(self, slot: Any | None) -> None:
        line = self._lines.get(slot)
        if line is not None and line.key is None:
            self._look_at(line)

    def _look_at(self, line: _Line) -> None:
        """Find out when the slot of a line can send."""
        if line.is_due or not line.waiting:
            return
        seconds = self._seconds(line)
        if seconds is None:
            return  # `moved` is called when that changes
        if seconds > 0:
            self._add_due(line, seconds)
            return
        self._turn += 1
        (no_place, priority, _), _ = line.waiting[0]
        line.key = no_place, priority, self._turn
        heapq.heappush(self._sendable, (line.key, line))

    def _add_due(self, line: _Line, seconds: float) -> None:
        if not line.is_due:
            line.is_due = True
            self._turn += 1
            heapq.heappush(self._due, (now() + seconds, self._turn, line))
