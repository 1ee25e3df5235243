"""`set_aside`: the order in which requests go back to a scheduler."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest
from scrapy import Request
from scrapy.settings import Settings, default_settings
from twisted.internet.defer import Deferred

from scrapy_norobots import compat
from scrapy_norobots.set_aside import RETRY_TIMES, SetAside, _Closed, _gives_last_first, _Waiting

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


def test_only_the_queue_on_disk_counts_in_a_job() -> None:
    fifo_in_memory = {"SCHEDULER_MEMORY_QUEUE": FIFO["SCHEDULER_MEMORY_QUEUE"]}
    assert not _gives_last_first(Settings(fifo_in_memory), False)
    assert _gives_last_first(Settings({**fifo_in_memory, "JOBDIR": "job"}), False)


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


@pytest.mark.parametrize(("is_new", "tries"), [(False, 0), (True, 1)])
def test_only_a_new_download_uses_up_a_retry(is_new: bool, tries: int) -> None:
    request, access = Request("http://town.example/"), MagicMock()
    closed = _Closed([_Waiting(request, Deferred(), access)])
    this = MagicMock(_may_wait=lambda *_: True)
    assert SetAside._take_done(this, closed, MagicMock() if is_new else access) == []
    assert request.meta.get(RETRY_TIMES, 0) == tries
    assert [one.request for one in closed.waiting] == [request]


def test_an_error_of_a_retry_gives_all_requests_back() -> None:
    closed = _Closed([_Waiting(Request("http://town.example/"), Deferred(), MagicMock())])
    origin = MagicMock()
    this = MagicMock(_closed={origin: closed}, _load=AsyncMock(side_effect=RuntimeError("a bug")))
    with pytest.raises(RuntimeError, match="a bug"):
        asyncio.run(SetAside._retry(this, origin, closed, "FooBot", 0.0))
    this._give_back.assert_called_once_with(closed.waiting)
    assert this._closed == {}


@pytest.mark.parametrize(("is_in_memory", "seconds"), [(True, 3.0), (False, 5.0)])
def test_an_origin_that_was_evicted_waits_as_long_as_its_access_says(
    is_in_memory: bool, seconds: float
) -> None:
    access = MagicMock(lifetime=5.0)
    this = MagicMock()
    this._loader.origins.remaining.return_value = 3.0
    this._loader.origins.latest.return_value = access if is_in_memory else None
    assert SetAside._seconds_left(this, MagicMock(), access) == seconds
