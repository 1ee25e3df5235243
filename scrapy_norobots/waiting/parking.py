"""`Parking`: the requests of one crawl that wait for robots.txt, and which request is the next to be sent.

A request whose robots.txt is being loaded keeps a place of the crawl for a moment (`Recent`). Beyond that,
the crawl looks ahead, within a bound, for requests of further origins, so that their files are loaded
meanwhile. As soon as a request is found that can only wait for others, it pauses until something has moved.
"""

from __future__ import annotations

import logging
import math
from time import monotonic
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

import scrapy

from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.waiting.alarm import Alarm
from scrapy_norobots.waiting.downloader import RobotsDownloader
from scrapy_norobots.waiting.expired import ExpiredRules
from scrapy_norobots.waiting.load_turns import Turns
from scrapy_norobots.waiting.recent import PATIENCE, Recent
from scrapy_norobots.waiting.sites import Sites
from scrapy_norobots.waiting.slot_lines import Lines, Parked
from scrapy_norobots.waiting.slots import Slots

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_norobots.middleware import NoRobotsMiddleware
    from scrapy_norobots.question import Question
    from scrapy_norobots.rules.access import Access
    from scrapy_norobots.waiting.source import Source

logger = logging.getLogger(__name__)

# How many recent requests may have no place, for each place of the crawl but one. With one place, the order
# of requests counts, so the crawl does not look ahead.
_AHEAD = 20

# How many requests of one slot may wait for a Crawl-delay before the crawl takes no more for a while.
_DELAYED_MAX = 100

# How many requests may wait in all, beside those of closed sites.
_WAITING_MAX = 1_000


