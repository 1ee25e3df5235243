"""`NoRobotsMiddleware`: make each request wait for its origin's robots.txt, and drop it if that forbids it.

The steps for a request: the overrides in its meta, the URL to check, the access to its origin, the verdict;
then the request passes or is dropped. For an origin in memory, nothing is awaited. A request that passes is
not changed; a forbidden one raises `RobotsForbidden`.

With `RobotsScheduler`, most requests have waited before they come here, and a request whose site is closed
for now goes back to wait there. Without it, a request waits here, in its place.
"""

from __future__ import annotations

import logging
import time
from functools import cached_property
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import NotConfigured
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name

from scrapy_norobots import compat
from scrapy_norobots.components import check_place, enabled_keys, keys_of, unused_overrides
from scrapy_norobots.crawl_delay import CrawlDelay
from scrapy_norobots.evidence import Evidence, Made
from scrapy_norobots.exceptions import RobotsForbidden, RobotsUnreachable
from scrapy_norobots.fetch import ROBOTS_DOWNLOAD, limit_retries
from scrapy_norobots.identity import Identity
from scrapy_norobots.loader import RobotsLoader
from scrapy_norobots.metatag import RobotsMetaMiddleware
from scrapy_norobots.overrides import checked_url, is_overridden
from scrapy_norobots.parser import crawl_delays
from scrapy_norobots.question import Question, question_of
from scrapy_norobots.report import CrawlReport, spider_name
from scrapy_norobots.scheduled import duplicates_filter
from scrapy_norobots.serving import answer, can_be_answered
from scrapy_norobots.settings import Config, MetaConfig
from scrapy_norobots.slot_delays import SlotDelays
from scrapy_norobots.spellings import forbidden, spellings_of
from scrapy_norobots.standard import Decision, Reason

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.dupefilters import BaseDupeFilter
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from scrapy_norobots.access import Access
    from scrapy_norobots.waiting.parking import Parking

logger = logging.getLogger(__name__)


