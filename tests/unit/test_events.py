"""`Event`: which functions are called, and in which order."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from scrapy import Request

from scrapy_norobots.events import Events

REQUEST = Request("http://town.example/")


def test_functions_are_called_in_the_order_in_which_they_subscribe() -> None:
    events = Events()
    seen: list[tuple[int, Request]] = []
    for number in range(3):
        events.received.connect(partial(lambda number, request: seen.append((number, request)), number))
    events.asked.connect(lambda request: seen.append((3, request)))
    events.received.send(REQUEST)
    assert seen == [(number, REQUEST) for number in range(3)]


def test_coroutine_functions_are_awaited_one_after_another() -> None:
    events = Events()
    seen: list[str] = []

    async def slow(_: Request) -> None:
        await asyncio.sleep(0)
        seen.append("slow")

    events.received.connect(slow)
    events.received.connect(lambda _: seen.append("fast"))
    asyncio.run(events.received.tell(REQUEST))
    assert seen == ["slow", "fast"]


def test_the_first_answer_is_returned() -> None:
    events = Events()
    answers = iter([None, 1, 2])
    for _ in range(3):
        events.asked.connect(lambda _: next(answers))
    assert events.asked.ask(REQUEST) == 1
    assert Events().asked.ask(REQUEST) is None


def test_an_exception_is_not_caught() -> None:
    events = Events()
    seen: list[object] = []

    def fail(_: object) -> None:
        raise ZeroDivisionError

    events.received.connect(fail)
    events.received.connect(seen.append)
    event = events.received
    for send in (event.send, lambda request: asyncio.run(event.tell(request)), event.ask):
        with pytest.raises(ZeroDivisionError):
            send(REQUEST)
    assert not seen