class Parking:
    """The requests that wait. `source` is the scheduler that they come from."""

    def __init__(self, crawler: Crawler, middleware: NoRobotsMiddleware, source: Source) -> None:
        self._crawler = crawler
        self._middleware = middleware
        self._source = source
        assert crawler.engine is not None  # it opens the scheduler
        downloader = crawler.engine.downloader
        self._downloader = downloader if isinstance(downloader, RobotsDownloader) else None
        config = middleware.config
        if self._downloader is None:
            logger.warning(
                "Downloads of robots.txt count against CONCURRENT_REQUESTS, so a slow host can stall the "
                "crawl of other hosts: DOWNLOADER is not scrapy_norobots.RobotsDownloader",
                extra={"spider": crawler.spider},
            )
        self._slots = Slots(crawler, are_watched=self._downloader is not None)
        if self._downloader is not None and self._slots.missing:
            logger.warning(
                "Requests that wait for a delay count against CONCURRENT_REQUESTS, as in Scrapy without this "
                "plugin: Scrapy %s has no %s",
                scrapy.__version__,
                ", no ".join(self._slots.missing),
                extra={"spider": crawler.spider},
            )
        self._recent = Recent()
        most = crawler.settings.getint("CONCURRENT_REQUESTS")
        most = most if most > 0 else _WAITING_MAX  # no limit
        self._lines = Lines(self._slots, most, lambda: len(self._recent))
        self._turns = Turns(
            self._slots,
            self._downloader.free_max if self._downloader else config.concurrent_fetches,
            self._lines.__contains__,
        )
        self._sites = Sites(
            crawler,
            middleware.loader,
            middleware.events,
            self._turns,
            self._release,
            closes=self._recent.forget,
            tries=middleware.retries,
            closed_max=config.retry_closed_max,
        )
        self._parked: set[Request] = set()
        self._number = 0
        self._ahead_max = _AHEAD * (most - 1)
        self._line_max = most
        self._paused_until = 0.0
        self._alarm = Alarm(crawler)
        # Requests that the engine has got, and those of them that the middleware has given back.
        self._given: WeakSet[Request] = WeakSet()
        self._given_back: WeakSet[Request] = WeakSet()
        # The slots that requests have reached: a middleware may change the slot in their meta afterwards.
        self._slot_of: WeakKeyDictionary[Request, Any] = WeakKeyDictionary()
        self._expired = ExpiredRules()

    def __len__(self) -> int:
        return len(self._parked)

    @property
    def is_only_for_closed_sites(self) -> bool:
        """Whether requests wait, and all of them for sites that are closed for now."""
        return 0 < len(self._parked) == self._sites.closed_count

    # For the scheduler

    def next(self) -> Request | None:
        """Return the next request to be sent; None if there is none for now."""
        places = self._places_left()
        ready = None if places == 0 else self._first(places)
        if ready is None or not self._goes_first(ready):
            pulled = self._pull(places)
            ready = None if places == 0 else self._first(places)
            if pulled is not None:
                slot = self._slots.of(pulled)
                can_be_sent = self._lines.can_send(slot) if ready is not None else True
                if ready is None or (can_be_sent and pulled.priority > ready.priority):
                    self._lines.expect(pulled, slot)
                    self._given.add(pulled)
                    return pulled
                self._join(pulled, self._middleware.waits_for(pulled), is_held_up=not can_be_sent)
        if ready is None:
            self._set_alarm()
            return None
        self._leave(ready)
        self._lines.take(ready)
        if self._paused_until == math.inf:
            self._paused_until = 0.0
        self._turns.page_has_left(ready.slot)
        self._given.add(ready.request)
        return ready.request

    def take_back(self, request: Request) -> bool:
        """Park a request that the middleware has given back; return whether it has."""
        if request not in self._given_back:
            return False
        self._given_back.discard(request)
        question = self._middleware.waits_for(request)
        assert question is not None  # it was given back because of its origin
        if compat.is_closing(self._crawler):
            parked = self._enter(request, question, is_held_up=False)
            parked.is_closed = True
            self._middleware.events.waits.send(request, question.origin, 0, False)
            self._lines.add(parked, has_place=False)
        else:
            self._park(request, question)
        return True

    def add(self, request: Request) -> bool:
        """Give a new request to the source; return whether it was accepted."""
        if self._paused_until == math.inf and self._places_left() != 0:
            self._paused_until = 0.0  # its slot may be able to send
        return self._source.add(request)

    def clear(self) -> list[Parked]:
        """Let nothing wait any longer, because the crawl closes; return all requests, in order."""
        self._alarm.cancel()
        waiting = sorted(self._sites.clear() + self._lines.clear(), key=lambda parked: parked.number)
        for parked in waiting:
            self._leave(parked)
        return waiting

    def report_left(self, waiting: list[Parked]) -> None:
        """Report those requests to closed sites that have gone back to the scheduler, as the crawl closes."""
        for parked in waiting:
            if parked.is_closed:
                self._middleware.events.left_waiting.send(parked.request)

    # For the downloader

    def has_nothing_to_do(self, places: int | None) -> bool:
        """Return whether the engine need not ask for a request; it has so many places left (None: any)."""
        self._recent.forget_old()
        if places != 0 and self._lines.first(places) is not None:
            return False
        if self._is_paused:
            self._set_alarm()
            return True
        if places is None or places > self._recent.places:
            return False
        if self._recent.without_place >= self._ahead_max:
            self._set_alarm()
            return True
        return places == 0 and not self._source.may_have_more

    def has_reached(self, request: Request) -> None:
        """Take note that a request has reached its slot."""
        self._slot_of[request] = self._slots.of(request)
        self._has_moved(request)

    def is_sending(self, slot: Any | None) -> None:
        """Take note that a slot sends a request, so that its delay begins."""
        if slot in self._lines:
            self._lines.look_soon(slot)
            compat.look_for_next_request(self._crawler)

    def is_answered(self, request: Request) -> None:
        """Take note that the slot of a request can send another, even if a middleware keeps the response."""
        self.is_sending(self._slot_of.get(request))

    def has_left(self, request: Request) -> None:
        """Take note that a request has left the downloader."""
        self._given.discard(request)
        self._has_moved(request)
        self._slot_of.pop(request, None)

    def _has_moved(self, request: Request) -> None:
        self._paused_until = 0.0
        if not self._lines.is_idle:
            self._lines.moved(request, self._slot_of.get(request))

    # For the middleware

    def gives_back(self, request: Request, access: Access) -> bool:
        """Return whether a request to a closed site waits here; if so, the middleware returns it to Scrapy.

        Only a request that the engine got from here may wait; other code waits for any other one.
        """
        if request not in self._given:
            return False
        if not compat.is_closing(self._crawler):
            if not self._sites.is_retried(access):
                return False
            if not self._sites.has_room():
                most = self._middleware.config.retry_closed_max
                self._middleware.events.no_room.send(request, most)
                return False
        self._given.discard(request)  # if it is sent again at once, other code waits for it after all
        self._given_back.add(request)
        return True

    def raise_failure(self, request: Request) -> None:
        """Raise what a bug has raised about a request while it waited."""
        if self._sites.failures and (failure := self._sites.failures.pop(request, None)) is not None:
            raise failure

    def is_given_back(self, request: Request) -> bool:
        """Return whether the middleware has given a request back, so that it must not be sent."""
        return request in self._given_back

    def access_of(self, request: Request) -> Access | None:
        """Return the expired access by which a request may be judged that has waited for it, if any."""
        return self._expired.pop(request)

    # Requests that wait

    def _places_left(self) -> int | None:
        return self._downloader.places_left() if self._downloader else None

    def _pull(self, places: int | None) -> Request | None:
        """Return the first request of the source that need not wait; park those before it."""
        while self._may_pull(places):
            request = self._source.take()
            if request is None:
                return None
            if request in self._given or request in self._parked:
                request = request.copy()  # a spider may yield the same object twice
            question = self._middleware.waits_for(request)
            if question is not None and self._must_wait(request, question):
                self._park(request, question, places)
            elif question is not None and self._has_line(request):
                self._join(request, question)
            elif places == 0:
                self._join(request, question)
                self._paused_until = math.inf
            elif self._lines.need(places) and not self._lines.can_send(self._slots.of(request)):
                self._join(request, question)
            else:
                return request
        return None

    def _goes_first(self, ready: Parked) -> bool:
        """Return whether a request goes before all that the source may have."""
        return self._recent.has_place(ready) or ready.priority >= self._source.highest_priority

    def _has_line(self, request: Request) -> bool:
        """Return whether requests wait for the slot of a request, or for a Crawl-delay that it keeps."""
        slot = self._slots.of(request)
        return slot in self._lines or self._must_keep_delay(slot)

    def _must_keep_delay(self, slot: Any | None) -> bool:
        return self._slots.has_crawl_delay(slot) and not self._lines.can_send(slot)

    def _may_pull(self, places: int | None) -> bool:
        if self._is_paused or len(self._parked) - self._sites.closed_count >= _WAITING_MAX:
            return False
        return places is None or places > self._recent.places or self._recent.without_place < self._ahead_max

    def _must_wait(self, request: Request, question: Question) -> bool:
        """Return whether the robots.txt of an origin must be loaded, or tried again, before a request."""
        if question.origin in self._sites:
            if self._sites.since(question.origin) is not None:
                return True
            return not question.is_robots_txt and self._sites.has_room()
        loader = self._middleware.loader
        access = loader.origins.peek(question.origin)
        if access is None:
            return True
        if question.is_robots_txt or not access.temporary:
            return False
        is_of_other_proxy = not access.applies_to(loader.proxy_of(request))
        return is_of_other_proxy or (self._sites.is_retried(access) and self._sites.has_room())

    def _park(self, request: Request, question: Question, places: int | None = None) -> None:
        parked = self._enter(request, question, is_held_up=True)
        if question.origin not in self._sites or self._sites.since(question.origin) is not None:
            self._recent.add(parked, has_place=places is not None and places > self._recent.places)
        self._wait(parked)

    def _wait(self, parked: Parked) -> None:
        """Let a request wait for its site. If another one does already, take no more for a while."""
        assert parked.question is not None
        origin = parked.question.origin
        is_new = origin not in self._sites
        self._expired.has_begun_to_load(origin)
        self._sites.wait(parked)
        since = None if is_new or origin not in self._sites else self._sites.since(origin)
        if since is not None and not self._recent.has_place(parked):
            self._paused_until = max(self._paused_until, since + PATIENCE)

    def _join(self, request: Request, question: Question | None, *, is_held_up: bool = False) -> None:
        """Let a request wait until others of its slot have gone, for a Crawl-delay, or for a place.

        If so many wait already that they could take all places, take no more until something has moved.
        """
        parked = self._enter(request, question, is_held_up=is_held_up)
        must_keep_delay = self._must_keep_delay(parked.slot)
        parked.is_held_up = is_held_up or must_keep_delay
        most = _DELAYED_MAX if must_keep_delay else self._line_max
        if self._lines.add(parked, has_place=False) >= most:
            self._paused_until = math.inf

    def _enter(self, request: Request, question: Question | None, *, is_held_up: bool) -> Parked:
        self._number += 1
        parked = Parked(
            request, question, self._slots.of(request), self._number, monotonic(), is_held_up=is_held_up
        )
        self._parked.add(request)
        self._slots.enter(parked.slot, request)
        return parked

    def _leave(self, parked: Parked) -> None:
        self._recent.forget(parked)
        self._parked.discard(parked.request)
        self._slots.leave(parked.slot, parked.request)

    def _release(self, waiting: list[Parked]) -> None:
        """Let requests go on that need not wait for their site any longer."""
        # The same for all, so that they keep their order.
        has_place = any(map(self._recent.has_place, waiting))
        for parked in waiting:
            assert parked.question is not None  # it has waited for its origin
            if self._middleware.forbids(parked.question):
                # It will be dropped, and need not wait for its slot.
                self._slots.leave(parked.slot, parked.request)
                parked.slot = None
            self._lines.add(parked, has_place=has_place)
        self._paused_until = 0.0
        compat.look_for_next_request(self._crawler)

    def _first(self, places: int | None) -> Parked | None:
        """Return the request in line that is next. Requests whose rules have expired wait again."""
        while (parked := self._lines.first(places)) is not None:
            if (
                parked.question is None
                or parked.request in self._sites.failures
                or not self._must_wait(parked.request, parked.question)
            ):
                return parked
            origin = parked.question.origin
            latest = None if origin in self._sites else self._middleware.loader.origins.latest(origin)
            if latest is not None and self._expired.lets_go(
                parked.request, origin, latest, has_reloaded=parked.has_reloaded
            ):
                return parked
            self._lines.remove(parked)
            parked.has_reloaded = parked.is_held_up = True
            self._turns.page_has_left(parked.slot)
            self._wait(parked)
        return None

    # Time

    @property
    def _is_paused(self) -> bool:
        return self._paused_until > monotonic()

    def _set_alarm(self) -> None:
        """Wake the engine when a request may go on, or more requests may be taken."""
        self._recent.forget_old()
        now = monotonic()
        if seconds := self._lines.seconds_left():  # if it is 0, only a place is missing
            self._alarm.set(now + seconds)
        if now < self._paused_until < math.inf:
            self._alarm.set(self._paused_until)
        if self._recent.ends is not None:
            self._alarm.set(self._recent.ends)
