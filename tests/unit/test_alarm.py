"""The timer that wakes the engine."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.waiting.alarm import Alarm

if TYPE_CHECKING:
    from collections.abc import Callable

CRAWLER: Any = object()


@pytest.fixture
def rings(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When the engine was woken, in monotonic seconds."""
    times: list[float] = []
    monkeypatch.setattr(compat, "look_for_next_request", lambda crawler: times.append(monotonic()))
    return times


def run(use: Callable[[Alarm, float], None]) -> None:
    """Use an alarm at a moment, and wait until 0.3 s after it."""

    async def work() -> None:
        use(Alarm(CRAWLER), monotonic())
        await asyncio.sleep(0.3)

    asyncio.run(work())


def test_the_engine_is_woken_once_at_the_earliest_time(rings: list[float]) -> None:
    started = monotonic()

    def use(alarm: Alarm, now: float) -> None:
        for seconds in (60, 0.1, 30, 0.1):
            alarm.set(now + seconds)

    run(use)
    assert len(rings) == 1
    assert rings[0] - started >= 0.09


def test_a_time_that_has_passed_wakes_the_engine_soon(rings: list[float]) -> None:
    run(lambda alarm, now: alarm.set(now - 5))
    assert len(rings) == 1


def test_it_can_be_set_again_after_it_rang(rings: list[float]) -> None:
    async def work() -> None:
        alarm = Alarm(CRAWLER)
        for _ in range(2):
            alarm.set(monotonic() + 0.05)
            await asyncio.sleep(0.3)

    asyncio.run(work())
    assert len(rings) == 2


def test_a_cancelled_alarm_does_not_ring(rings: list[float]) -> None:
    def use(alarm: Alarm, now: float) -> None:
        alarm.set(now + 0.05)
        alarm.cancel()
        alarm.cancel()

    run(use)
    assert rings == []
