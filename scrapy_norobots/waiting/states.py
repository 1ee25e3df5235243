"""Where a request is: the table of its states, and `Parked`, a request that waits or that the engine has.

A request has one owner at a time: the user's scheduler, `Parking`, or the engine, which also owns what
`Parking` holds. `STATES` has a row for each state, with what ends it and where the request is then. A request
in the user's scheduler has no `Parked`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy import Request
    from twisted.internet.defer import Deferred

    from scrapy_norobots.question import Question
    from scrapy_norobots.rules.access import Access


class State(Enum):
    """The state of a request. The value goes on after "the request", and says why."""

    __hash__ = object.__hash__  # that of `Enum` is slower

    SCHEDULED = "is in the user's scheduler, or in a queue behind it"
    LOADING = "is parked, because its robots.txt is being loaded"
    CLOSED = "is parked, because its site is temporarily closed"
    IN_LINE = "is parked, because its download slot cannot send it yet, or there is no free place"
    SENT = "is in the engine"
    GIVEN_BACK = "was returned by the middleware, and is on its way back to the scheduler"


# What ends each state, by the state that follows.
STATES: Mapping[State, Mapping[State, str]] = MappingProxyType(
    {
        State.SCHEDULED: {
            State.LOADING: "its robots.txt must be loaded, or its site is closed",
            State.IN_LINE: "its slot cannot send it yet",
            State.SENT: "nothing keeps it",
        },
        State.LOADING: {
            State.CLOSED: "its site is temporarily closed",
            State.IN_LINE: "robots.txt has been loaded",
            State.SCHEDULED: "the crawl closes",
        },
        State.CLOSED: {
            State.IN_LINE: "its site is no longer closed, or all retries have failed",
            State.SCHEDULED: "the crawl closes",
        },
        State.IN_LINE: {
            State.LOADING: "its rules have expired",
            State.SENT: "its slot can send it, and there is a free place",
            State.GIVEN_BACK: "it is *held*, and its rules are out of date, or the crawl closes",
            State.SCHEDULED: "the crawl closes",
        },
        State.SENT: {
            State.GIVEN_BACK: "its site has been closed since",
            State.IN_LINE: "its slot cannot send it yet: it is *held*",
        },
        State.GIVEN_BACK: {State.LOADING: "it has come back to the scheduler"},
    }
)


@dataclass(slots=True, eq=False)
class Parked:
    """A request that waits, `LOADING`, `CLOSED` or `IN_LINE`, or that the engine has, `SENT` or `GIVEN_BACK`.

    `number` grows with each request that begins to wait. `slot` is where it is to be sent, unless a
    middleware changes that. It is None if the request needs no download slot. `key` is that of the requests
    that wait until this one has been answered. `is_given_up` is true after the last retry of its site has
    failed. `gate` is fired when a request may be sent that waits in the downloader, after the middlewares.
    `access` is of the load that it caused, see `Sites`. `error` is what a bug raised while it waited.
    """

    request: Request
    question: Question | None
    slot: Any | None
    number: int
    state: State
    key: object = None
    is_given_up: bool = False
    gate: Deferred[None] | None = None
    access: Access | None = None
    error: Exception | None = None

    def move(self, to: State) -> None:
        """Change the state, as `STATES` says."""
        assert to in STATES[self.state], f"{self.request} moves from {self.state} to {to}"
        self.state = to
