"""The events of a crawl: what the core tells the features, or asks them, and how they subscribe.

The core is the middleware, `load` and `waiting`.

An event about a decision is sent when the core has decided, and before it acts. An exception of a feature
stops the request that the event is about, and is not hidden. No feature lets a forbidden request pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

    from scrapy_norobots.exceptions import RobotsForbidden
    from scrapy_norobots.question import Question
    from scrapy_norobots.rules.access import Access, OriginCache
    from scrapy_norobots.rules.snapshot import Snapshot
    from scrapy_norobots.standard import Decision, Origin, Reason

P = ParamSpec("P")


class Event(Generic[P]):
    """One kind of event. Functions are called in the order in which they subscribe, and must not block."""

    _functions: tuple[Callable[P, Any], ...] = ()

    def connect(self, function: Callable[P, object]) -> None:
        """Call a function with each event of this kind."""
        self._functions = (*self._functions, function)

    def send(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call all functions."""
        for function in self._functions:
            function(*args, **kwargs)

    async def tell(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Do the same, and await those that are coroutine functions."""
        for function in self._functions:
            result = function(*args, **kwargs)
            if result is not None:
                await result

    def ask(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Return the first result that is not None."""
        for function in self._functions:
            result = function(*args, **kwargs)
            if result is not None:
                return result
        return None


class Waits(NamedTuple):
    """What waits: requests to closed sites, and to sites whose robots.txt takes long to load.

    `next_try` is the time to the next download of the robots.txt of a closed site, in seconds.
    """

    requests: int
    closed_sites: int
    loading_sites: int
    next_try: float | None


class Core(NamedTuple):
    """What features may ask of the middleware; `middleware` is None if it is of a subclass."""

    middleware: object | None
    ask: Callable[[Request], Question | Decision]
    origins: OriginCache
    drop: Callable[[Request, Question, Decision, Access], None]
    waits: Callable[[], Waits | None]


class Load(NamedTuple):
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


class Events:
    """The events of one crawl. `started` is the start of the crawl, in UTC. A robot is as in `Question`."""

    def __init__(self) -> None:
        self.started = datetime.now(timezone.utc)
        # The middleware is ready.
        self.opened: Event[[Core]] = Event()
        # Asked once: what reads statements about the use of pages from a body, which every decision then asks
        # too. It can forbid what the rules allow, and cannot allow what they forbid.
        self.statements: Event[[]] = Event()
        # The crawl has ended: the reason, the origins in memory, and the robot of requests without a
        # User-Agent of their own. Only this event and `loaded` await handlers that are coroutine functions.
        self.closing: Event[[str, OriginCache, str | bytes]] = Event()

        # A request has come to `RobotsScheduler`; `IgnoreRequest` drops it.
        self.scheduled: Event[[Request]] = Event()
        # A request has come to the middleware; it passes.
        self.received: Event[[Request]] = Event()
        self.passed: Event[[Request, Question, Access]] = Event()
        # It passes without a robots.txt: the URL, the robot, and why; None: `dont_obey_robotstxt`.
        self.exempt: Event[[Request, str, str | bytes, Reason | None]] = Event()
        # It is dropped, by rules or because its site is closed (in a dry run, it would be); early drops send
        # this too. The URL that was checked, the robot, and the access, if the URL has an origin.
        self.dropped: Event[[Request, str, str | bytes, RobotsForbidden, Access | None]] = Event()
        # A request asks for a robots.txt itself: a function that makes its response from the access.
        self.asked: Event[[Request]] = Event()

        # A request to a closed site has "waited" (begins to), "came_back" or is "given_up" (has waited, and
        # is dropped), is "left" (goes back to the scheduler, as the crawl closes), or there is "no_room".
        self.wait: Event[[Request, str]] = Event()
        # Requests to a site wait for some seconds; None: no longer. Whether they have just begun to wait.
        self.site_waits: Event[[Access, float | None, bool]] = Event()

        # A request for a robots.txt was answered: the outcome of the download if this is the last hop, and
        # the copy that a 304 renews.
        self.answered: Event[[Origin, Response, Snapshot | None, Snapshot | None]] = Event()
        # A download has ended, and was judged. The store had newer snapshots than the memory. An origin has
        # been loaded, after these.
        self.downloaded: Event[[Snapshot]] = Event()
        self.recalled: Event[[Sequence[Snapshot]]] = Event()
        self.loaded: Event[[Load]] = Event()
