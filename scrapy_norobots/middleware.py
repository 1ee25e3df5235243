"""`NoRobotsMiddleware`: each request waits for its origin's robots.txt, and is dropped if that forbids it.

A request's way: its origin is looked up in the registry. If it is there, the verdict follows at once and
nothing is awaited. If not, the request waits for the one download of that origin's robots.txt. A request
that may go on is left as it is; one that may not raises `RobotsForbidden`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NoReturn

from scrapy.exceptions import IgnoreRequest, NotConfigured

from scrapy_norobots import compat
from scrapy_norobots.access import Access, AccessKind, Rules, access_of
from scrapy_norobots.exceptions import RobotsForbidden, RobotsUnreachable
from scrapy_norobots.fetch import Fetcher
from scrapy_norobots.identity import Identity
from scrapy_norobots.origins import OriginRegistry
from scrapy_norobots.parser import ForeignRules, StrictRobotParser
from scrapy_norobots.settings import Config
from scrapy_norobots.standard import Decision, Origin, Reason, RobotsTxt, Verdict
from scrapy_norobots.standard.names import to_name

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.robotstxt import RobotParser

logger = logging.getLogger(__name__)


class NoRobotsMiddleware:
    """Downloader middleware; stands where Scrapy's own robots.txt middleware does, at 100.

    Reads the settings in `scrapy_norobots.settings`; obeys nothing, like Scrapy's own, unless
    `ROBOTSTXT_OBEY` is true. Requests with `dont_obey_robotstxt` in their meta pass.
    """

    def __init__(self, crawler: Crawler) -> None:
        """Raise `NotConfigured` if `ROBOTSTXT_OBEY` is false, `ValueError` for a bad setting."""
        config = Config.from_settings(crawler.settings)
        if not config.obey:
            logger.info("robots.txt is not obeyed: ROBOTSTXT_OBEY is False")
            raise NotConfigured
        assert crawler.stats is not None  # made before any middleware
        self._crawler = crawler
        self._stats = crawler.stats
        self._config = config
        self._identity = Identity(crawler, config.robot)
        self._fetcher = Fetcher(crawler, config, self._identity, self._count_exception)
        self._registry: OriginRegistry[Request] = OriginRegistry(
            self._load,
            ttl=config.ttl,
            error_ttl=config.error_ttl,
            origins_max=config.origins_max,
            memory_max=config.memory_max,
        )

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NoRobotsMiddleware:
        """Make the middleware of a crawler."""
        return cls(crawler)

    async def process_request(self, request: Request, spider: Spider | None = None) -> None:
        """Let a request pass, or raise `RobotsForbidden` (`RobotsUnreachable` where no rules were had).

        Waits only for an origin whose robots.txt is not in memory. `spider` is not used: older versions
        of Scrapy pass it.
        """
        if request.meta.get("dont_obey_robotstxt"):
            return
        url = request.url
        try:
            origin = Origin.of(url)
        except ValueError as exc:
            self._drop(request, self._bad_url(request, exc))
        if origin is None:
            return  # U9: there is no robots.txt to ask
        access = self._registry.get(origin)
        if access is None:
            access = await self._registry.wait(origin, request)
        robot = self._identity.robot(request)
        if not access.allowed(url, robot):
            self._drop(request, access.decide(url, robot))

    def _drop(self, request: Request, decision: Decision) -> NoReturn:
        logger.debug(
            "Forbidden by robots.txt: %(request)s (%(why)s)",
            {"request": request, "why": decision.why},
            extra={"spider": self._crawler.spider},
        )
        self._stats.inc_value("robotstxt/forbidden")
        if decision.reason in (Reason.RULE, Reason.PARSER):
            raise RobotsForbidden(decision)
        self._stats.inc_value("norobots/unreachable")
        raise RobotsUnreachable(decision)

    def _bad_url(self, request: Request, exc: ValueError) -> Decision:
        return Decision(
            verdict=Verdict.FORBIDDEN,
            url=request.url,
            robot=to_name(self._identity.robot(request)),
            reason=Reason.BAD_URL,
            detail=f"the URL has no origin: {exc}",
        )

    async def _load(self, origin: Origin, request: Request, known: Access | None) -> Access:
        """Download and judge the robots.txt of an origin, and say what came of it."""
        self._stats.inc_value("robotstxt/request_count")
        snapshot = await self._fetcher.fetch(origin, request)
        if snapshot.status is not None:
            self._stats.inc_value("robotstxt/response_count")
            self._stats.inc_value(f"robotstxt/response_status_count/{snapshot.status}")
        access = access_of(snapshot, self._config.status_policy, self._parse)
        self._stats.inc_value(f"norobots/origins/{access.kind.value}")
        if known is None or known.outcome != access.outcome:
            self._tell(origin, access)
        if access.rules is not None:
            await compat.send_robots_parsed(self._crawler, _as_parser(access.rules), request)
        return access

    def _parse(self, body: bytes) -> Rules:
        if self._config.parser is None:
            return RobotsTxt.parse(body)
        return ForeignRules(self._config.parser.from_crawler(self._crawler, body), body)

    def _tell(self, origin: Origin, access: Access) -> None:
        """Say once what an origin without rules means for the crawl."""
        if access.kind is AccessKind.RULES:
            return
        closed = access.kind is AccessKind.CLOSED
        logger.log(
            # That a site has no robots.txt is what most crawls meet, and no news.
            logging.WARNING if closed or access.temporary else logging.DEBUG,
            "%(what)s at %(origin)s: %(detail)s%(again)s.",
            {
                "what": "Nothing is fetched" if closed else "Everything may be fetched",
                "origin": origin,
                "detail": access.detail,
                "again": "; it is asked again later" if access.temporary else "",
            },
            extra={"spider": self._crawler.spider},
        )

    def _count_exception(self, exc: Exception) -> None:
        if not isinstance(exc, IgnoreRequest):
            self._stats.inc_value(f"robotstxt/exception_count/{type(exc)}")


def _as_parser(rules: Rules) -> RobotParser:
    if isinstance(rules, ForeignRules):
        return rules.parser
    assert isinstance(rules, RobotsTxt)
    return StrictRobotParser(rules)
