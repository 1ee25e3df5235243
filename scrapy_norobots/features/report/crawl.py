"""`CrawlReport`: everything that a crawl reports about robots.txt: log lines, stats and report files.

The report logs and counts each origin that is loaded, and each request that is dropped. It writes a summary
and the report files when the crawl ends. A failure here does not affect the crawl: a path that cannot be
written is found before the first request, and a file that cannot be written at the end is an ERROR in the
log. A file is written to a temporary file and then moved to its path, so that readers never see half a
report. It never replaces the report of a crawl that ran at the same time.
"""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy_norobots._version import __version__
from scrapy_norobots.events import Events, Load
from scrapy_norobots.exceptions import RobotsUnreachable
from scrapy_norobots.features.report.counters import Counters, facts_of
from scrapy_norobots.features.report.listing import TYPOS, Examined, Listing, list_files
from scrapy_norobots.features.report.page import RENDERERS
from scrapy_norobots.features.report.summary import log_text, setup_of
from scrapy_norobots.rules.access import AccessKind
from scrapy_norobots.rules.parser import StrictRobotParser
from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.scrapy_api.log import LOGGED_MAX, CrawlLog, Named, spider_name
from scrapy_norobots.settings import Section, error, read, setting
from scrapy_norobots.standard.decision import printable, without_userinfo
from scrapy_norobots.values import expand

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from scrapy_norobots.events import Origins
    from scrapy_norobots.exceptions import RobotsForbidden
    from scrapy_norobots.rules.access import Access
    from scrapy_norobots.settings import Config
    from scrapy_norobots.standard import Origin, Reason

logger = logging.getLogger(__name__)

# A file of more than this many bytes is examined in a thread: to search 32 KiB for lines without effect can
# take 0.1 s.
_SMALL_TO_EXAMINE = 8 * 1024

# How many origins a report lists: each takes about 0.7 kB of memory while the crawl runs.
_ROWS_MAX = 10_000


def _report_paths(settings: BaseSettings) -> tuple[str, ...]:
    name = "NOROBOTS_REPORT"
    paths: tuple[str, ...] = read(settings, name)
    for path in paths:
        if "://" in path:
            raise error(name, settings.get(name), f"{path!r} is a URL; expected a file path")
        if Path(path).suffix.lower() not in RENDERERS:
            raise error(name, settings.get(name), f"{path!r} must end in {', '.join(RENDERERS)}")
    return paths


@dataclass(frozen=True, slots=True)
class ReportConfig(Section):
    """The paths of the report files, with placeholders."""

    paths: tuple[str, ...] = setting(_report_paths)


