"""`STATES`: the table of where a request is, and what ends it."""

from __future__ import annotations

import pytest
from scrapy import Request

from scrapy_norobots.waiting.states import STATES, Parked, State


def parked(state: State) -> Parked:
    return Parked(Request("http://town.example/"), None, None, 0, state)


@pytest.mark.parametrize("state", State)
def test_a_request_that_waits_moves_only_as_the_table_says(state: State) -> None:
    for to in State:
        request = parked(state)
        if to in STATES[state]:
            request.move(to)
            assert request.state is to
        else:
            with pytest.raises(AssertionError, match="moves from"):
                request.move(to)


def test_every_state_can_be_reached_and_none_keeps_a_request() -> None:
    reached = {to for follows in STATES.values() for to in follows}
    assert reached == set(State) == set(STATES)
    assert all(STATES[state] for state in State)
