"""`LoadLimits`: how many files may be loaded at a time, in all and of one download slot.

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
    from scrapy_norobots.waiting.slot_lines import Slots


@dataclass(slots=True, eq=False)
class _SlotLoads:
    """The loads of one slot: those that run, those that wait, and whether a page is next."""

    running: int = 0
    waiting: deque[Deferred[None]] = field(default_factory=deque)
    is_of_page: bool = False


class LoadLimits:
    """The limits of one crawl: at most `most` loads at a time, half of which may be retries.

    `has_page` returns whether a page waits for a slot.
    """

    def __init__(self, slots: Slots, most: int, has_page: Callable[[Any | None], bool]) -> None:
        self._slots = slots
        self._has_page = has_page
        self._loads = DeferredSemaphore(max(1, most))
        self._retries = DeferredSemaphore(max(1, most // 2))
        self._by_slot: dict[Any, _SlotLoads] = {}

    @asynccontextmanager
    async def load(self, slot: Any | None, *, is_retry: bool) -> AsyncIterator[None]:
        """Wait until one more file of a slot may be loaded, which is done inside the ``async with``."""
        loads = self._by_slot.setdefault(slot, _SlotLoads())
        admitted: Deferred[None] = Deferred()
        loads.waiting.append(admitted)
        self._admit(slot)
        await compat.waiting_for(admitted)
        try:
            async with AsyncExitStack() as stack:
                for semaphore in (self._retries, self._loads) if is_retry else (self._loads,):
                    await compat.waiting_for(semaphore.acquire())
                    stack.callback(semaphore.release)
                yield
        finally:
            loads.running -= 1
            loads.is_of_page = True
            compat.call_later(0, partial(self._admit, slot))  # its pages may be in line by then

    def page_has_left(self, slot: Any | None) -> None:
        """Let the next file of a slot be loaded, if one waits for its loads.

        A page has reached the slot, has been answered without it, or has to wait for a file again.
        """
        if loads := self._by_slot.get(slot):
            loads.is_of_page = False
            self._admit(slot)

    def _admit(self, slot: Any | None) -> None:
        loads = self._by_slot.get(slot)
        if loads is None:
            return
        while loads.waiting and self._may_load(slot, loads):
            loads.running += 1
            loads.waiting.popleft().callback(None)
        if not loads.running and not loads.waiting:
            del self._by_slot[slot]

    def _may_load(self, slot: Any | None, loads: _SlotLoads) -> bool:
        if slot is None:
            return True
        if self._slots.has_delay(slot):
            return not loads.running and not (loads.is_of_page and self._has_page(slot))
        return bool(loads.running < slot.concurrency)