class CrawlReport:
    """The report of one crawl."""

    def __init__(self, crawler: Crawler, config: Config, started: datetime) -> None:
        """Prepare the report files. Raises `ValueError` if a path of `NOROBOTS_REPORT` cannot be written."""
        assert crawler.stats is not None  # made before any middleware
        self._crawler = crawler
        self._stats = crawler.stats
        self._config = config
        self._dry_run = config.dry_run
        self._purposes = read(crawler.settings, "NOROBOTS_PURPOSES")
        self._closed_max = config.retry_closed_max
        self._retries_closed = config.retry_closed > 0 and compat.is_own_crawl(crawler)
        self._log = CrawlLog(crawler, logger)
        self._started = started
        # Each file with its renderer. The path in the setting selects it, since a symbolic link may lead to a
        # file with another extension. The shell has no spider at this point, and no crawl to report.
        self._files = [
            (_prepare(path, crawler.spider, started), RENDERERS[Path(path).suffix.lower()])
            for path in ReportConfig.from_settings(crawler.settings).paths
            if crawler.spider is not None
        ]
        self._without_rules = Named()
        # When robots.txt of the closed sites for which requests wait is downloaded again.
        self._next_tries: dict[Origin, float] = {}
        self._interval = crawler.settings.getfloat("LOGSTATS_INTERVAL")
        self._stop_saying: Callable[[], object] | None = None
        self._with_ineffective = Named()
        self._with_harmless = Named()  # for the robots of this crawl
        self._thread = ThreadPoolExecutor(1, "norobots-report")  # starts when it is used
        self._start_drops = 0
        self.counters = Counters(_ROWS_MAX if self._files else 0)

    def subscribe(self, events: Events) -> None:
        """Report what happens in the crawl."""
        counters = self.counters
        events.loaded.connect(self._load)
        events.passed.connect(lambda _request, _question, access: counters.add_pass(access.snapshot.origin))
        events.dropped.connect(self.dropped)
        events.exempt.connect(self._exempt)
        events.crawl_delay_kept.connect(counters.add_crawl_delay)
        events.usage_stated.connect(lambda origin, stated: counters.add_usage(origin, stated, self._purposes))
        events.wait.connect(self._wait)
        events.site_waits.connect(self._site_waits)
        events.closing.connect(self._close)

    async def _load(self, event: Load) -> None:
        examine = partial(Examined.of, event.access, event.robot, self._config.also_robots)
        if len(event.access.snapshot.body) > _SMALL_TO_EXAMINE:
            self.loaded(event, await compat.in_thread(self._thread, examine))
        else:
            self.loaded(event, examine())

    def loaded(self, event: Load, examined: Examined) -> None:
        """Report the load of an origin."""
        access, previous = event.access, event.previous
        if previous is not None:  # each origin counts once, by what was found last
            self._stats.inc_value(f"norobots/origins/{previous.kind.value}", -1)
        self._stats.inc_value(f"norobots/origins/{access.kind.value}")
        if not access.is_closed_for_now:
            self._next_tries.pop(access.snapshot.origin, None)
        if access.stale:
            self._stats.inc_value("norobots/stale")
        if examined.lines:
            self._log_ineffective(access, examined)
        self.counters.load(event, examined)
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

    def _wait(self, request: Request, what: str) -> None:
        self._count(f"norobots/retry/{what}")
        if what == "waited":
            self._log(logging.DEBUG, "Waits for a closed site: %s", without_userinfo(str(request)))
        elif what == "no_room" and self.counters.requests[what] == 1:
            self._log(
                logging.WARNING,
                "The requests that wait for closed sites have reached the limit, %d: further ones are "
                "dropped (NOROBOTS_RETRY_CLOSED_MAX)",
                self._closed_max,
            )

    def _site_waits(self, access: Access, seconds: float | None, is_first: bool) -> None:
        origin = access.snapshot.origin
        self._next_tries.pop(origin, None)
        if seconds is not None:
            self._next_tries[origin] = time.monotonic() + seconds
            self._say_later()
        shown = printable(str(origin))
        if is_first and seconds is not None:
            self._log(
                self._level(origin),
                "Requests to %s wait until %s, when its robots.txt is downloaded again "
                "(NOROBOTS_RETRY_CLOSED limits the retries)",
                shown,
                _in(seconds),
            )
            return
        what = "no longer wait (NOROBOTS_RETRY_CLOSED)"
        if seconds is not None:
            what = f"wait until {_in(seconds)}, when robots.txt is downloaded again"
        self._log(self._level(origin), "%s: requests to %s %s", access.detail, shown, what)

    def _say_what_waits(self) -> None:
        """Log now and then, as often as Scrapy logs its own numbers, what waits for how long."""
        self._stop_saying = None
        requests = self.counters.requests
        waiting = requests["waited"] - sum(requests[end] for end in ("came_back", "given_up", "left"))
        if not self._next_tries or waiting <= 0:
            return
        sites = len(self._next_tries)
        who = f"{sites} {'site is' if sites == 1 else 'sites are'} closed"
        what = f"{waiting} {'request waits' if waiting == 1 else 'requests wait'}"
        seconds = max(0, min(self._next_tries.values()) - time.monotonic())
        self._log(logging.INFO, "%s, %s, next try in %d s", who, what, seconds)
        self._say_later()

    def _say_later(self) -> None:
        if self._stop_saying is None and self._interval > 0:
            self._stop_saying = compat.call_later(self._interval, self._say_what_waits)

    async def _close(self, reason: str, all_origins: Origins, robot: str | bytes) -> None:
        listings: list[Listing] = []
        try:
            if self._files:
                # The files of most interest, while they are in memory.
                origins = self.counters.of_most_interest()
                accesses = list(filter(None, map(all_origins.latest, origins)))
                work = partial(list_files, accesses, robot, self.counters.drops())
                listings = await compat.in_thread(self._thread, work)
        finally:
            self._thread.shutdown(wait=False)
        self.finish(reason, robot, listings)

    def finish(self, reason: str, robot: str | bytes, listings: Sequence[Listing] = ()) -> None:
        """Write the final stats, the summary in the log, and the files that `NOROBOTS_REPORT` names."""
        if self._stop_saying is not None:
            self._stop_saying()
        self._stats.set_value("norobots/passed", self.counters.requests["passed"])
        crawl = {
            "generator": f"scrapy-norobots {__version__}",
            "spider": printable(spider_name(self._crawler)),
            "started": self._started.isoformat(timespec="seconds"),
            "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "reason": printable(str(reason)),  # users give any object to CloseSpider
            "dry_run": self._dry_run,
            **setup_of(self._crawler.settings, self._config, robot),
        }
        facts = facts_of(self.counters, crawl, listings)
        self._log(logging.INFO, "%s", log_text(facts))
        for path, render in self._files:
            try:
                written = _write(path, render(facts).encode(), self._started)
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
        if is_news and request.meta.get("is_start_request"):
            # The user asked for this URL, and the crawl may do nothing else.
            self._start_drops += 1
            if self._start_drops <= LOGGED_MAX:
                level = logging.WARNING
        verdict = "dropped" if has_no_rules else "forbidden by robots.txt"
        said = f"Would be {verdict}" if self._dry_run else verdict.capitalize()
        self._log(level, "%s: %s (%s)", said, without_userinfo(str(request)), error.decision.why)
        if level == logging.WARNING and self._start_drops == LOGGED_MAX:
            self._log(logging.WARNING, "Further dropped start requests are logged at DEBUG level")

    def _log_ineffective(self, access: Access, examined: Examined) -> None:
        """Log lines without effect: a WARNING if a decision of this crawl may differ from what is meant."""
        is_meant = TYPOS in examined.marks
        named = self._with_ineffective if is_meant else self._with_harmless
        if not named.take(access.snapshot.origin):
            return
        level, url = logging.WARNING if is_meant else logging.INFO, printable(access.snapshot.url)
        self._log(level, "%s has lines without effect: %s.", url, examined.text)
        if is_meant and named.is_full:
            self._log(
                logging.WARNING,
                "%d robots.txt files with such lines were logged; NOROBOTS_REPORT lists all of them",
                LOGGED_MAX,
            )