class NoRobotsMiddleware:
    """Downloader middleware that drops the requests that robots.txt forbids.

    Its order is 100, as that of Scrapy's own robots.txt middleware. Enabled by ``ROBOTSTXT_OBEY``, configured
    by the ``NOROBOTS_*`` settings. Requests with ``dont_obey_robotstxt`` in their meta pass.
    """

    def __init__(self, crawler: Crawler) -> None:
        """Raise `NotConfigured` if ``ROBOTSTXT_OBEY`` is false, `ValueError` if a setting is invalid."""
        config = Config.from_settings(crawler.settings)
        if not config.obey:
            logger.info("Spider %s does not obey robots.txt: ROBOTSTXT_OBEY is False", spider_name(crawler))
            for name, value in (("EVIDENCE", config.evidence.folder), ("REPORT", config.report)):
                if value:
                    logger.warning("NOROBOTS_%s has no effect: ROBOTSTXT_OBEY is False", name)
            raise NotConfigured
        assert crawler.stats is not None  # made before any middleware
        _warn_about_incomplete_setup(crawler.settings)
        _warn_about_unused_hooks(type(self))
        self._crawler = crawler
        self._stats = crawler.stats
        self.config = config
        self._identity = Identity(crawler, config.robot)
        self.report = CrawlReport(crawler, config)
        self._counters = self.report.counters
        # The shell has no spider yet, and no crawl to record.
        is_recorded = config.evidence.folder and crawler.spider is not None
        self._evidence = Evidence(crawler, config) if is_recorded else None
        self.loader = RobotsLoader(crawler, config, self.report, self._evidence)
        self._origins = self.loader.origins
        self._delays = SlotDelays(crawler) if config.crawl_delay_max else None
        # The user of a command that fetches one page, such as `scrapy fetch`, waits for the result.
        is_retried = compat.is_own_crawl(crawler) and not config.dry_run
        self.retries = config.retry_closed if is_retried else 0
        self._parking: Parking | None = None
        self._has_warned = False
        if config.dry_run:
            logger.warning(
                "NOROBOTS_DRY_RUN is on: forbidden requests are logged and counted, but not dropped"
            )
        if not config.dry_run and type(self) is NoRobotsMiddleware:
            crawler.signals.connect(self._schedule, signal=signals.request_scheduled)
        crawler.signals.connect(self._spider_closed, signal=signals.spider_closed)
        if self._evidence is not None:
            self._evidence.open(self.report.started)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NoRobotsMiddleware:
        """Return the middleware of a crawler.

        Raises `NotConfigured` if ``ROBOTSTXT_OBEY`` is false or a subclass is enabled too, `ValueError` if a
        setting is invalid or the middleware is in another setting than ``DOWNLOADER_MIDDLEWARES``.
        """
        check_place(crawler.settings, NoRobotsMiddleware, "DOWNLOADER_MIDDLEWARES")
        if cls is NoRobotsMiddleware and _is_replaced_by_subclass(crawler.settings):
            raise NotConfigured
        return cls(crawler)

    async def process_request(
        self, request: Request, spider: Spider | None = None
    ) -> Response | Request | None:
        """Return None if the request may be sent; return the response if it asks for a robots.txt itself.

        Waits until the robots.txt of the request's origin is loaded; if it is in memory, nothing is awaited.
        Returns the request if it must wait in the scheduler, because its origin is closed for now; a subclass
        must return it too. Raises `RobotsForbidden` if robots.txt forbids the request, `RobotsUnreachable` if
        robots.txt could not be downloaded and the policy denies, and `ValueError` if ``norobots_url`` in the
        request's meta is not an http or https URL. `spider` is not used: older Scrapy versions pass it.
        """
        if self._delays is not None:
            self._delays.use_slot_of_host(request)
        if is_overridden(request):
            self._override(request)
            return None
        question = question_of(request, self._identity)
        if isinstance(question, Decision):
            self._decide_without_file(request, question)
            return None
        if question.is_robots_txt:
            self._record(request, question.url, exemption=Reason.ROBOTS_TXT)
            return await self._answer(request, question)
        access = self._origins.get(question.origin)
        if access is None:
            access = await self._wait(request, question)
            self._counters.add_requests(question.origin, 1)
        elif access.proxies or not access.is_ready(question.robot):
            access = await self._wait(request, question)
        if self._delays is not None:
            self._delays.bring(request, question.origin, self._crawl_delay(access, question))
        return self._decide(request, question, access)

    def _decide(self, request: Request, question: Question, access: Access) -> Request | None:
        """Let a request pass, or drop it, or return it if it must wait in the scheduler."""
        decision = _forbids(access, question)
        if decision is None:
            self._counters.passed += 1
            self._record(request, question.url, access)
        elif access.is_closed_for_now and self._goes_back(request, access):
            self._counters.add_requests(question.origin, -1)  # it is counted when it passes or is dropped
            return request
        else:
            self._drop(request, decision, access)
        return None

    def _decide_without_file(self, request: Request, decision: Decision) -> None:
        """Let a request pass, or drop it, that needs no robots.txt."""
        if decision.allowed:
            self._record(request, decision.url, exemption=decision.reason)
        else:
            self._drop(request, decision)

    # For `RobotsScheduler`

    def wait_in(self, parking: Parking) -> None:
        """Let requests to closed sites wait there."""
        self._parking = parking

    def waits_for(self, request: Request) -> Question | None:
        """Return the question to which a request needs the answer; None if it needs no robots.txt."""
        if self._delays is not None:
            self._delays.use_slot_of_host(request)
        if is_overridden(request):
            return None
        try:
            question = question_of(request, self._identity)
        except ValueError:
            return None  # `process_request` raises it
        if isinstance(question, Decision) or (question.is_robots_txt and not self._can_answer(request)):
            return None
        return question

    def forbids(self, request: Request, question: Question) -> bool:
        """Return whether a request will be dropped by the robots.txt that has been loaded for it.

        The slot of the request keeps the `Crawl-delay` of the origin from now on.
        """
        access = self._origins.latest(question.origin)
        if access is None or not access.is_ready(question.robot):
            return False
        if self._delays is not None:
            self._delays.keep(request, question.origin, self._crawl_delay(access, question))
        return _forbids(access, question) is not None and not self.config.dry_run

    def _schedule(self, request: Request) -> None:
        """Drop a request without an errback that rules in memory forbid, as `process_request` would later.

        An origin that is closed for a while may be open when the request is sent, so it drops nothing here.
        """
        duplicates = self._duplicates
        if request.errback is not None or duplicates is None or is_overridden(request):
            return
        try:
            question = question_of(request, self._identity)
        except ValueError:
            return
        if isinstance(question, Decision):
            return
        access = self._origins.peek(question.origin)
        if access is None or access.rules is None or access.temporary or not access.is_ready(question.robot):
            return
        decision = _forbids(access, question)
        if decision is not None and (request.dont_filter or not duplicates.request_seen(request)):
            self._counters.add_requests(question.origin, 1)
            self._stats.inc_value("norobots/forbidden_early")
            self._drop(request, decision, access)

    @cached_property
    def _duplicates(self) -> BaseDupeFilter | None:
        """The scheduler's filter; None if requests cannot be dropped when they are scheduled."""
        return duplicates_filter(self._crawler, self)

    async def _wait(self, request: Request, question: Question) -> Access:
        """Return the access to an origin, loaded if it is not in memory, and ready for the robot."""
        if self._parking is None:
            self._warn_about_places()
        elif (access := self._parking.access_of(request)) is not None:
            return access
        return await self.loader.load(question.origin, request, question.robot)

    def _override(self, request: Request) -> None:
        """Let a request with `dont_obey_robotstxt` pass: the user's, or a download of robots.txt."""
        if ROBOTS_DOWNLOAD in request.meta:
            limit_retries(self._crawler, request)
            return
        self.report.overridden()
        self._record(request, request.url)

    def _crawl_delay(self, access: Access, question: Question) -> float:
        """Return the `Crawl-delay` that the crawl keeps for a robot, in seconds."""
        values = crawl_delays(access.rules, question.robot)
        return CrawlDelay.of(values, self.config.crawl_delay_max).kept

    def _goes_back(self, request: Request, access: Access) -> bool:
        return self._parking is not None and self._parking.gives_back(request, access)

    def _can_answer(self, request: Request) -> bool:
        return can_be_answered(request, self._crawler.spider)

    async def _answer(self, request: Request, question: Question) -> Response | None:
        """Return a response to a spider's request for a robots.txt (always allowed, U7); None to send it."""
        if not self._can_answer(request):
            return None
        response = answer(await self._wait(request, question), request)
        if response is not None:
            self._stats.inc_value("norobots/shared")
        return response

    def _record(
        self,
        request: Request,
        url: str,
        access: Access | None = None,
        decision: Decision | None = None,
        exemption: Reason | None = None,
    ) -> None:
        """Record what becomes of a request, if evidence is wanted; `url` is the URL that is checked."""
        if self._evidence is not None:
            robot = self._identity.robot(request)
            made = Made(time.time(), url, robot, request.url, access, decision, exemption)
            self._evidence.decided(made)

    def _warn_about_places(self) -> None:
        if self._has_warned or self._crawler.engine is None:
            return
        self._has_warned = True
        logger.warning(
            "Requests that wait for robots.txt count against CONCURRENT_REQUESTS, so a slow host can stall "
            "the crawl of other hosts: SCHEDULER is not scrapy_norobots.RobotsScheduler",
            extra={"spider": self._crawler.spider},
        )

    def _drop(self, request: Request, decision: Decision, access: Access | None = None) -> None:
        """Report a forbidden request, and raise its exception unless this is a dry run."""
        if decision.reason in (Reason.RULE, Reason.PARSER):
            error = RobotsForbidden(decision)
        elif access is None:
            error = RobotsUnreachable(decision)
        else:
            retry_after = self._origins.remaining(access.snapshot.origin) if access.temporary else None
            error = RobotsUnreachable(decision, retry_after)
            error.__cause__ = access.snapshot.exception
        self.report.dropped(request, error, access)
        self._record(request, checked_url(request), access, decision)
        if not self.config.dry_run:
            raise error

    async def _spider_closed(self, reason: str) -> None:
        await self.report.list_files(self._origins.latest, self._identity.default)
        self._origins.clear()  # reports its counts of requests
        self.report.finish(reason)


