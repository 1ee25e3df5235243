"""`CrawlReport`: everything that a crawl reports about robots.txt: log lines, stats and report files.

The report logs and counts each origin that is loaded, and each request that is dropped. It writes a summary
when the crawl ends. A failure here does not affect the crawl: a path
that cannot be written is found before the first request, and a file that cannot be written at the end is an
ERROR in the log.
"""

from __future__ import annotations

import logging
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from scrapy_norobots.events import Events, Load
from scrapy_norobots.exceptions import RobotsUnreachable
from scrapy_norobots.features.report import files
from scrapy_norobots.features.report.counters import Counters
from scrapy_norobots.features.report.facts import facts_of, log_text
from scrapy_norobots.features.report.ineffective import IneffectiveRules
from scrapy_norobots.features.report.listing import Listing, list_files
from scrapy_norobots.features.report.page import RENDERERS
from scrapy_norobots.rules.access import AccessKind
from scrapy_norobots.rules.parser import StrictRobotParser, is_only_strict, strict_reading
from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.scrapy_api.log import LOGGED_MAX, CrawlLog, Named, spider_name
from scrapy_norobots.standard.decision import printable

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_norobots.exceptions import RobotsForbidden
    from scrapy_norobots.load.origins import OriginCache
    from scrapy_norobots.rules.access import Access
    from scrapy_norobots.settings import Config
    from scrapy_norobots.standard import Origin, Reason

logger = logging.getLogger(__name__)

# A file of more than this many bytes is examined in a thread: to search 32 KiB for lines without effect can
# take 0.1 s.
_SMALL_TO_EXAMINE = 8 * 1024

# How many origins a report lists: each takes about 0.7 kB of memory while the crawl runs.
_ROWS_MAX = 10_000

# The first `*` or `$` of a line, with the rest of it; and what precedes it in a Disallow line, unless it
# is in a comment. Such patterns are the most common cause of different readings.
_STARS = re.compile(rb"\*[^\n]*"), re.compile(rb"\$[^\n]*")
_BEFORE_STAR = re.compile(rb"(?i)[ \t]*disallow[ \t]*:[^#]*")


class Examined(NamedTuple):
    """What a report says of one file: its rules without effect, and whether it has patterns (`*` or `$`)."""

    ineffective: IneffectiveRules | None = None
    has_pattern: bool = False


def _has_pattern(body: bytes) -> bool:
    body = body.replace(b"\r", b"\n")
    return any(
        _BEFORE_STAR.fullmatch(body, body.rfind(b"\n", 0, star.start()) + 1, star.start())
        for stars in _STARS
        for star in stars.finditer(body)
    )


