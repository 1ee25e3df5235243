"""`CrawlReport`: everything that a crawl reports about robots.txt: log lines, stats and report files.

The loader reports each origin that it loads, and the middleware each request that it drops. The report logs
and counts them, and writes a summary when the crawl ends. A failure here does not affect the crawl: a path
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
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_norobots import compat
from scrapy_norobots.access import AccessKind
from scrapy_norobots.crawl_delay import CrawlDelay
from scrapy_norobots.exceptions import RobotsUnreachable
from scrapy_norobots.parser import StrictRobotParser, crawl_delays, is_only_strict, strict_reading
from scrapy_norobots.report import files
from scrapy_norobots.report.counters import Counters
from scrapy_norobots.report.facts import facts_of, log_text
from scrapy_norobots.report.ineffective import IneffectiveRules
from scrapy_norobots.report.listing import Listing, list_files
from scrapy_norobots.report.page import RENDERERS
from scrapy_norobots.standard import Origin
from scrapy_norobots.standard.decision import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_norobots.access import Access
    from scrapy_norobots.exceptions import RobotsForbidden
    from scrapy_norobots.settings import Config

logger = logging.getLogger(__name__)

# The log names at most this many sites without fresh rules, files with ineffective lines, and dropped start
# requests. A broad crawl meets thousands of dead hosts, every fourth large site has such lines, and a crawl
# may have a million start requests.
_LOGGED_MAX = 20

# How many origins a report lists: each takes about 0.7 kB of memory while the crawl runs.
_ROWS_MAX = 10_000

# A `*` or `$` in a Disallow line, before a comment: the most common cause of different readings.
_PATTERN = re.compile(rb"(?i)(?:^|[\r\n])[ \t]*disallow[ \t]*:[^#\r\n]*[*$]")


def spider_name(crawler: Crawler) -> str:
    """Return the name of a crawl's spider, for log lines and file names."""
    return str(getattr(crawler.spider or crawler.spidercls, "name", None) or "spider")


class _Named(set[Origin]):
    """The first `_LOGGED_MAX` origins of a kind, which the log names."""

    @property
    def is_full(self) -> bool:
        """Whether the log names no further ones."""
        return len(self) >= _LOGGED_MAX

    def take(self, origin: Origin) -> bool:
        """Add an origin if there is room; return whether it was added now."""
        is_new = origin not in self and not self.is_full
        if is_new:
            self.add(origin)
        return is_new


class Examined(NamedTuple):
    """What a report says of one file: its rules without effect, and whether it has patterns (`*` or `$`).

    `crawl_delay` is None if Crawl-delay is not obeyed.
    """

    ineffective: IneffectiveRules | None = None
    has_pattern: bool = False
    crawl_delay: CrawlDelay | None = None


