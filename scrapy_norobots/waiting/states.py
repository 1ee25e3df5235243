"""Where a request is: the table of its states, and a record for each that waits or that the engine has.

A request has one owner at a time: the user's scheduler, `Parking`, or the engine.
`STATES` has a row for each state, with what ends it and where the request is then.
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
    """The state of a request. The value says who has the request, and why."""

    SCHEDULED = "in the user's scheduler, or in a queue behind it"
    LOADING = "parked, until its robots.txt has been loaded"
    CLOSED = "parked, because its site is temporarily closed"
    IN_LINE = "parked, until its download slot can send it and there is a place"
    SENT = "the engine has it"
    GIVEN_BACK = "the middleware has returned it, and it is on its way back"


# What ends each state, by the state that follows.
STATES: Mapping[State, Mapping[State, str]] = MappingProxyType(
    {
        State.SCHEDULED: {
            State.LOADING: "it is next, and its robots.txt must be loaded, or its site is closed",
            State.IN_LINE: "it is next, and its slot cannot send it, or there is no place",
            State.SENT: "it is next",
        },
        State.LOADING: {
            State.CLOSED: "its site is temporarily closed, and robots.txt will be downloaded again",
            State.IN_LINE: "robots.txt has been loaded",
            State.SCHEDULED: "the crawl closes",
        },
        State.CLOSED: {
            State.IN_LINE: "the site is open, or all retries have failed",
            State.SCHEDULED: "the crawl closes",
        },
        State.IN_LINE: {
            State.LOADING: "its rules have expired",
            State.SENT: "its slot can send it",
            State.GIVEN_BACK: "it is *held*, and its rules are out of date, or the crawl closes",
            State.SCHEDULED: "the crawl closes",
        },
        State.SENT: {
            State.GIVEN_BACK: "its site has been closed since",
            State.IN_LINE: "no middleware has answered it, and its slot cannot send it yet: it is *held*",
        },
        State.GIVEN_BACK: {State.LOADING: "it has come to the scheduler"},
    }
)


@dataclass(slots=True, eq=False)
class Parked:
    """A request that waits, `LOADING`, `CLOSED` or `IN_LINE`, or that the engine has, `SENT` or `GIVEN_BACK`.

    `number` grows with each request that begins to wait. `slot` is where it is to be sent, or has been: a
    middleware may change the slot in its meta. It is None if the request needs no download slot.
    `has_reloaded` is true if it had to wait again, because its rules had expired. `is_given_up` is true after
    the last retry of its site has failed. `gate` is fired when a request may be sent that waits in the
    downloader, after the middlewares. `access` is expired, and judges it nevertheless. `error` is what a bug
    has raised about it while it waited.
    """

    request: Request
    question: Question | None
    slot: Any | None
    number: int
    state: State
    has_reloaded: bool = False
    is_given_up: bool = False
    gate: Deferred[None] | None = None
    access: Access | None = None
    error: Exception | None = None

    @property
    def priority(self) -> int:
        """The priority of the request."""
        priority: int = self.request.priority
        return priority

    def move(self, to: State) -> None:
        """Change the state, as `STATES` says."""
        assert to in STATES[self.state], f"{self.request} moves from {self.state} to {to}"
        self.state = to