class CrawlReport:
    """The report of one crawl."""

    def __init__(self, crawler: Crawler, config: Config, started: datetime) -> None:
        """Prepare the report files. Raises `ValueError` if a path of `NOROBOTS_REPORT` cannot be written."""
        assert crawler.stats is not None  # made before any middleware
        self._crawler = crawler
        self._stats = crawler.stats
        self._dry_run = config.dry_run
        self._retries_closed = config.retry_closed > 0 and compat.is_own_crawl(crawler)
        self._spider_name = spider_name(crawler)
        self._log = CrawlLog(crawler, logger)
        self._started = started
        # Each file with its renderer. The path in the setting selects it, since a symbolic link may lead to a
        # file with another extension. The shell has no spider at this point, and no crawl to report.
        self._files = [
            (files.prepare(path, crawler.spider, self._started), RENDERERS[PurePath(path).suffix.lower()])
            for path in files.ReportConfig.from_settings(crawler.settings).paths
            if crawler.spider is not None
        ]
        self._without_rules = Named()
        self._with_ineffective = Named()
        self._thread = ThreadPoolExecutor(1, "norobots-report")  # starts when it is used
        self._start_drops = 0
        self._listings: list[Listing] = []
        self.counters = Counters(_ROWS_MAX if self._files else 0)

    def subscribe(self, events: Events) -> None:
        """Report what happens in the crawl."""
        counters = self.counters
        events.loaded.connect(self._load)
        events.passed.connect(lambda _request, _question, access: counters.add_pass(access.snapshot.origin))
        events.dropped.connect(self.dropped)
        events.exempt.connect(self._exempt)
        events.crawl_delay_kept.connect(counters.add_crawl_delay)
        events.usage_stated.connect(lambda _origin, stated: counters.usage.update(stated))
        events.waits.connect(self._wait)
        events.retry_failed.connect(self._retry_failed)
        events.wait_ended.connect(self._wait_ended)
        events.left_waiting.connect(lambda _: self._count("norobots/retry/left"))
        events.no_room.connect(self._no_room)
        events.closing.connect(self._close)

    async def _load(self, event: Load) -> None:
        if len(event.access.snapshot.body) > _SMALL_TO_EXAMINE:
            examined = await compat.in_thread(self._thread, partial(self.examine, event))
        else:
            examined = self.examine(event)
        self.loaded(event, examined)

    def examine(self, event: Load) -> Examined:
        """Search a file for what the report says of it; this takes time, and may run in a thread."""
        access = event.access
        robots = strict_reading(access.rules)
        if robots is None:
            return Examined()
        body = access.snapshot.body
        ineffective = None
        # The search is slow, so it is skipped if its result would not be shown.
        if self._files or not self._with_ineffective.is_full:
            ineffective = IneffectiveRules.of(body, multivalue=robots.multivalue)
        has_pattern = event.is_new and is_only_strict(access.rules) and _has_pattern(body)
        return Examined(ineffective, has_pattern)

    def loaded(self, event: Load, examined: Examined) -> None:
        """Report the load of an origin."""
        access, previous, ineffective = event.access, event.previous, examined.ineffective
        self._stats.inc_value(f"norobots/origins/{access.kind.value}")
        if access.stale:
            self._stats.inc_value("norobots/stale")
        if ineffective is not None:
            self._log_ineffective(access, ineffective)
        if examined.has_pattern:
            self.counters.add_pattern(access.snapshot.url)
        self.counters.load(access, previous, event.source, event.seconds, ineffective)
        if previous is None or (previous.outcome, previous.stale) != (access.outcome, access.stale):
            self._log_outcome(access, is_first=previous is None)

    def dropped(
        self, request: Request, _url: str, _robot: str | bytes, error: RobotsForbidden, access: Access | None
    ) -> None:
        """Report a request that is dropped with `error`; in a dry run, one that would be."""
        decision = error.decision
        self._log_drop(request, error, access)
        self.counters.drop(decision, access)
        if self._dry_run:
            self._stats.inc_value("norobots/would_drop")
            return
        self._stats.inc_value("robotstxt/forbidden")
        if isinstance(error, RobotsUnreachable):
            self._stats.inc_value("norobots/unreachable")
        else:
            self._stats.inc_value(f"norobots/forbidden_by/{decision.parser or StrictRobotParser.__name__}")
            if decision.decided_for:
                self._stats.inc_value(f"norobots/forbidden_for/{decision.decided_for}")

    def _count(self, stat: str) -> None:
        """Count a request in the stats, and under the last part of the stat's name in the summary."""
        self.counters.requests[stat.rpartition("/")[2]] += 1
        self._stats.inc_value(stat)

    def _exempt(self, _request: Request, _url: str, _robot: str | bytes, reason: Reason | None) -> None:
        if reason is None:
            self._count("norobots/overridden")

    def _wait_ended(self, _request: Request, is_given_up: bool) -> None:
        self._count("norobots/retry/given_up" if is_given_up else "norobots/retry/came_back")

    def _wait(self, request: Request, origin: Origin, seconds: float, is_first: bool) -> None:
        self._count("norobots/retry/waited")
        if is_first:
            self._log(
                self._level(origin),
                "Requests to %s wait until %s, when its robots.txt is downloaded again "
                "(NOROBOTS_RETRY_CLOSED limits the retries)",
                printable(str(origin)),
                _in(seconds),
            )
        self._log(logging.DEBUG, "Waits for a closed site: %s", request)

    def _retry_failed(self, access: Access, seconds: float | None) -> None:
        what = "no longer wait, but are dropped (NOROBOTS_RETRY_CLOSED)"
        if seconds is not None:
            what = f"wait until {_in(seconds)}, when robots.txt is downloaded again"
        origin = access.snapshot.origin
        shown = printable(str(origin))
        self._log(self._level(origin), "%s: requests to %s %s", access.detail, shown, what)

    def _no_room(self, _request: Request, most: int) -> None:
        self._count("norobots/retry/no_room")
        if self.counters.requests["no_room"] == 1:
            self._log(
                logging.WARNING,
                "The requests that wait for closed sites have reached the limit, %d: further ones are "
                "dropped (NOROBOTS_RETRY_CLOSED_MAX)",
                most,
            )

    async def _close(self, reason: str, all_origins: OriginCache, robot: str | bytes) -> None:
        try:
            if self._files:
                # The files of most interest, while they are in memory.
                origins = self.counters.of_most_interest()
                accesses = list(filter(None, map(all_origins.latest, origins)))
                work = partial(list_files, accesses, robot, self.counters.drops())
                self._listings = await compat.in_thread(self._thread, work)
        finally:
            self._thread.shutdown(wait=False)
        self.finish(reason)

    def finish(self, reason: str) -> None:
        """Write the final stats, the summary in the log, and the files that `NOROBOTS_REPORT` names."""
        from scrapy_norobots import __version__  # noqa: PLC0415  # the package imports this one

        self._stats.set_value("norobots/passed", self.counters.requests["passed"])
        crawl = {
            "generator": f"scrapy-norobots {__version__}",
            "spider": printable(self._spider_name),
            "started": self._started.isoformat(timespec="seconds"),
            "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "reason": printable(str(reason)),  # users give any object to CloseSpider
            "dry_run": self._dry_run,
        }
        facts = facts_of(self.counters, crawl, self._listings)
        self._log(logging.INFO, "%s", log_text(facts))
        for path, render in self._files:
            try:
                written = files.write(path, render(facts).encode(), self._started)
            except OSError as exc:
                self._log(logging.ERROR, "NOROBOTS_REPORT: the report %s could not be written: %s", path, exc)
            else:
                self._log(logging.INFO, "The robots.txt report was written to %s", printable(str(written)))

    def _level(self, origin: Origin) -> int:
        """Return the level of lines about a closed origin: INFO if the line that says why was a WARNING."""
        return logging.INFO if origin in self._without_rules else logging.DEBUG

    def _lets_requests_wait(self) -> bool:
        """Return whether requests to sites that are closed for now wait: only in `RobotsScheduler`."""
        if not self._retries_closed:
            return False
        scheduler = getattr(compat.engine_slot(self._crawler), "scheduler", None)
        return getattr(scheduler, "parking", None) is not None

    def _log_outcome(self, access: Access, *, is_first: bool) -> None:
        """Log what an origin without fresh rules means for the crawl, and log when it has rules again."""
        level = logging.WARNING
        if access.stale:
            what = "still follow the cached rules"
        elif access.kind is AccessKind.CLOSED:
            are_retried = access.is_closed_for_now and self._lets_requests_wait()
            what = "are not sent" if are_retried else "are dropped"
            what = "would be dropped" if self._dry_run else what
        elif access.kind is AccessKind.OPEN:
            what = "are allowed"
            # A site without a robots.txt is normal; a failure, or a redirect that cannot be followed, is not.
            level = logging.WARNING if access.temporary else logging.DEBUG
        elif is_first:
            return
        else:
            what, level = "now follow its rules", logging.INFO
        origin = access.snapshot.origin
        why = f" ({access.setting})" if access.setting else ""
        seconds = f"{access.lifetime:.2g}" if access.lifetime < 10 else f"{access.lifetime:.0f}"
        again = f"; robots.txt is downloaded again after {seconds} s" if access.temporary else ""
        is_new = level > logging.DEBUG and self._without_rules.take(origin)
        if origin not in self._without_rules:
            level = logging.DEBUG
        shown = printable(str(origin))
        self._log(level, "%s: requests to %s %s%s%s", access.detail, shown, what, why, again)
        if is_new and self._without_rules.is_full:
            self._log(
                logging.WARNING,
                "%d sites without fresh rules were reported; further ones are logged at DEBUG level",
                LOGGED_MAX,
            )

    def _log_drop(self, request: Request, error: RobotsForbidden, access: Access | None) -> None:
        has_no_rules = isinstance(error, RobotsUnreachable)
        # For a site without rules, the log already has a line.
        is_news = access is None or not has_no_rules
        level = logging.DEBUG
        if is_news and compat.is_start_request(request):
            # The user asked for this URL, and the crawl may do nothing else.
            self._start_drops += 1
            if self._start_drops <= LOGGED_MAX:
                level = logging.WARNING
        verdict = "dropped" if has_no_rules else "forbidden by robots.txt"
        said = f"Would be {verdict}" if self._dry_run else verdict.capitalize()
        self._log(level, "%s: %s (%s)", said, request, error.decision.why)
        if level == logging.WARNING and self._start_drops == LOGGED_MAX:
            self._log(logging.WARNING, "Further dropped start requests are logged at DEBUG level")

    def _log_ineffective(self, access: Access, ineffective: IneffectiveRules) -> None:
        if not self._with_ineffective.take(access.snapshot.origin):
            return
        url = printable(access.snapshot.url)
        self._log(logging.WARNING, "%s has lines without effect: %s.", url, ineffective.text)
        if self._with_ineffective.is_full:
            self._log(
                logging.WARNING,
                "%d robots.txt files with such lines were logged; NOROBOTS_REPORT lists all of them",
                LOGGED_MAX,
            )


def _in(seconds: float) -> str:
    """Return the local time in some seconds, for the log."""
    return f"{datetime.now() + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}"