class CrawlReport:
    """The report of one crawl. Requests that pass are counted in `counters` directly."""

    def __init__(self, crawler: Crawler, config: Config) -> None:
        """Prepare the report files. Raises `ValueError` if a path of `NOROBOTS_REPORT` cannot be written."""
        assert crawler.stats is not None  # made before any middleware
        self._crawler = crawler
        self._stats = crawler.stats
        self._dry_run = config.dry_run
        self._crawl_delay_max = config.crawl_delay_max
        self._retries_closed = config.retry_closed > 0 and compat.is_own_crawl(crawler)
        self._spider_name = spider_name(crawler)
        self.started = datetime.now(timezone.utc)
        # Each file with its renderer. The path in the setting selects it, since a symbolic link may lead to a
        # file with another extension. The shell has no spider at this point, and no crawl to report.
        self._files = [
            (files.prepare(path, crawler.spider, self.started), RENDERERS[PurePath(path).suffix.lower()])
            for path in config.report
            if crawler.spider is not None
        ]
        self._without_rules = _Named()
        self._with_ineffective = _Named()
        self._with_odd_delay = _Named()
        self._start_drops = 0
        self._listings: list[Listing] = []
        self._has_logged_no_room = False
        self.counters = Counters(_ROWS_MAX if self._files else 0)

    def examine(self, access: Access, previous: Access | None, robot: str | bytes) -> Examined:
        """Search a file for what the report says of it; this takes time, and may run in a thread."""
        delay = None
        if self._crawl_delay_max:
            delay = CrawlDelay.of(crawl_delays(access.rules, robot), self._crawl_delay_max)
        robots = strict_reading(access.rules)
        if robots is None:
            return Examined(crawl_delay=delay)
        body = access.snapshot.body
        ineffective = None
        # The search is slow, so it is skipped if its result would not be shown.
        if self._files or not self._with_ineffective.is_full:
            ineffective = IneffectiveRules.of(body, multivalue=robots.multivalue)
        is_new = previous is None or previous.rules is None
        has_pattern = is_new and is_only_strict(access.rules) and _PATTERN.search(body) is not None
        return Examined(ineffective, has_pattern, delay)

    def loaded(
        self, access: Access, previous: Access | None, source: str, seconds: float, examined: Examined
    ) -> None:
        """Report the load of an origin; `previous` is the access that it replaces, if any."""
        ineffective = examined.ineffective
        self._stats.inc_value(f"norobots/origins/{access.kind.value}")
        if access.stale:
            self._stats.inc_value("norobots/stale")
        if ineffective is not None:
            self._log_ineffective(access, ineffective)
        if examined.has_pattern:
            self.counters.add_pattern(access.snapshot.url)
        self.counters.load(access, previous, source, seconds, ineffective)
        if examined.crawl_delay is not None:
            self._report_delay(access, previous, examined.crawl_delay)
        if previous is None or (previous.outcome, previous.stale) != (access.outcome, access.stale):
            self._log_outcome(access, is_first=previous is None)

    def dropped(self, request: Request, error: RobotsForbidden, access: Access | None) -> None:
        """Report a request that is dropped with `error`; in a dry run, one that would be."""
        decision = error.decision
        # For a site without rules, the log already has a line.
        is_news = access is None or not isinstance(error, RobotsUnreachable)
        self._log_drop(request, decision.why, is_news=is_news)
        self.counters.drop(decision, access)
        if self._dry_run:
            self._stats.inc_value("norobots/would_drop")
            return
        self._stats.inc_value("robotstxt/forbidden")
        if isinstance(error, RobotsUnreachable):
            self._stats.inc_value("norobots/unreachable")
        else:
            self._stats.inc_value(f"norobots/forbidden_by/{decision.parser or StrictRobotParser.__name__}")

    def set_aside(self, request: Request, origin: Origin, seconds: float, *, is_first: bool) -> None:
        """Report a request that waits for a closed origin, for some seconds.

        `is_first` is true if no other waits for this origin.
        """
        self.counters.waited += 1
        self._stats.inc_value("norobots/retry/waited")
        if is_first:
            self._log(
                self._level(origin),
                "Requests to %s wait until %s, when its robots.txt is downloaded again "
                "(NOROBOTS_RETRY_CLOSED limits the retries)",
                printable(str(origin)),
                _in(seconds),
            )
        logger.debug("Set aside: %s", request, extra={"spider": self._crawler.spider})

    def still_closed(self, access: Access, seconds: float) -> None:
        """Report a retry that failed, after which requests wait for some seconds more."""
        self._log(
            self._level(access.snapshot.origin),
            "%s: requests to %s wait until %s, when robots.txt is downloaded again",
            access.detail,
            printable(str(access.snapshot.origin)),
            _in(seconds),
        )

    def no_longer_retried(self, access: Access) -> None:
        """Report the last retry of an origin: it failed, and requests are dropped."""
        self._log(
            self._level(access.snapshot.origin),
            "%s: requests to %s are no longer retried, but dropped (NOROBOTS_RETRY_CLOSED)",
            access.detail,
            printable(str(access.snapshot.origin)),
        )

    def tried_again(self, *, is_given_up: bool) -> None:
        """Report a request that has waited: its origin is no longer closed, or the request is given up."""
        if is_given_up:
            self.counters.given_up += 1
            self._stats.inc_value("norobots/retry/given_up")
        else:
            self.counters.came_back += 1
            self._stats.inc_value("norobots/retry/came_back")

    def left_waiting(self) -> None:
        """Report a request that goes back to the scheduler because the crawl closes."""
        self.counters.left += 1
        self._stats.inc_value("norobots/retry/left")

    def no_room_to_wait(self, most: int) -> None:
        """Report a request that is dropped because too many others wait."""
        self._stats.inc_value("norobots/retry/no_room")
        if not self._has_logged_no_room:
            self._has_logged_no_room = True
            self._log(
                logging.WARNING,
                "The requests that wait for closed sites have reached the limit, %d: further ones are "
                "dropped (NOROBOTS_RETRY_CLOSED_MAX)",
                most,
            )

    def overridden(self) -> None:
        """Report a request that was not checked because of `dont_obey_robotstxt`."""
        self.counters.overridden += 1
        self._stats.inc_value("norobots/overridden")

    async def list_files(self, latest: Callable[[Origin], Access | None], robot: str | bytes) -> None:
        """List the files of most interest for the report, as `robot` reads them, while they are in memory."""
        if not self._files:
            return
        accesses = list(filter(None, map(latest, self.counters.of_most_interest())))
        drops = self.counters.drops()
        thread = ThreadPoolExecutor(1, "norobots-listing")
        try:
            self._listings = await compat.in_thread(thread, partial(list_files, accesses, robot, drops))
        finally:
            thread.shutdown(wait=False)

    def finish(self, reason: str) -> None:
        """Write the final stats, the summary in the log, and the files that `NOROBOTS_REPORT` names."""
        from scrapy_norobots import __version__  # noqa: PLC0415  # the package imports this one

        self._stats.set_value("norobots/passed", self.counters.passed)
        crawl = {
            "generator": f"scrapy-norobots {__version__}",
            "spider": printable(self._spider_name),
            "started": self.started.isoformat(timespec="seconds"),
            "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "reason": printable(reason),
            "dry_run": self._dry_run,
        }
        facts = facts_of(self.counters, crawl, self._listings)
        self._log(logging.INFO, "%s", log_text(facts))
        for path, render in self._files:
            try:
                written = files.write(path, render(facts).encode(), self.started)
            except OSError as exc:
                self._log(logging.ERROR, "NOROBOTS_REPORT: the report %s could not be written: %s", path, exc)
            else:
                self._log(logging.INFO, "The robots.txt report was written to %s", written)

    def _level(self, origin: Origin) -> int:
        """Return the level of lines about a closed origin: INFO if the line that says why was a WARNING."""
        return logging.INFO if origin in self._without_rules else logging.DEBUG

    def _log_outcome(self, access: Access, *, is_first: bool) -> None:
        """Log what an origin without fresh rules means for the crawl, and log when it has rules again."""
        level = logging.WARNING
        if access.stale:
            what = "still follow the cached rules"
        elif access.kind is AccessKind.CLOSED:
            are_retried = self._retries_closed and access.is_closed_for_now
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
                _LOGGED_MAX,
            )

    def _log_drop(self, request: Request, why: str, *, is_news: bool) -> None:
        level = logging.DEBUG
        if is_news and compat.is_start_request(request):
            # The user asked for this URL, and the crawl may do nothing else.
            self._start_drops += 1
            if self._start_drops <= _LOGGED_MAX:
                level = logging.WARNING
        verdict = "Would be forbidden" if self._dry_run else "Forbidden"
        self._log(level, "%s by robots.txt: %s (%s)", verdict, request, why)
        if level == logging.WARNING and self._start_drops == _LOGGED_MAX:
            self._log(logging.WARNING, "Further forbidden start requests are logged at DEBUG level")

    def _log_ineffective(self, access: Access, ineffective: IneffectiveRules) -> None:
        if not self._with_ineffective.take(access.snapshot.origin):
            return
        url = printable(access.snapshot.url)
        self._log(logging.WARNING, "%s has lines without effect: %s.", url, ineffective)
        if self._with_ineffective.is_full:
            self._log(
                logging.WARNING,
                "%d such files were reported; set NOROBOTS_REPORT to list the rest",
                _LOGGED_MAX,
            )

    def _report_delay(self, access: Access, previous: Access | None, delay: CrawlDelay) -> None:
        origin, url = access.snapshot.origin, printable(access.snapshot.url)
        is_new = previous is None or previous.rules is None
        self.counters.add_crawl_delay(origin, delay.kept, is_new=is_new)
        if delay.kept:
            self._stats.inc_value("norobots/crawl_delay/kept")
            self._stats.max_value("norobots/crawl_delay/longest", delay.kept)
        is_odd = delay.invalid or (delay.asked is not None and delay.asked > delay.kept)
        level = logging.WARNING if is_odd and self._with_odd_delay.take(origin) else logging.DEBUG
        if delay.invalid:
            self._stats.inc_value("norobots/crawl_delay/invalid")
            self._log(level, "%s has an invalid Crawl-delay, %r, which is ignored", url, delay.invalid)
        elif is_odd:
            self._stats.inc_value("norobots/crawl_delay/shortened")
            self._log(
                level,
                "%s asks for a Crawl-delay of %g s; NOROBOTS_CRAWL_DELAY_MAX limits it to %g s",
                url,
                delay.asked,
                delay.kept,
            )

    def _log(self, level: int, message: str, *arguments: Any) -> None:
        logger.log(level, message, *arguments, extra={"spider": self._crawler.spider})


def _in(seconds: float) -> str:
    """Return the local time in some seconds, for the log."""
    return f"{datetime.now() + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}"
