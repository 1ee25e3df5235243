"""`Parking`: the requests of one crawl that wait, for robots.txt, a closed site or a download slot.

It says which request is sent next, and remembers those that the engine has. A request whose robots.txt is not
in memory steps aside, and keeps its order among the requests of its site. The next one is then looked for
behind it, within bounds, so that the files of further sites are loaded meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import chain, count
from time import monotonic
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import IgnoreRequest
from twisted.internet.defer import Deferred

from scrapy_norobots.exceptions import RobotsUnreachable
from scrapy_norobots.question import is_overridden
from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.waiting.sites import LoadLimits, Sites
from scrapy_norobots.waiting.slot_lines import Lines, Slots
from scrapy_norobots.waiting.states import Parked, State

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_norobots.middleware import NoRobotsMiddleware
    from scrapy_norobots.question import Question
    from scrapy_norobots.rules.access import Access
    from scrapy_norobots.waiting.source import Source

# How many requests may wait in all, beside those of closed sites. A site whose robots.txt is loaded gets at
# most half of what is left. A scheduler that is not Scrapy's may share its requests with other processes.
_WAITING_MAX, _SHARED_WAITING_MAX = 100_000, 10_000

# How many requests that the engine has are remembered if the downloader does not say when they leave.
_REMEMBERED = 10_000

# How often to look whether the crawl closes or stands still, in seconds: Scrapy has no signal for either. How
# many requests are parked before the event loop has its turn again.
_LOOK_INTERVAL, _AT_ONCE = 1.0, 100

# With one place, the order of requests counts, so that the crawl waits for a robots.txt before it takes the
# next request; but no longer than so many seconds. It takes none while one alone waits for its slot, either.
_ORDER_PATIENCE = 1.0


class Parking:
    """The requests that wait. They come from `source`. At most `most_loads` files are loaded at a time."""

    def __init__(
        self,
        crawler: Crawler,
        middleware: NoRobotsMiddleware,
        source: Source,
        slots: Slots,
        *,
        most_loads: int,
    ) -> None:
        self._crawler = crawler
        self._source = source
        self.slots = slots
        self._events = middleware.events
        self._events.dropped.connect(self._dropped)
        self._waits_for, self._forbids = middleware.waits_for, middleware.forbids
        self._loads = middleware.loader.loads  # those in flight
        places = crawler.settings.getint("CONCURRENT_REQUESTS")
        self._keeps_order = places == 1
        self._most = _WAITING_MAX if source.is_scrapys else _SHARED_WAITING_MAX
        self.sent: dict[Request, Parked] = {}  # what the engine has, until it leaves or comes back
        self._most_sent = math.inf if slots.are_watched else _REMEMBERED
        self._has_cache = slots.are_watched and crawler.settings.getbool("HTTPCACHE_ENABLED")
        self._wake = partial(compat.look_for_next_request, crawler)
        self.lines = Lines(slots, self._wake, places=places)
        self._limits = LoadLimits(slots, most_loads, self.lines.of_slots.__contains__)
        self._sites = Sites(crawler, middleware.loader, self._limits, self._release, tries=middleware.retries)
        self._parked: set[Request] = set()
        self.held: dict[Request, Parked] = {}  # those that the downloader has
        self.waits = self._sites.waits
        self._numbers = count(1)
        self._paused_until = 0.0
        self._stop_watching: Callable[[], object] | None = None

    def __len__(self) -> int:
        return len(self._parked)

    @property
    def is_only_for_closed_sites(self) -> bool:
        """Whether requests wait, and all of them for sites that are temporarily closed."""
        return 0 < len(self._parked) == self._sites.closed_count

    # For the scheduler

    def next(self) -> Request | None:
        """Return the next request to be sent; None if there is none for now."""
        if self._stop_watching is None:
            self._watch()
        ready = self._first() if self.lines.of_slots else None
        if not self.lines.extra_places and (
            ready is None or ready.request.priority < self._source.highest_priority
        ):
            pulled = self._pull()
            ready = self._first() if self.lines.of_slots else None
            if pulled is not None:
                # One that was held may have got the last place.
                if (
                    ready is None or pulled.request.priority > ready.request.priority
                ) and self.slots.has_place():
                    return self._go(pulled)
                self._join(pulled)
        if ready is None:
            return None
        self._leave(ready)
        self.lines.remove(ready)
        self._resume()
        return self._go(ready)

    def take_back(self, request: Request) -> bool:
        """Park a request that the middleware has given back; return whether it has."""
        sent = self.sent.get(request)
        if sent is None or sent.state is not State.GIVEN_BACK:
            return False
        del self.sent[request]
        if request in self._parked:  # it was held until the crawl closed
            return True
        sent.question, sent.slot = self._waits_for(request) or sent.question, self.slots.of(request)
        self._enter(sent, State.LOADING)
        if compat.is_closing(self._crawler):
            sent.move(State.CLOSED)
            self._events.wait.send(request, "waited")
            self.lines.add(sent)
        else:
            self._sites.wait(sent)
        return True

    def add(self, request: Request) -> bool:
        """Give a new request to the source; return whether it was accepted."""
        if self._paused_until and self.slots.has_place() and not self.lines.is_long(self.slots.of(request)):
            self._resume()  # its slot may be able to send
        return self._source.add(request)

    def clear(self) -> list[Parked]:
        """Let nothing wait any longer, because the crawl closes; return all requests, in order."""
        if self._stop_watching is not None:
            self._stop_watching()
        waiting = sorted(chain(self._sites.clear(), self.lines.clear()), key=lambda parked: parked.number)
        for parked in waiting:
            self._leave(parked)
        return waiting

    # For the downloader

    def has_nothing_to_do(self) -> bool:
        """Return whether the engine need not ask for a request, though there is a place."""
        return not self._may_pull() and not (self.lines.of_slots and self.lines.first())

    def hold(self, request: Request) -> Deferred[None] | None:
        """Let a request wait that has passed the middlewares, without a place; None if it is sent now.

        The result is fired when it can be sent, or when it has been given back because the crawl closes.
        Raises `IgnoreRequest` if the middleware has given it back, and a subclass has ignored that.
        """
        sent = self.sent.get(request)
        if sent is None or sent.state is not State.SENT or self.lines.may_reach(request, sent.slot):
            if not self.reach(request):
                self.lines.let_repeats_go(self.sent.pop(request))
                raise IgnoreRequest("the request waits until robots.txt is downloaded again")
            return None
        gate: Deferred[None] = Deferred()
        question = self._waits_for(request)
        if question is not None and self._forbids(question):  # but a subclass lets it pass
            question = None
        sent.question, sent.gate = question, gate
        self._enter(sent, State.IN_LINE)
        self.held[request] = sent
        self.lines.add(sent)
        self._wake()
        return gate

    def _let_go(self, parked: Parked, gate: Deferred[None], *, is_allowed: bool) -> None:
        """Let the downloader send a request that has waited there, or give it back if it is not allowed."""
        del self.held[parked.request]
        self._leave(parked)
        self.lines.remove(parked)
        parked.move(State.SENT if is_allowed else State.GIVEN_BACK)
        if is_allowed:
            self.lines.expect(parked.request, parked.slot)
        parked.gate = None
        gate.callback(None)

    def _watch(self) -> None:
        """Once a second, let requests go on that would wait for ever.

        A request that middlewares keep for long no longer counts in its slot, and no equal one waits for it.
        If they keep all requests that have places for some seconds, one goes without, while one in line has
        been overtaken: they may wait for that, and Scrapy would have given it a place. When the crawl closes,
        the downloader gives back what it holds.
        """
        self._stop_watching = compat.call_later(_LOOK_INTERVAL, self._watch)
        for request, slot in self.lines.late().items():
            self.lines.let_repeats_go(self.sent.get(request))
            self._has_moved(slot)
            self.lines.no_longer_comes(request)
        if compat.is_closing(self._crawler):
            held, self.held = self.held, {}
            for parked in held.values():  # which stay in line until the scheduler closes
                parked.move(State.GIVEN_BACK)
                assert parked.gate is not None  # it is held
                parked.gate.callback(None)
        else:
            self.lines.look_at_places(max((sent.number for sent in self.sent.values()), default=0))
        if self.lines.of_slots:
            self._wake()

    def reach(self, request: Request) -> bool:
        """Take note that a request has reached its slot; return False if it has been given back."""
        sent, slot = self.sent.get(request), self.slots.of(request)
        if sent is not None and sent.state is State.GIVEN_BACK:
            return False
        self.lines.no_longer_comes(request, slot)
        self._has_moved(slot if sent is None else sent.slot)
        return True

    def removed(self, request: Request, slot: Any | None) -> None:
        """Take note that Scrapy has removed a request from a slot, and goes on with the response."""
        self.lines.look(slot)
        self.lines.let_repeats_go(self.sent.get(request))

    def leave(self, request: Request) -> None:
        """Take note that a request has left the downloader, and forget it unless it comes back."""
        sent = self.sent.get(request)
        slot = self.slots.of(request) if sent is None else sent.slot
        self.lines.let_repeats_go(sent)
        if sent is not None and sent.state is not State.GIVEN_BACK:
            del self.sent[request]
            if sent.is_given_up:  # but it was not dropped
                self._events.wait.send(request, "came_back")
        self._has_moved(slot, is_page=request in self.lines.coming or request in self.sent)
        self.lines.no_longer_comes(request)

    def _has_moved(self, slot: Any | None, *, is_page: bool = True) -> None:
        if self._paused_until and not self.lines.is_long(slot):
            self._resume()
        if is_page and slot in self._limits.by_slot:
            self._limits.page_has_left(slot)

    def _dropped(self, request: Request, _url: str, _robot: str | bytes, error: Exception, _: object) -> None:
        sent = self.sent.get(request)
        if sent is not None and sent.is_given_up and isinstance(error, RobotsUnreachable):
            sent.is_given_up = False
            self._events.wait.send(request, "given_up")

    # For the middleware

    def access_of(self, request: Request) -> Access | None:
        """Return the access that a request has waited for, unless a load runs; raise a bug's exception."""
        sent = self.sent.get(request)
        access = None if sent is None else sent.access
        if sent is not None and sent.error is not None:
            raise sent.error
        return None if access is None or access.snapshot.origin in self._loads else access

    def gives_back(self, request: Request, access: Access) -> bool:
        """Return whether a request to a closed site waits here; if so, the middleware returns it to Scrapy.

        Only a request that the engine got from here may wait; other code waits for any other one.
        """
        sent = self.sent.get(request)
        if sent is None or sent.state is not State.SENT:
            return False
        if not compat.is_closing(self._crawler):
            if not self._sites.is_retried(request, access):
                return False
            if not self._sites.has_room():
                self._events.wait.send(request, "no_room")
                return False
        sent.move(State.GIVEN_BACK)
        return True

    # Requests that wait

    def _pull(self) -> Parked | None:
        """Return the first request of the source that need not wait; park those before it."""
        for _ in range(_AT_ONCE):
            if not self._may_pull() or (request := self._source.take()) is None:
                return None
            if request in self.sent or request in self._parked:
                request = request.copy()  # a spider may yield the same object twice
            pulled = self._new(request, self._waits_for(request), State.SCHEDULED)
            if not self._must_wait(pulled):
                return pulled
        self._wake()
        return None

    def _must_wait(self, pulled: Parked) -> bool:
        """Let a request of the source wait, and return True, if it must."""
        if pulled.question is not None and self._sites.must_wait(pulled.request, pulled.question):
            self._enter(pulled, State.LOADING)
            self._park(pulled)
            return True
        if self.lines.may_pass(pulled.slot):
            return False
        self._join(pulled)
        return True

    def _may_pull(self) -> bool:
        if self._paused_until and self._paused_until > monotonic():
            return False
        if self._keeps_order and not self._has_cache and self.lines.has_one_alone():
            return False
        return len(self._parked) - self._sites.closed_count < self._most

    def _park(self, parked: Parked) -> None:
        if not (waiting := self._sites.wait(parked)):
            return
        left = self._most - len(self._parked) + self._sites.closed_count
        if waiting > left // 2:
            self._paused_until = math.inf
        elif self._keeps_order:
            self._paused_until = monotonic() + _ORDER_PATIENCE
            compat.call_later(_ORDER_PATIENCE, self._wake)

    def _join(self, parked: Parked) -> None:
        """Let a request wait until others of its slot have gone, for a delay, or for a place."""
        self._enter(parked, State.IN_LINE)
        self.lines.add(parked)
        if self.lines.is_long(parked.slot):
            self._paused_until = math.inf

    def _new(self, request: Request, question: Question | None, state: State) -> Parked:
        return Parked(request, question, self.slots.of(request), next(self._numbers), state)

    def _enter(self, parked: Parked, state: State) -> None:
        parked.move(state)
        self._parked.add(parked.request)
        self.slots.enter(parked.slot, parked.request)

    def _leave(self, parked: Parked) -> None:
        self._parked.discard(parked.request)
        self.slots.leave(parked.slot, parked.request)

    def _go(self, parked: Parked) -> Request:
        parked.move(State.SENT)
        self.lines.expect(parked.request, parked.slot)
        self.sent[parked.request] = parked
        if len(self.sent) > self._most_sent:
            del self.sent[next(iter(self.sent))]
        return parked.request

    def _release(self, waiting: list[Parked]) -> None:
        """Let requests go on that need not wait for their site any longer."""
        for parked in waiting:
            parked.move(State.IN_LINE)
            if parked.question is not None and self._forbids(parked.question):
                # It will be dropped, and need not wait for its slot, nor for others.
                self.slots.leave(parked.slot, parked.request)
                parked.slot = None
            elif self._has_cache and not parked.request.meta.get("dont_cache"):
                self.lines.add_once(parked)
                continue
            self.lines.add(parked)
        self._paused_until = 0.0
        self._wake()

    def _first(self) -> Parked | None:
        """Return the next request in line. Let those that are held go; let expired rules be loaded again."""
        while self.slots.has_place() and (parked := self.lines.first()) is not None:
            # It may be exempt since it began to wait.
            question = None if is_overridden(parked.request) else parked.question
            may_go = (
                question is None
                or parked.error is not None
                or not self._sites.must_wait(parked.request, question)
                or (parked.access is not None and question.origin not in self._loads)
            )
            if parked.gate is not None:
                is_forbidden = question is not None and self._forbids(question)
                self._let_go(parked, parked.gate, is_allowed=may_go and not is_forbidden)
                continue
            if may_go:
                return parked
            assert question is not None  # else it may go
            self.lines.remove(parked)
            self.lines.let_repeats_go(parked)
            parked.move(State.LOADING)
            self._has_moved(parked.slot)
            self._sites.wait(parked)
        return None

    def _resume(self) -> None:
        """Take requests again, if the search has paused until something moves."""
        if self._paused_until == math.inf:
            self._paused_until = 0.0
