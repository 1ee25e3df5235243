"""`Sites`: the origins that requests wait for, each with one task that loads its robots.txt.

`LoadLimits` says how many are loaded at a time, in all and of one download slot.

If a site is temporarily closed, because of a temporary failure that the policy denies, its requests wait for
the next downloads of robots.txt. `NOROBOTS_RETRY_CLOSED` and its `_MAX` limit that. Only failures in a row
use up retries. A proxy that fails closes a site only to requests that use it, so an origin is a site of its
own with each of its proxies. If the origin itself fails, that uses up the retries of all of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import chain
from time import monotonic
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred, DeferredSemaphore

from scrapy_norobots.events import Waits
from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.waiting.states import Parked, State

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_norobots.events import Load
    from scrapy_norobots.load.loader import RobotsLoader
    from scrapy_norobots.question import Question
    from scrapy_norobots.rules.access import Access
    from scrapy_norobots.standard import Origin
    from scrapy_norobots.waiting.slot_lines import Slots

# How much too early a timer may fire, in seconds.
_CLOCK_RESOLUTION = 0.01

# After so many seconds, a load takes long.
_LONG = 3.0

# How many requests are released in one turn of the event loop.
_AT_ONCE = 500

# How many failing sites are remembered; one that is forgotten has all its retries again.
_FAILING_MAX = 50_000


# An origin, and the proxy of the requests to it: empty if they have none.
_Key = tuple["Origin", str]


@dataclass(slots=True, eq=False)
class _Site:
    key: _Key
    waiting: list[Parked] = field(default_factory=list)
    is_closed: bool = False
    # When its requests began to wait, the last load began, or the next one begins.
    load_at: float = field(default_factory=monotonic)
    access: Access | None = None  # the last one
    task: Deferred[None] | None = None
    pause: Deferred[None] | None = None  # ends when robots.txt is loaded again

    def wake(self) -> None:
        """End the pause, if there is one."""
        pause, self.pause = self.pause, None
        if pause is not None:
            pause.callback(None)


class Sites:
    """The sites of one crawl that requests wait for.

    A closed site is retried `tries` times. `release` is called with requests that need not wait any longer,
    in their order. One with an `error` must not be sent.
    """

    def __init__(
        self,
        crawler: Crawler,
        loader: RobotsLoader,
        limits: LoadLimits,
        release: Callable[[list[Parked]], None],
        *,
        tries: int,
    ) -> None:
        self._crawler = crawler
        self._loader = loader
        self._events = loader.events
        self._limits = limits
        self._release = release
        self._tries = tries
        self._closed_max = loader.config.retry_closed_max
        self._sites: dict[_Key, _Site] = {}
        self._leaving: list[list[Parked]] = []  # requests that need not wait any longer, by site
        # Sites and proxies that have failed: the last access, and how often in a row in this crawl.
        self._failing: dict[_Key, tuple[Access, int]] = {}
        self._events.loaded.connect(self._loaded)
        self.closed_count = 0  # requests that wait for closed sites

    def waits(self) -> Waits:
        """Return how many sites and requests wait."""
        now = monotonic()
        sites = [site for site in self._sites.values() if site.is_closed or now - site.load_at > _LONG]
        return Waits(
            requests=sum(len(site.waiting) for site in sites),
            closed_sites=sum(site.is_closed for site in sites),
            loading_sites=sum(now - site.load_at > _LONG for site in sites),
            next_try=min((site.load_at - now for site in sites if site.load_at > now), default=None),
        )

    def is_retried(self, request: Request, access: Access) -> bool:
        """Return whether a request to an origin with this access waits until that is tried again."""
        if not access.is_closed_for_now or not self._tries:
            return False
        failed, times = self._failing.get(_who_failed(access, self._loader.proxy_of(request)), (None, 0))
        return failed is not access or times <= self._tries

    def has_room(self) -> bool:
        """Return whether one more request may wait for a closed site."""
        return self.closed_count < self._closed_max

    def must_wait(self, request: Request, question: Question) -> bool:
        """Return whether the robots.txt of an origin must be loaded, or tried again, before a request."""
        if self._sites and (site := self._sites.get((question.origin, self._loader.proxy_of(request)))):
            return not site.is_closed or (not question.is_robots_txt and self.has_room())
        access = self._loader.origins.get(question.origin)
        if access is None:
            return True
        if not access.temporary or question.is_robots_txt:
            return False
        return not access.applies_to(self._loader.proxy_of(request)) or (
            self.is_retried(request, access) and self.has_room()
        )

    def wait(self, parked: Parked) -> int:
        """Let a request wait for its site; return how many wait there, or 0 if it is closed."""
        assert parked.question is not None  # only a request to an origin waits
        key = parked.question.origin, self._loader.proxy_of(parked.request)
        site = self._sites.get(key)
        if site is None:
            site = self._sites[key] = _Site(key, [parked])
            site.task = compat.spawn(self._run(site))
            return 1
        site.waiting.append(parked)
        if site.is_closed:
            self._close(parked)
            return 0
        return len(site.waiting)

    def clear(self) -> list[Parked]:
        """End all loads, and return the requests that wait."""
        for site in self._sites.values():
            if site.task is not None:
                compat.cancel(site.task)
        return list(chain(*(site.waiting for site in self._sites.values()), *self._leaving))

    def _loaded(self, load: Load) -> None:
        if load.access.is_closed_for_now:
            return
        origin, proxies = load.access.snapshot.origin, load.previous.proxies if load.previous else ()
        for proxy in {"", self._loader.proxy_of(load.request), *proxies}:  # the file is there for all
            self._failing.pop((origin, proxy), None)
            if (site := self._sites.get((origin, proxy))) and site.pause is not None:
                compat.call_later(0, site.wake)  # then it is in memory

    async def _run(self, site: _Site) -> None:
        """Load the robots.txt of a site until its requests need not wait any longer."""
        turn = 0
        try:
            while True:
                asker = site.waiting[turn % len(site.waiting)]  # something may be wrong with one request
                async with self._limits.load(asker.slot, is_retry=site.is_closed):
                    if compat.is_closing(self._crawler):
                        break
                    assert asker.question is not None  # it waits for its origin
                    site.access = await self._loader.load(site.key[0], asker.request, asker.question.robot)
                if compat.is_closing(self._crawler) or not self._count(site, site.access):
                    break
                seconds = self._loader.origins.remaining(site.key[0])
                await self._close_all(site, site.access, seconds)
                if not site.waiting:
                    break
                await _pause(site, seconds)
                turn += 1
        except Exception as exc:
            _fail(site.waiting, exc)
        if compat.is_closing(self._crawler):
            return  # the requests go back to the scheduler
        del self._sites[site.key]
        await self._let_go(site.waiting, site.access)

    async def _let_go(self, waiting: list[Parked], access: Access | None) -> None:
        """Release the requests of a site in their order, some in each turn of the event loop.

        One of them goes by the last file, also if that expires before its turn. Else a file whose lifetime is
        shorter than the wait would be loaded for ever.
        """
        self._leaving.append(waiting)
        is_short_lived = access is not None and access.lifetime <= 0
        for parked in waiting if is_short_lived else waiting[:1]:
            parked.access = access
        is_given_up = access is None or access.kind == "closed"
        while True:
            some = waiting[:_AT_ONCE]
            del waiting[:_AT_ONCE]
            for parked in some:
                if parked.state is State.CLOSED:
                    self.closed_count -= 1
                    parked.is_given_up = is_given_up  # unless it is exempt, the middleware drops it
                    if not is_given_up:
                        self._tell([parked], self._events.wait.send, parked.request, "came_back")
            self._release(some)
            if not waiting:
                break
            await compat.sleep(0)
            if compat.is_closing(self._crawler):
                return  # the others go back to the scheduler
        self._leaving.remove(waiting)

    def _count(self, site: _Site, access: Access) -> bool:
        """Count a failure of a site; return whether its requests wait for another try."""
        key = _who_failed(access, site.key[1])
        failed, times = self._failing.pop(key, (None, 0))
        if not access.is_closed_for_now:
            return False
        if failed is not access and access.snapshot.proxy in ("", site.key[1]):
            times += 1
        self._failing[key] = access, times
        if len(self._failing) > _FAILING_MAX:
            del self._failing[next(iter(self._failing))]
        is_retried = times <= self._tries
        if site.is_closed and not is_retried:
            self._tell(site.waiting, self._events.site_waits.send, access, None, False)
        return is_retried

    async def _close_all(self, site: _Site, access: Access, seconds: float) -> None:
        """Let the requests of a site wait for some seconds, as many as there is room for."""
        is_first, site.is_closed = not site.is_closed, True
        if is_first:
            room = max(0, self._closed_max - self.closed_count)
            site.waiting, others = site.waiting[:room], site.waiting[room:]
            for parked in site.waiting:
                self._close(parked)
            await self._let_go(others, access)  # also none, for requests of other sites are taken again
        if site.waiting:
            self._tell(site.waiting, self._events.site_waits.send, access, seconds, is_first)

    def _close(self, parked: Parked) -> None:
        self.closed_count += 1
        parked.move(State.CLOSED)
        if not parked.is_given_up:  # else this has been told, and not yet how it ended
            self._tell([parked], self._events.wait.send, parked.request, "waited")

    def _tell(self, about: list[Parked], send: Callable[..., None], *event: object) -> None:
        """Send an event about requests. If a feature raises, none of them may be sent."""
        try:
            send(*event)
        except Exception as exc:  # a bug of any kind
            _fail(about, exc)


def _who_failed(access: Access, proxy: str) -> _Key:
    """Return whose failures count for a request through a proxy: those of the site, or of the proxy."""
    return access.snapshot.origin, proxy if access.snapshot.proxy else ""


async def _pause(site: _Site, seconds: float) -> None:
    """Wait for the next try, or until another proxy has got the robots.txt."""
    pause: Deferred[None] = Deferred()
    site.load_at, site.pause = monotonic() + seconds, pause
    stop_timer = compat.call_later(seconds + _CLOCK_RESOLUTION, site.wake)
    try:
        await compat.waiting_for(pause)
    finally:
        stop_timer()


def _fail(about: list[Parked], error: Exception) -> None:
    for parked in about:
        parked.error = error


@dataclass(slots=True, eq=False)
class _SlotLoads:
    """The loads of one slot: those that run, those that wait, and whether a page is next."""

    running: int = 0
    waiting: deque[Deferred[None]] = field(default_factory=deque)
    is_of_page: bool = False


class LoadLimits:
    """The limits of one crawl: at most `most` loads run at a time, and half of them may be retries.

    In a slot with a delay, downloads of robots.txt and pages take turns. Otherwise, the files of many origins
    in one slot, such as that of a proxy, would all be downloaded before the first page. At most four are
    loaded, and half of the places are for pages, because these files may hang. `has_page` returns whether a
    page waits for a slot.
    """

    def __init__(self, slots: Slots, most: int, has_page: Callable[[Any | None], bool]) -> None:
        self._slots = slots
        self._has_page = has_page
        self._loads = DeferredSemaphore(max(1, most))
        self._retries = DeferredSemaphore(max(1, most // 2))
        self.by_slot: dict[Any, _SlotLoads] = {}

    @asynccontextmanager
    async def load(self, slot: Any | None, *, is_retry: bool) -> AsyncIterator[None]:
        """Wait until one more file of a slot may be loaded, which is done inside the ``async with``."""
        loads = self.by_slot.setdefault(slot, _SlotLoads())
        admitted: Deferred[None] = Deferred()
        loads.waiting.append(admitted)
        self._admit(slot)
        await compat.fired(admitted)
        ended = ExitStack()
        try:
            for semaphore in (self._retries, self._loads) if is_retry else (self._loads,):
                await compat.fired(semaphore.acquire())
                ended.callback(semaphore.release)
            yield
        finally:
            loads.running -= 1
            ended.callback(self._admit, slot)
            # Later, when its pages may be in line. The next load may end at once, and the next one.
            compat.call_later(0, ended.close)

    def page_has_left(self, slot: Any | None) -> None:
        """Let the next file of a slot be loaded that has loads.

        A page has reached the slot, has been answered without it, or has to wait for a file again.
        """
        self.by_slot[slot].is_of_page = False
        self._admit(slot)

    def _admit(self, slot: Any | None) -> None:
        loads = self.by_slot.get(slot)
        if loads is None:
            return
        while loads.waiting and self._may_load(slot, loads):
            loads.running, loads.is_of_page = loads.running + 1, True
            loads.waiting.popleft().callback(None)
        if not loads.running and not loads.waiting:
            del self.by_slot[slot]

    def _may_load(self, slot: Any | None, loads: _SlotLoads) -> bool:
        if slot is not None and self._slots.has_delay(slot):
            is_of_page = loads.is_of_page and self._has_page(slot)
            return not is_of_page and loads.running < max(1, min(4, slot.concurrency // 2))
        return slot is None or bool(loads.running < slot.concurrency)