def _in(seconds: float) -> str:
    """Return the local time in some seconds, for the log."""
    return f"{datetime.now() + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}"


def _prepare(template: str, spider: Spider, start: datetime) -> Path:
    """Return the path that a template names, and create its directory.

    Raises `ValueError`, with `NOROBOTS_REPORT` and its value, if a placeholder is unknown or a report cannot
    be written there.
    """
    name = expand("NOROBOTS_REPORT", template, spider, start)
    try:
        path = Path(os.path.realpath(name))  # write through symbolic links
        _check_writable(path)
    except (OSError, ValueError) as exc:  # ValueError: a null character
        raise error("NOROBOTS_REPORT", template, f"cannot be written: {exc}") from exc
    return path


def _check_writable(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is {'a directory' if path.is_dir() else 'not a regular file'}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with _temporary_file(path, b""):
        pass


def _write(path: Path, data: bytes, started: datetime) -> Path:
    """Write the report of a crawl and return its path; raises `OSError`, and then writes nothing.

    An older file is replaced. A file that was written after `started` is the report of another crawl, which
    stays; a number is then added to the name of this one.
    """
    names = chain([path], (path.with_stem(f"{path.stem}-{number}") for number in count(2)))
    with _temporary_file(path, data) as temporary:
        return temporary.replace(next(name for name in names if _reserve(name, started)))


def _reserve(path: Path, started: datetime) -> bool:
    """Create a file to reserve the path; return False if a report of another crawl is there."""
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return path.stat().st_mtime < started.timestamp()
    return True


@contextmanager
def _temporary_file(path: Path, data: bytes) -> Iterator[Path]:
    """Write a temporary file in the directory of a path, and delete it afterwards unless it was moved."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        temporary.write_bytes(data)
        yield temporary
    except OSError as exc:
        if exc.filename == str(temporary):
            exc.filename = str(path)  # the user knows no other
        raise
    finally:
        temporary.unlink(missing_ok=True)
