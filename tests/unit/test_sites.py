"""`LoadLimits`: how many files are loaded at a time, in all and of one download slot."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.core.downloader import Slot

from scrapy_norobots.scrapy_api.internals import set_crawl_delay
from scrapy_norobots.waiting.sites import LoadLimits
from scrapy_norobots.waiting.slot_lines import Slots
from tests.unit.test_connections import pytestmark  # noqa: F401  # the same here


class Crawl:
    """Loads files, notes them in order with the pages that are sent, and how many were loaded at once."""

    def __init__(self, most: int = 500) -> None:
        crawler: Any = SimpleNamespace(engine=SimpleNamespace(downloader=None))
        self.pages = 0  # these wait for a slot
        self.log: list[str] = []
        self.now = self.most = 0
        self.limits = LoadLimits(Slots(crawler), most, lambda slot: self.pages > 0)

    async def load(self, slot: Any, *, is_retry: bool = False) -> None:
        async with self.limits.load(slot, is_retry=is_retry):
            self.log.append("retry" if is_retry else "file")
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0.005)
            self.now -= 1

    async def load_all(self, *slots: Any, is_retry: bool = False) -> int:
        """Load a file of each slot given, and return how many were loaded at once."""
        await asyncio.wait_for(asyncio.gather(*(self.load(slot, is_retry=is_retry) for slot in slots)), 30)
        return self.most


def slot_with(concurrency: int, delay: float = 0.0) -> Any:
    slot = Slot(concurrency, 0.0, 0)
    set_crawl_delay(slot, delay)
    return slot


def test_a_slot_whose_jitter_may_reduce_the_delay_to_0_has_a_delay() -> None:
    assert Slots.has_delay(Slot(1, 1.0, 1.0))


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_without_a_delay_a_slot_loads_as_many_files_as_its_concurrency(concurrency: int) -> None:
    crawl, slot = Crawl(), slot_with(concurrency)
    crawl.pages = 1  # it holds nothing
    assert await crawl.load_all(*[slot] * 10) == concurrency
    assert crawl.log == ["file"] * 10


async def test_retries_leave_the_other_half_to_first_loads() -> None:
    crawl = Crawl(6)
    retries = asyncio.ensure_future(crawl.load_all(*[None] * 20, is_retry=True))
    await asyncio.sleep(0)
    assert await crawl.load_all(*[None] * 3) == 6
    assert crawl.log[:6].count("file") == 3
    await retries


async def test_a_load_that_fails_lets_the_next_one_run() -> None:
    crawl, slot = Crawl(1), slot_with(8, 5.0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            async with crawl.limits.load(slot, is_retry=True):
                raise ZeroDivisionError
    await asyncio.wait_for(crawl.load(slot, is_retry=True), 30)
    await asyncio.sleep(0.05)
    assert not crawl.limits.by_slot  # nothing is kept of a slot whose files are loaded
