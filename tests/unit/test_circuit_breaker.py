"""`CircuitBreaker`: calls to a store that fails or hangs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import pytest
from twisted.internet.defer import CancelledError

from scrapy_norobots.stores import Locked, circuit_breaker
from scrapy_norobots.stores.circuit_breaker import PAUSE, TIMEOUT, CircuitBreaker
from tests.helpers.samples.snapshots import FOUND, LOST, ORIGIN

CONTINUES = "the crawl continues without the store, and tries it again every few seconds"


class Moody:
    """A store that fails on demand, and counts its calls."""

    mood: Callable[[], Coroutine[Any, Any, object]] | None = None
    calls = 0

    def __getattr__(self, name: str) -> Any:
        async def call(*_: object) -> object:
            self.calls += 1
            if self.mood is not None:
                await self.mood()
            return {"load": (FOUND,), "lock": Locked(False, (LOST,))}.get(name)

        return call


async def fail() -> None:
    raise OSError("disk is on \x1b[31mfire")


async def hang() -> None:
    await asyncio.Event().wait()


@dataclass
class Circuit:
    store: Moody
    breaker: CircuitBreaker
    now: float = 1000.0
    failures: int = 0


@pytest.fixture
def circuit(monkeypatch: pytest.MonkeyPatch) -> Circuit:
    circuit = Circuit(Moody(), None)  # type: ignore[arg-type]

    def count() -> None:
        circuit.failures += 1

    monkeypatch.setattr(circuit_breaker, "monotonic", lambda: circuit.now)
    circuit.breaker = CircuitBreaker(circuit.store, "the store", count)
    return circuit


@pytest.mark.parametrize("mood", [fail, hang])
async def test_a_failing_store_is_reported_once_and_not_called(
    circuit: Circuit,
    mood: Callable[[], Coroutine[Any, Any, None]],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.INFO)
    assert await circuit.breaker.load(ORIGIN) == (FOUND,)
    circuit.store.mood = mood
    if mood is hang:
        monkeypatch.setattr(circuit_breaker, "TIMEOUT", 0.05)
    for _ in range(3):
        assert await circuit.breaker.load(ORIGIN) == ()
        assert await circuit.breaker.lock(ORIGIN, 60) == (True, ())
        await circuit.breaker.save((FOUND,), 0)
        await circuit.breaker.unlock(ORIGIN)
    assert circuit.store.calls == 2  # one before, one that failed
    circuit.now += PAUSE
    assert await circuit.breaker.load(ORIGIN) == ()
    assert await circuit.breaker.load(ORIGIN) == ()
    assert circuit.store.calls == 3
    circuit.store.mood = None
    monkeypatch.setattr(circuit_breaker, "TIMEOUT", TIMEOUT)
    circuit.now += PAUSE + TIMEOUT
    assert await circuit.breaker.load(ORIGIN) == (FOUND,)
    assert await circuit.breaker.lock(ORIGIN, 60) == (False, (LOST,))
    await circuit.breaker.save((FOUND,), 0)
    await circuit.breaker.unlock(ORIGIN)
    assert circuit.store.calls == 3 + 4
    why = r"OSError: disk is on \x1b[31mfire" if mood is fail else "TimeoutError: no answer within 0.05 s"
    assert [record.getMessage() for record in caplog.records] == [
        f"the store failed ({why}): {CONTINUES}",
        "the store works again and is in use",
    ]
    assert circuit.failures == 2


async def test_simultaneous_failures_are_one_warning(
    circuit: Circuit, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(circuit_breaker, "TIMEOUT", 0.05)
    circuit.store.mood = hang
    assert await asyncio.gather(*(circuit.breaker.load(ORIGIN) for _ in range(30))) == [()] * 30
    circuit.now += PAUSE
    circuit.store.calls = 0
    await asyncio.gather(*(circuit.breaker.load(ORIGIN) for _ in range(30)))
    assert circuit.store.calls == 1  # one call tests the store, the others do not wait for it
    assert len(caplog.records) == 1


async def test_a_read_only_store_recovers_when_it_can_be_written(
    circuit: Circuit, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(5):
        circuit.store.mood = None
        assert await circuit.breaker.load(ORIGIN) == (FOUND,)
        circuit.store.mood = fail
        await circuit.breaker.save((FOUND,), 0)
        circuit.now += PAUSE + TIMEOUT
    circuit.store.mood = None
    await circuit.breaker.load(ORIGIN)
    assert len(caplog.records) == 1
    await circuit.breaker.save((FOUND,), 0)
    assert [record.getMessage().rpartition("store ")[2][:5] for record in caplog.records] == [
        "faile",
        "works",
    ]
    assert circuit.failures == 5


async def test_an_unlock_that_failed_does_not_keep_a_store_from_use(
    circuit: Circuit, caplog: pytest.LogCaptureFixture
) -> None:
    """A crawl may never unlock again."""
    circuit.store.mood = fail
    await circuit.breaker.unlock(ORIGIN)
    circuit.now += PAUSE
    circuit.store.mood = None
    assert await circuit.breaker.load(ORIGIN) == (FOUND,)
    assert await circuit.breaker.lock(ORIGIN, 60) == (False, (LOST,))
    circuit.store.mood = lambda: asyncio.sleep(0)
    assert await asyncio.gather(*(circuit.breaker.load(ORIGIN) for _ in range(3))) == [(FOUND,)] * 3
    assert caplog.messages[-1] == "the store works again and is in use"


async def test_a_call_that_is_cancelled_is_no_failure(circuit: Circuit) -> None:
    """Where asyncio does not run, Twisted's exception cancels the extension of a lock."""

    async def cancelled() -> None:
        raise CancelledError

    circuit.store.mood = cancelled
    with pytest.raises(CancelledError):
        await circuit.breaker.lock(ORIGIN, 60)
    circuit.store.mood = None
    assert await circuit.breaker.load(ORIGIN) == (FOUND,)
    assert circuit.failures == 0


async def test_a_call_that_took_too_long_leaves_its_task_not_cancelled(
    circuit: Circuit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(circuit_breaker, "TIMEOUT", 0.01)
    circuit.store.mood = hang
    assert await circuit.breaker.load(ORIGIN) == ()
    assert not getattr(asyncio.current_task(), "cancelling", int)()  # from Python 3.11 on


async def test_a_closed_store_is_not_called(circuit: Circuit) -> None:
    await circuit.breaker.close()
    assert await circuit.breaker.load(ORIGIN) == ()
    circuit.store.mood = fail
    await circuit.breaker.close()
    assert circuit.store.calls == 2
    assert circuit.failures == 0
