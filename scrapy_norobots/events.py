"""The events of a crawl: what the core tells the features, and how they subscribe.

The core is the middleware, the loader with its fetcher, and the requests that wait. It sends events, and
knows no feature: `features` has the list of those that subscribe. An event is sent when the core has decided,
and before it acts. An exception of a feature stops the request that the event is about, and is not hidden; it
never lets a request pass. No feature changes a decision.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

    from scrapy_norobots.exceptions import RobotsForbidden
    from scrapy_norobots.load.origins import OriginCache
    from scrapy_norobots.question import Question
    from scrapy_norobots.rules.access import Access
    from scrapy_norobots.rules.snapshot import Snapshot
    from scrapy_norobots.standard import Decision, Origin, Reason

_E = TypeVar("_E")


class Opened(NamedTuple):
    """The middleware is ready. `ask` returns the question of a request; `drop` drops a request.

    `middleware` is None if it is of a subclass, which may do more with a request than the core knows.
    """

    middleware: object | None
    ask: Callable[[Request], Question | Decision]
    origins: OriginCache
    drop: Callable[[Request, Question, Decision, Access], None]


# Requests


class Received(NamedTuple):
    """A request has come to the middleware, which has not looked at it yet."""

    request: Request


class Asked(NamedTuple):
    """A request asks for a robots.txt itself.

    A subscriber returns a function that makes its response from the access to the origin, which the core
    loads. If there is none, or if the function returns None, the request is sent.
    """

    request: Request


class Ruled(NamedTuple):
    """The access by which a request is judged is known, in the middleware."""

    request: Request
    question: Question
    access: Access


class Passed(NamedTuple):
    """A request passes."""

    request: Request
    question: Question
    access: Access


class Exempt(NamedTuple):
    """A request passes without a robots.txt, for a `reason`; None: `dont_obey_robotstxt` overrides it."""

    request: Request
    url: str
    robot: str | bytes
    reason: Reason | None


class Dropped(NamedTuple):
    """A request is dropped; in a dry run, it would be. `url` is the URL that was checked.

    `access` is None for a URL without an origin.
    """

    request: Request
    url: str
    robot: str | bytes
    error: RobotsForbidden
    access: Access | None


# Requests that wait for a closed site


class Waits(NamedTuple):
    """A request waits for some seconds. `is_first` is true if no other waits for this origin."""

    request: Request
    origin: Origin
    seconds: float
    is_first: bool


class RetryFailed(NamedTuple):
    """An origin is still closed. Its requests wait for `seconds` more; None: they are dropped."""

    access: Access
    seconds: float | None


class WaitEnded(NamedTuple):
    """A request has waited: its origin is no longer closed, or the request is given up."""

    request: Request
    is_given_up: bool


class LeftWaiting(NamedTuple):
    """A request goes back to the scheduler, because the crawl closes."""

    request: Request


class NoRoomToWait(NamedTuple):
    """A request is dropped, because `most` others wait."""

    request: Request
    most: int


# robots.txt


class StatementsAsked(NamedTuple):
    """The core asks, once, what reads statements about the use of pages from a robots.txt.

    A subscriber returns a function from a body to `Statements`, which every decision then asks too. It can
    forbid what the rules allow, and cannot allow what they forbid.
    """


class Answered(NamedTuple):
    """A request for a robots.txt was answered.

    `snapshot` is the outcome of the download if this is the last hop; `previous` is the copy that a 304
    renews.
    """

    origin: Origin
    response: Response
    snapshot: Snapshot | None
    previous: Snapshot | None


class Downloaded(NamedTuple):
    """A download has ended, and was judged."""

    snapshot: Snapshot


class Recalled(NamedTuple):
    """The store had newer snapshots than the memory."""

    snapshots: Sequence[Snapshot]


class OriginLoaded(NamedTuple):
    """An origin was loaded for a request, and `robot`.

    `previous` is the access that it replaces: None for a new origin, and for one that memory had no room for.
    After a 304, and while old rules stay in use because a download failed, `access` has the rules of
    `previous`. `source` is ``network`` or ``store``, `seconds` the time that it took.
    """

    access: Access
    previous: Access | None
    source: str
    seconds: float
    request: Request
    robot: str | bytes

    @property
    def is_new(self) -> bool:
        """Whether the origin had no rules before."""
        return self.previous is None or self.previous.rules is None


class CrawlDelayKept(NamedTuple):
    """The `Crawl-delay` that is kept for an origin, in seconds; `is_new` as in `OriginLoaded`."""

    origin: Origin
    seconds: float
    is_new: bool


class UsageStated(NamedTuple):
    """A robots.txt of an origin that had no rules states something about the use of pages, in few words."""

    origin: Origin
    stated: frozenset[str]


class Closing(NamedTuple):
    """The crawl has ended. `robot` is that of requests without a User-Agent of their own."""

    reason: str
    origins: OriginCache
    robot: str | bytes


class Events:
    """The subscriptions of one crawl. Functions are called in the order in which they subscribe.

    `started` is the start of the crawl, in UTC.
    """

    def __init__(self) -> None:
        self.started = datetime.now(timezone.utc)
        self._functions: dict[type, tuple[Callable[[Any], Any], ...]] = {}

    def on(self, kind: type[_E], function: Callable[[_E], object]) -> None:
        """Call a function with each event of a kind. It must not block."""
        self._functions[kind] = (*self._functions.get(kind, ()), function)

    def on_awaited(self, kind: type[_E], function: Callable[[_E], Awaitable[object]]) -> None:
        """Await a coroutine function with each event of a kind that `tell` sends."""
        self.on(kind, function)

    def send(self, event: object) -> None:
        """Call all functions that have subscribed to the kind of an event."""
        for function in self._functions.get(type(event), ()):
            function(event)

    async def tell(self, event: object) -> None:
        """Do the same, and await the coroutine functions: `OriginLoaded` and `Closing` are sent so."""
        for function in self._functions.get(type(event), ()):
            result = function(event)
            if result is not None:
                await result

    def ask(self, event: object) -> Any:
        """Return the first result that is not None; `Asked` is sent so."""
        results = (function(event) for function in self._functions.get(type(event), ()))
        return next((result for result in results if result is not None), None)
