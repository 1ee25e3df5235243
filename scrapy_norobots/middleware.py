"""`NoRobotsMiddleware`: each request waits for its origin's robots.txt, and is dropped if that forbids it.

A request's way: its origin is looked up in the registry. If it is there, the verdict follows at once and
nothing is awaited. If not, the request waits for the one download of that origin's robots.txt. A request
that may go on is left as it is; one that may not raises `RobotsForbidden`.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy import signals
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import IgnoreRequest, NotConfigured

from scrapy_norobots import compat
from scrapy_norobots.access import Access, AccessKind, Judge
from scrapy_norobots.exceptions import RobotsForbidden, RobotsUnreachable
from scrapy_norobots.fetch import OWN_REQUEST, Fetcher
from scrapy_norobots.gate import Gate
from scrapy_norobots.holding import Holding
from scrapy_norobots.identity import Identity
from scrapy_norobots.metatag import RobotsMetaMiddleware
from scrapy_norobots.origins import OriginRegistry
from scrapy_norobots.overrides import is_overridden, leads_elsewhere
from scrapy_norobots.parser import Reader, StrictRobotParser, as_parser
from scrapy_norobots.report import CrawlReport, spider_name
from scrapy_norobots.serving import answer_from, can_be_answered
from scrapy_norobots.settings import Config, MetaConfig, check_place, enabled_keys, keys_of
from scrapy_norobots.sharing import Sharing
from scrapy_norobots.standard import Decision, Origin, Reason, Verdict
from scrapy_norobots.standard.decision import printable
from scrapy_norobots.standard.names import to_name
from scrapy_norobots.standard.urls import split
from scrapy_norobots.stores import open_store, without_password
from scrapy_norobots.stores.guard import Guarded

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from scrapy_norobots.snapshot import Snapshot

logger = logging.getLogger(__name__)

# How many dropped start requests are warnings: a list of a million is not to fill the log.
_START_DROPS_TOLD = 20


class NoRobotsMiddleware:
    """Downloader middleware; stands where Scrapy's own robots.txt middleware does, at 100.

    Reads the settings in `scrapy_norobots.settings`; obeys nothing, like Scrapy's own, unless
    `ROBOTSTXT_OBEY` is true. Requests with `dont_obey_robotstxt` in their meta pass.
    """

    def __init__(self, crawler: Crawler) -> None:
        """Raise `NotConfigured` if `ROBOTSTXT_OBEY` is false, `ValueError` for a bad setting."""
        config = Config.from_settings(crawler.settings)
        if not config.obey:
            logger.info("robots.txt is not obeyed by %s: ROBOTSTXT_OBEY is False", spider_name(crawler))
            raise NotConfigured
        assert crawler.stats is not None  # made before any middleware
        _warn_of_half_a_setup(crawler.settings)
        self._crawler = crawler
        self._stats = crawler.stats
        self._config = config
        self._report = CrawlReport(crawler, config)
        self._tally = self._report.tally
        self._start_drops = 0
        self._identity = Identity(crawler, config.robot)
        reader = Reader(crawler, config.parser, config.also_obey, multivalue=config.multivalue)
        self._judge = Judge(config.status_policy, config.freshness, reader.read)
        self._fetcher = Fetcher(crawler, config, self._count_exception)
        self._holding = Holding(
            crawler,
            OWN_REQUEST,
            per_origin=config.held_per_origin,
            total=config.held_max,
            fetches=config.concurrent_fetches,
        )
        self._gate = Gate(crawler, self._holding, OWN_REQUEST)
        self._sharing = self._open_store()
        self._registry: OriginRegistry[Request] = OriginRegistry(
            self._load,
            origins_max=config.origins_max,
            memory_max=config.memory_max,
            on_leave=self._tally.use,
        )
        if config.dry_run:
            logger.warning("NOROBOTS_DRY_RUN: what robots.txt forbids is told and counted, and crawled")
        crawler.signals.connect(self._spider_closed, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NoRobotsMiddleware:
        """Make the middleware of a crawler."""
        check_place(crawler.settings, NoRobotsMiddleware, "DOWNLOADER_MIDDLEWARES")
        if cls is NoRobotsMiddleware and _has_heir(crawler.settings):
            raise NotConfigured
        return cls(crawler)

    async def process_request(self, request: Request, spider: Spider | None = None) -> Response | None:
        """Let a request pass, or raise `RobotsForbidden` (`RobotsUnreachable` where no rules were had).

        Waits only for an origin whose robots.txt is not in memory. A request for a robots.txt is answered
        from the snapshot. `spider` is not used: older versions of Scrapy pass it. Raises `ValueError` for
        a ``norobots_url`` in the request's meta that is no http or https URL.
        """
        meta = request.meta
        if meta.get("dont_obey_robotstxt") and is_overridden(request):
            self._count_override(request)
            return None
        url = request.url
        if meta.get("norobots_url") is not None and not leads_elsewhere(request):
            url = _url_that_counts(request)
        try:
            origin, target = split(url)
        except ValueError as exc:
            self._drop(request, self._bad_url(request, exc))
            return None
        if origin is None or target is None:
            return None  # U9: there is no robots.txt to ask
        if target == "/robots.txt":
            return await self._robotstxt(origin, request)
        access = self._registry.get(origin)
        if access is None:
            access = await self.access(origin, request, target)
            self._tally.use(origin, 1)
        robot = self._identity.robot(request)
        for spelling in compat.spellings(target):
            if access.forbids(origin, spelling, robot):
                sent = url if spelling == target else f"{origin}{spelling}"
                self._drop(request, access.decide(sent, robot), access)
                return None
        self._tally.passed += 1
        return None

    async def _robotstxt(self, origin: Origin, request: Request) -> Response | None:
        """Answer a spider's own request for a robots.txt, which is always allowed (U7), if possible."""
        if not self._config.share_robotstxt or not can_be_answered(request):
            return None
        access = await self.access(origin, request)
        if not _can_answer(access):
            return None  # what the spider makes of that is its own business
        self._stats.inc_value("norobots/shared")
        request.meta["dont_cache"] = True  # Scrapy's HTTP cache must not take it for the site's answer
        return answer_from(access.snapshot, request)

    def _goes_on(self, access: Access, request: Request, target: str | None) -> bool:
        if target is None:
            return not _can_answer(access)
        robot, origin = self._identity.robot(request), access.snapshot.origin
        return self._config.dry_run or not any(
            access.forbids(origin, spelling, robot) for spelling in compat.spellings(target)
        )

    async def access(self, origin: Origin, request: Request, target: str | None = None) -> Access:
        """Return what may be fetched at the origin of a request, once its robots.txt is in memory.

        `target` is what is asked for there; None for a robots.txt, which is answered if that is possible. If
        the request will go on, there is a place for it too.
        """
        with self._holding.hold(origin, request):
            access = self._registry.peek(origin) or await self._registry.wait(origin, request)
            # What counted before the wait for a place may have had its time; and after another wait for what
            # counts then, the place is no longer there. What comes then is not looked at again: if it counts
            # for no time at all, that would have no end.
            if self._goes_on(access, request, target) and await self._gate.has_waited(request):
                known = self._registry.peek(origin)
                if known is not None:
                    return known
                access = await self._registry.wait(origin, request)
                if self._goes_on(access, request, target):
                    await self._gate.has_waited(request)
            return access

    def judge(self, snapshot: Snapshot) -> Access:
        """Say what a download means by this crawl's settings."""
        return self._judge.judge(snapshot)

    def _drop(self, request: Request, decision: Decision, access: Access | None = None) -> None:
        """Drop a request, by raising why; in a dry run, only tell of it and count it."""
        self._tell_of_drop(request, decision)
        self._tally.drop(decision, access)
        if self._config.dry_run:
            self._stats.inc_value("norobots/would_drop")
            return
        self._stats.inc_value("robotstxt/forbidden")
        if decision.reason in (Reason.RULE, Reason.PARSER):
            self._stats.inc_value(f"norobots/forbidden_by/{decision.parser or StrictRobotParser.__name__}")
            raise RobotsForbidden(decision)
        self._stats.inc_value("norobots/unreachable")
        if access is None:
            raise RobotsUnreachable(decision)
        retry_after = self._registry.remaining(access.snapshot.origin) if access.temporary else None
        raise RobotsUnreachable(decision, retry_after) from access.snapshot.exception

    def _tell_of_drop(self, request: Request, decision: Decision) -> None:
        level = logging.DEBUG
        if compat.is_start_request(request):
            # The user asked for this one, and may see nothing else of the crawl.
            self._start_drops += 1
            if self._start_drops <= _START_DROPS_TOLD:
                level = logging.WARNING
        logger.log(
            level,
            "%(verdict)s by robots.txt: %(request)s (%(why)s)",
            {
                "verdict": "Would be forbidden" if self._config.dry_run else "Forbidden",
                "request": request,
                "why": decision.why,
            },
            extra={"spider": self._crawler.spider},
        )
        if level == logging.WARNING and self._start_drops == _START_DROPS_TOLD:
            logger.warning(
                "Of further start requests that robots.txt forbids only DEBUG lines will tell",
                extra={"spider": self._crawler.spider},
            )

    def _bad_url(self, request: Request, exc: ValueError) -> Decision:
        return Decision(
            verdict=Verdict.FORBIDDEN,
            url=request.url,
            robot=to_name(self._identity.robot(request)),
            reason=Reason.BAD_URL,
            detail=f"the URL has no origin: {exc}",
        )

    async def _load(self, origin: Origin, request: Request, known: Access | None) -> Access:
        """Find out what may be fetched at an origin, and say so."""

        async def download(known: Access | None) -> Access:
            return await self._download(origin, request, known)

        started, is_kept = time.monotonic(), False
        if self._sharing is None:
            access = await download(known)
        else:
            access, is_kept = await self._sharing.load(origin, known, download)
            self._stats.inc_value("norobots/store/hits" if is_kept else "norobots/store/misses")
        self._stats.inc_value(f"norobots/origins/{access.kind.value}")
        if access.stale:
            self._stats.inc_value("norobots/stale")
        source = "store" if is_kept else "network"
        self._report.load(access, known, source, time.monotonic() - started)
        self._tell(origin, access, known)
        if access.rules is not None and (known is None or access.rules is not known.rules):
            await compat.send_robots_parsed(self._crawler, as_parser(access.rules), request)
        return access

    async def _download(self, origin: Origin, request: Request, known: Access | None) -> Access:
        """Download and judge the robots.txt of an origin."""
        self._stats.inc_value("robotstxt/request_count")
        earlier = known.snapshot if known is not None and known.rules is not None else None
        with self._holding.fetch(origin):
            snapshot = await self._fetcher.fetch(origin, request, earlier)
        if snapshot.status is not None:
            self._stats.inc_value("robotstxt/response_count")
            self._stats.inc_value(f"robotstxt/response_status_count/{snapshot.status}")
        return self._judge.judge(snapshot, known)

    def _open_store(self) -> Sharing | None:
        value = self._config.store
        shown = without_password(value)
        try:
            store = open_store(value, self._config.store_max, has_asyncio=compat.has_asyncio(self._crawler))
        except (ImportError, ValueError) as exc:
            raise ValueError(f"NOROBOTS_STORE = {shown!r}: {exc}") from None
        if store is None:
            return None
        logger.info("NOROBOTS_STORE is %s", shown)
        self._crawler.signals.connect(self._close_store, signals.spider_closed)
        return Sharing(
            Guarded(store, f"NOROBOTS_STORE {shown}", self._count_store_failure),
            self._judge,
            longest=self._config.longest_download,
            is_closing=lambda: compat.is_closing(self._crawler),
        )

    async def _close_store(self) -> None:
        assert self._sharing is not None
        await self._sharing.close()

    def _count_store_failure(self) -> None:
        self._stats.inc_value("norobots/store/failures")

    def _tell(self, origin: Origin, access: Access, known: Access | None) -> None:
        """Say what an origin without fresh rules means for the crawl; once, not each time."""
        if known is not None and (known.outcome, known.stale) == (access.outcome, access.stale):
            return
        level = logging.WARNING
        if access.stale:
            what = "Rules stay in force"
        elif access.kind is AccessKind.CLOSED:
            what = "Nothing would be fetched" if self._config.dry_run else "Nothing is fetched"
        elif access.kind is AccessKind.OPEN:
            what = "Everything may be fetched"
            # That a site has no robots.txt is what most crawls meet, and no news; a failure or a redirect
            # that leads nowhere is.
            level = logging.WARNING if access.temporary or access.outcome == "3xx" else logging.DEBUG
        elif known is None:
            return
        else:
            what, level = "Rules count", logging.INFO
        logger.log(
            level,
            "%(what)s at %(origin)s: %(detail)s%(again)s.",
            {
                "what": what,
                "origin": printable(str(origin)),
                "detail": access.explanation,
                "again": f"; it is asked again in {access.lifetime:g} s" if access.temporary else "",
            },
            extra={"spider": self._crawler.spider},
        )

    def _count_override(self, request: Request) -> None:
        if OWN_REQUEST not in request.meta:
            self._tally.overridden += 1
            self._stats.inc_value("norobots/overridden")

    def _spider_closed(self, reason: str) -> None:
        self._registry.clear()  # it has counted requests
        self._stats.set_value("norobots/passed", self._tally.passed)
        self._report.finish(reason)

    def _count_exception(self, exc: Exception) -> None:
        if not isinstance(exc, IgnoreRequest):
            self._stats.inc_value(f"robotstxt/exception_count/{type(exc)}")


