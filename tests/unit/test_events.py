"""`Events`: who gets an event, in which order."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from scrapy import Request

from scrapy_norobots.events import Asked, Events, LeftWaiting, NoRoomToWait, Received

REQUEST = Request("http://town.example/")


def test_subscribers_get_the_events_of_their_kind_in_the_order_of_their_subscriptions() -> None:
    events = Events()
    seen: list[Any] = []

    def note(number: int, event: object) -> None:
        seen.append((number, event))

    for number in range(3):
        events.on(Received, partial(note, number))
    events.on(LeftWaiting, seen.append)
    events.send(Received(REQUEST))
    events.send(NoRoomToWait(REQUEST, 3))
    assert seen == [(number, Received(REQUEST)) for number in range(3)]


def test_coroutine_functions_are_awaited_one_after_another() -> None:
    events = Events()
    seen: list[str] = []

    async def slow(event: Received) -> None:
        await asyncio.sleep(0)
        seen.append("slow")

    events.on_awaited(Received, slow)
    events.on(Received, lambda _: seen.append("fast"))
    asyncio.run(events.tell(Received(REQUEST)))
    assert seen == ["slow", "fast"]


def test_the_first_answer_counts() -> None:
    events = Events()
    answers = iter([None, 1, 2])
    for _ in range(3):
        events.on(Asked, lambda _: next(answers))
    assert events.ask(Asked(REQUEST)) == 1
    assert Events().ask(Asked(REQUEST)) is None


def test_an_exception_is_not_caught() -> None:
    events = Events()
    seen: list[object] = []

    def fail(_: object) -> None:
        raise ZeroDivisionError

    events.on(Received, fail)
    events.on(Received, seen.append)
    for send in (events.send, lambda event: asyncio.run(events.tell(event)), events.ask):
        with pytest.raises(ZeroDivisionError):
            send(Received(REQUEST))
    assert not seen
