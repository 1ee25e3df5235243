"""`set_aside`: the order in which requests go back to a scheduler."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import MagicMock

import pytest
from scrapy.settings import Settings, default_settings

from scrapy_norobots import compat
from scrapy_norobots.set_aside import SetAside, _gives_last_first

HAS_START_QUEUE = hasattr(default_settings, "SCHEDULER_START_MEMORY_QUEUE")
FIFO = {
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
}


class OtherScheduler:
    """A scheduler that is not derived from Scrapy's."""


@pytest.mark.parametrize("job", [{}, {"JOBDIR": "job"}])
@pytest.mark.parametrize(
    ("settings", "is_start", "expected"),
    [
        ({}, False, True),
        ({}, True, not HAS_START_QUEUE),
        (FIFO, False, False),
        (FIFO, True, False),
        ({"SCHEDULER_START_MEMORY_QUEUE": None, "SCHEDULER_START_DISK_QUEUE": None}, True, True),
        ({"SCHEDULER": "tests.unit.test_set_aside.OtherScheduler"}, False, False),
    ],
)
def test_the_order_of_a_queue_is_known(
    job: dict[str, Any], settings: dict[str, Any], is_start: bool, expected: bool
) -> None:
    assert _gives_last_first(Settings({**settings, **job}), is_start) is expected


def test_an_origin_that_has_expired_in_a_store_is_loaded_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    delays: list[float] = []

    async def sleep(seconds: float) -> None:
        delays.append(seconds)
        raise TimeoutError

    monkeypatch.setattr(compat, "sleep", sleep)
    with pytest.raises(TimeoutError):
        asyncio.run(SetAside._retry(MagicMock(), MagicMock(), MagicMock(), "FooBot", -5.0))
    assert len(delays) == 1
    assert delays[0] >= 0