def _can_answer(access: Access) -> bool:
    """Whether a request for a robots.txt can be answered from what is known of an origin."""
    return not access.temporary and access.outcome != "3xx"


def _has_heir(settings: BaseSettings) -> bool:
    """Whether the project has a middleware of its own that inherits from this one, and takes its place."""
    keys = enabled_keys(settings, "DOWNLOADER_MIDDLEWARES", NoRobotsMiddleware)
    heirs = [key for key in keys if key not in keys_of(NoRobotsMiddleware, dict.fromkeys(keys))]
    for key in heirs:
        logger.info("%s is in the place of scrapy_norobots.NoRobotsMiddleware", key)
    return bool(heirs)


def _warn_of_half_a_setup(settings: BaseSettings) -> None:
    """Say what whoever lists this middleware by hand may have forgotten; the add-on does it all."""
    for key in enabled_keys(settings, "DOWNLOADER_MIDDLEWARES", RobotsTxtMiddleware):
        logger.warning(
            "Scrapy's own robots.txt middleware is enabled too, and asks each site once more: "
            "set %r to None in DOWNLOADER_MIDDLEWARES",
            key,
        )
    if MetaConfig.from_settings(settings).obey and not enabled_keys(
        settings, "SPIDER_MIDDLEWARES", RobotsMetaMiddleware
    ):
        logger.warning(
            "NOROBOTS_META has no effect: scrapy_norobots.RobotsMetaMiddleware is not in SPIDER_MIDDLEWARES; "
            'it is with ADDONS = {"scrapy_norobots.Addon": 500}'
        )


def _url_that_counts(request: Request) -> str:
    """Return the URL whose rules count for a request that goes to a service on another host."""
    url = request.meta["norobots_url"]
    try:
        if isinstance(url, str) and Origin.of(url) is not None and urlsplit(url).hostname:
            return url
        problem = "it must be an http or https URL"
    except ValueError as exc:
        problem = str(exc)
    raise ValueError(f"norobots_url = {url!r} in the meta of {request}: {problem}")