def _forbids(access: Access, question: Question) -> Decision | None:
    """Return the decision that forbids a URL; None if it may pass."""
    return forbidden(access, *question, spellings_of(question.target))


def _is_replaced_by_subclass(settings: BaseSettings) -> bool:
    """Return whether the project enables a subclass of this middleware, which replaces it."""
    keys = enabled_keys(settings, "DOWNLOADER_MIDDLEWARES", NoRobotsMiddleware)
    subclasses = [key for key in keys if key not in keys_of(NoRobotsMiddleware, dict.fromkeys(keys))]
    for key in subclasses:
        logger.info("%s replaces scrapy_norobots.NoRobotsMiddleware", key)
    return bool(subclasses)


def _warn_about_unused_hooks(cls: type[NoRobotsMiddleware]) -> None:
    """Warn about a subclass that was derived from Scrapy's own middleware before."""
    if hooks := unused_overrides(cls, NoRobotsMiddleware, RobotsTxtMiddleware):
        logger.warning(
            "%s overrides what only Scrapy's own robots.txt middleware calls, so this has no effect: %s. "
            '"Moving from RobotsTxtMiddleware" in the documentation says what to use instead',
            global_object_name(cls),
            ", ".join(hooks),
        )


def _warn_about_incomplete_setup(settings: BaseSettings) -> None:
    """Warn about settings that are missing if a project lists the middleware by hand, without the add-on."""
    for key in enabled_keys(settings, "DOWNLOADER_MIDDLEWARES", RobotsTxtMiddleware):
        cls = load_object(key)
        if cls is RobotsTxtMiddleware:
            logger.warning(
                "Scrapy's own robots.txt middleware is enabled too, and downloads each robots.txt once more: "
                "set %r to None in DOWNLOADER_MIDDLEWARES",
                key,
            )
        else:
            logger.warning(
                "%s, a subclass of Scrapy's robots.txt middleware, is enabled too: a request passes only if "
                "both allow it, and each robots.txt is downloaded twice. Derive the class from "
                "scrapy_norobots.NoRobotsMiddleware, or set it to None in DOWNLOADER_MIDDLEWARES",
                global_object_name(cls),
            )
    if MetaConfig.from_settings(settings).obey and not enabled_keys(
        settings, "SPIDER_MIDDLEWARES", RobotsMetaMiddleware
    ):
        logger.warning(
            "NOROBOTS_META has no effect: scrapy_norobots.RobotsMetaMiddleware is not in SPIDER_MIDDLEWARES. "
            'The add-on puts it there: ADDONS = {"scrapy_norobots.Addon": 500}'
        )
