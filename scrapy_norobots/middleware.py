"""`NoRobotsMiddleware`: make each request wait for its origin's robots.txt, and drop it if that forbids it.

The steps for a request: the overrides in its meta, the URL to check, the access to its origin, the verdict;
then the request passes or is dropped. If the rules for its robot are in memory, nothing is awaited. This
module does not change a request that passes; a forbidden one raises `RobotsForbidden`. What else the plugin
does for a request (reports, evidence, Crawl-delay) subscribes to the events that are sent here, by `load` and
by `waiting`. The middleware makes the loader and the events, which `RobotsScheduler` shares. In a dry run,
nothing is dropped.

With `RobotsScheduler`, most requests have waited before they come here, and a request whose site is
temporarily closed goes back to wait there. Without it, a request waits here, and counts against
`CONCURRENT_REQUESTS`.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Protocol

from scrapy import signals

from scrapy_norobots.checks import check_components, check_user_agent, read_config
from scrapy_norobots.events import Core
from scrapy_norobots.exceptions import error_of
from scrapy_norobots.features import features_of
from scrapy_norobots.load.loader import RobotsLoader
from scrapy_norobots.question import Question, is_overridden, question_of
from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.scrapy_api.identity import Identity
from scrapy_norobots.standard import Decision, Reason

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_norobots.events import Waits
    from scrapy_norobots.exceptions import RobotsForbidden
    from scrapy_norobots.rules.access import Access

logger = logging.getLogger(__name__)


class WaitingRoom(Protocol):
    """Where requests wait outside of the downloader: `RobotsScheduler` has one."""

    def gives_back(self, request: Request, access: Access) -> bool:
        """Return whether a request to a closed site waits there; if so, it is returned to Scrapy."""

    def waits(self) -> Waits:
        """Return how many sites and requests wait there."""

    def access_of(self, request: Request) -> Access | None:
        """Return the expired access by which a request is judged that has waited for it, if any.

        Raises what a bug has raised about the request while it waited.
        """


class NoRobotsMiddleware:
    """Downloader middleware that drops the requests that robots.txt forbids.

    Its order is 100, as that of Scrapy's own robots.txt middleware. Enabled by ``ROBOTSTXT_OBEY``, configured
    by the ``NOROBOTS_*`` settings. Requests with ``dont_obey_robotstxt`` in their meta pass.
    """

    def __init__(self, crawler: Crawler) -> None:
        """Raise `NotConfigured` if ``ROBOTSTXT_OBEY`` is false, `ValueError` if a setting is invalid."""
        self.config = config = read_config(crawler, type(self), NoRobotsMiddleware)
        self._crawler = crawler
        # An identity looks up Scrapy's middlewares once. It is too early for that, so this one is not kept.
        check_user_agent(crawler, Identity(crawler, config.robot))
        self._identity = Identity(crawler, config.robot)
        self._ask = partial(question_of, identity=self._identity)
        self.events = features_of(crawler, config)
        self.loader = RobotsLoader(crawler, config, self.events)
        self._origins = self.loader.origins
        # The user of a command that fetches one page, such as `scrapy fetch`, waits for the result.
        is_retried = compat.is_own_crawl(crawler) and not config.dry_run
        self.retries = config.retry_closed if is_retried else 0
        self._room: WaitingRoom | None = None
        self._has_warned = False
        crawler.signals.connect(self._spider_closed, signal=signals.spider_closed)
        own = self if type(self) is NoRobotsMiddleware else None
        self.events.opened.send(Core(own, self._ask, self._origins, self._forbid, self._waits))

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NoRobotsMiddleware:
        """Return the middleware of a crawler.

        Raises `NotConfigured` if ``ROBOTSTXT_OBEY`` is false or a subclass is enabled too, and `ValueError`
        if a setting is invalid or the middleware is in another setting than ``DOWNLOADER_MIDDLEWARES``.
        """
        check_components(crawler, cls, NoRobotsMiddleware, "DOWNLOADER_MIDDLEWARES")
        return cls(crawler)

    async def process_request(
        self, request: Request, spider: Spider | None = None
    ) -> Response | Request | None:
        """Return None if the request may be sent; return the response if it asks for a robots.txt itself.

        Waits until the robots.txt of the request's origin is loaded, and read for its robot; if that has been
        done, nothing is awaited. Returns the request if it must wait in the scheduler, because its origin is
        temporarily closed; a subclass must return it too. Raises `RobotsForbidden` if robots.txt forbids the
        request, `RobotsUnreachable` if robots.txt could not be downloaded and the policy denies, and
        `ValueError` if ``norobots_url`` in the request's meta is not an http or https URL. `spider` is not
        used: older Scrapy versions pass it.
        """
        expired = None if self._room is None else self._room.access_of(request)
        self.events.received.send(request)
        if is_overridden(request):
            if not self.loader.is_own(request):
                self.events.exempt.send(request, request.url, self._identity.robot(request), None)
            return None
        question = self._ask(request)
        if isinstance(question, Decision):
            self._decide_without_file(request, question)
            return None
        if question.is_robots_txt:
            self.events.exempt.send(request, question.url, question.robot, Reason.ROBOTS_TXT)
            return await self._answer(request, question, expired)
        access = self._origins.get(question.origin)
        if access is None or access.snapshot.proxy or not access.is_ready(question.robot):
            access = await self._wait(request, question, expired)
        decision = question.forbidden_by(access)
        if decision is None:
            self.events.passed.send(request, question, access)
        elif access.is_closed_for_now and self._room is not None and self._room.gives_back(request, access):
            return request
        else:
            self._forbid(request, question, decision, access)
        return None

    # For `RobotsScheduler`

    def wait_in(self, room: WaitingRoom) -> None:
        """Let requests to closed sites wait there."""
        self._room = room

    def waits_for(self, request: Request) -> Question | None:
        """Return the question to which a request needs the answer; None if it needs no robots.txt."""
        if is_overridden(request):
            return None
        try:
            question = self._ask(request)
            if isinstance(question, Decision):
                return None
            needs_file = not question.is_robots_txt or self.events.asked.ask(request) is not None
        except Exception:  # `process_request` raises it
            return None
        return question if needs_file else None

    def forbids(self, question: Question) -> bool:
        """Return whether a request will be dropped by the robots.txt that has been loaded for it."""
        access = self._origins.latest(question.origin)
        if access is None or self.config.dry_run or not access.is_ready(question.robot):
            return False
        return question.forbidden_by(access) is not None

    def _waits(self) -> Waits | None:
        return None if self._room is None else self._room.waits()

    async def _wait(self, request: Request, question: Question, expired: Access | None) -> Access:
        """Return the access to an origin, loaded if it is not in memory, and ready for the robot."""
        if self._room is None:
            self._warn_about_places()
        # An earlier middleware may have changed what the request asks since it waited.
        if expired is not None and expired.snapshot.origin == question.origin:
            latest = self._origins.latest(question.origin)  # another request may have caused the next load
            if latest is not None and not latest.is_closed_for_now:
                await self.loader.prepare(latest, question.robot)
                return latest
        return await self.loader.load(question.origin, request, question.robot)

    async def _answer(self, request: Request, question: Question, expired: Access | None) -> Response | None:
        """Return a response to a request for a robots.txt (always allowed, U7); None to send it."""
        answer = self.events.asked.ask(request)
        if answer is None:
            return None
        response: Response | None = answer(await self._wait(request, question, expired))
        return response

    def _decide_without_file(self, request: Request, decision: Decision) -> None:
        """Let a request pass, or drop it, that needs no robots.txt."""
        robot = self._identity.robot(request)
        if decision.allowed:
            self.events.exempt.send(request, decision.url, robot, decision.reason)
        else:
            self._drop(request, decision.url, robot, error_of(decision), None)

    def _forbid(self, request: Request, question: Question, decision: Decision, access: Access) -> None:
        retry_after = self._origins.remaining(question.origin) if access.temporary else None
        error = error_of(decision, retry_after, access.snapshot.exception)
        self._drop(request, question.url, question.robot, error, access)

    def _drop(
        self, request: Request, url: str, robot: str | bytes, error: RobotsForbidden, access: Access | None
    ) -> None:
        """Raise the exception of a forbidden request, unless this is a dry run."""
        self.events.dropped.send(request, url, robot, error, access)
        if not self.config.dry_run:
            raise error

    def _warn_about_places(self) -> None:
        if self._has_warned or self._crawler.engine is None:
            return
        self._has_warned = True
        logger.warning(
            "Requests that wait for robots.txt count against CONCURRENT_REQUESTS, so a slow host can stall "
            "the crawl of other hosts: SCHEDULER is not scrapy_norobots.RobotsScheduler",
            extra={"spider": self._crawler.spider},
        )

    async def _spider_closed(self, reason: str) -> None:
        await self.events.closing.tell(reason, self._origins, self._identity.default)
