"""`Turns`: how many files may be loaded at a time, in all and of one download slot.

In a slot with a delay, downloads of robots.txt and pages take turns. Otherwise, the files of many origins in
one slot, such as that of a proxy, would all be downloaded before the first page.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred, DeferredSemaphore

from scrapy_norobots.scrapy_api import compat

if TYPE_CHECKING:
    from scrapy_norobots.waiting.slots import Slots


@dataclass(slots=True, eq=False)
class _Turn:
    """The loads of one slot: those that run, those that wait, and whether a page is next."""

    running: int = 0
    waiting: deque[Deferred[None]] = field(default_factory=deque)
    is_of_page: bool = False


class Turns:
    """The turns of one crawl: at most `most` loads at a time, half of which may be retries.

    `has_page` returns whether a page waits for a slot.
    """

    def __init__(self, slots: Slots, most: int, has_page: Callable[[Any | None], bool]) -> None:
        self._slots = slots
        self._has_page = has_page
        self._loads = DeferredSemaphore(max(1, most))
        self._retries = DeferredSemaphore(max(1, most // 2))
        self._turns: dict[Any, _Turn] = {}

    @asynccontextmanager
    async def load(self, slot: Any | None, *, is_retry: bool) -> AsyncIterator[None]:
        """Wait until one more file of a slot may be loaded, which is done inside the ``async with``."""
        turn = self._turns.setdefault(slot, _Turn())
        admitted: Deferred[None] = Deferred()
        turn.waiting.append(admitted)
        self._admit(slot)
        await compat.waiting_for(admitted)
        try:
            async with AsyncExitStack() as stack:
                for semaphore in (self._retries, self._loads) if is_retry else (self._loads,):
                    await compat.waiting_for(semaphore.acquire())
                    stack.callback(semaphore.release)
                yield
        finally:
            turn.running -= 1
            turn.is_of_page = True
            compat.call_later(0, partial(self._admit, slot))  # its pages may be in line by then

    def page_has_left(self, slot: Any | None) -> None:
        """Let the next file of a slot be loaded, if one waits for its turn.

        A page has left the line of the slot: it goes on, or it has to wait for a file again.
        """
        if turn := self._turns.get(slot):
            turn.is_of_page = False
            self._admit(slot)

    def _admit(self, slot: Any | None) -> None:
        turn = self._turns.get(slot)
        if turn is None:
            return
        while turn.waiting and self._may_load(slot, turn):
            turn.running += 1
            turn.waiting.popleft().callback(None)
        if not turn.running and not turn.waiting:
            del self._turns[slot]

    def _may_load(self, slot: Any | None, turn: _Turn) -> bool:
        if slot is None:
            return True
        if self._slots.has_delay(slot):
            return not turn.running and not (turn.is_of_page and self._has_page(slot))
        return bool(turn.running < slot.concurrency)
