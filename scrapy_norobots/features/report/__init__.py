"""What a crawl reports: log lines and stats while it runs, a summary and report files at its end.

`CrawlReport` logs and counts each origin that is loaded, and each request that is dropped, in bounded memory
(`counters`). At the end, `listing` lists robots.txt files, `counters` makes plain data of all, and `page`
renders it. A path that cannot be written is found before the first request; a file that cannot be written at
the end is an ERROR in the log. Readers never see half a report.
"""

from __future__ import annotations

import logging
import math
import os
import platform
import re
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any

import scrapy
import twisted
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings

from scrapy_norobots._version import __version__
from scrapy_norobots.events import Core, Events, Load
from scrapy_norobots.exceptions import RobotsForbidden, RobotsUnreachable
from scrapy_norobots.features.report.counters import Counters, facts_of
from scrapy_norobots.features.report.listing import TYPOS, Examined, list_files
from scrapy_norobots.features.report.page import RENDERERS, Renderer, log_text
from scrapy_norobots.rules.access import Access, OriginCache
from scrapy_norobots.rules.parser import StrictRobotParser
from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.scrapy_api.log import Named, crawl_log, spider_name
from scrapy_norobots.settings import DEFAULTS, Config, error, read
from scrapy_norobots.standard import Reason
from scrapy_norobots.standard.decision import printable, without_userinfo
from scrapy_norobots.standard.names import to_name
from scrapy_norobots.values import expand

logger = logging.getLogger(__name__)

# How many origins a report lists: each takes about 0.7 kB of memory while the crawl runs.
_ROWS_MAX = 10_000

# A body of at most this many bytes is examined within about 2 ms, and needs no thread; 32 KiB can take 0.1 s.
_SMALL = 1024

# The user and password of a URL, which may contain anything, and its query, which may have a password too.
_SECRET = re.compile(r"(?<=//).*(?=@)|(?<=\?).*", re.DOTALL)


def subscribe(crawler: Crawler, config: Config, events: Events) -> None:
    """Report on a crawl, once the middleware is ready."""
    events.opened.connect(lambda core: CrawlReport(crawler, config, events, core))


class CrawlReport:
    """The report of one crawl. Raises `ValueError` if a path of ``NOROBOTS_REPORT`` cannot be written."""

    def __init__(self, crawler: Crawler, config: Config, events: Events, core: Core) -> None:
        self._crawler = crawler
        self._stats = compat.stats(crawler)
        self._config = config
        self._retries_closed = config.retry_closed > 0 and compat.is_own_crawl(crawler)
        self._log = crawl_log(crawler, logger)
        self._started = events.started
        self._waits = core.waits
        # Each file with its renderer. The shell has no spider at this point, and no crawl to report.
        self._files = [
            _prepare(path, crawler.spider, events.started)
            for path in read(crawler.settings, "NOROBOTS_REPORT")
            if crawler.spider is not None
        ]
        # What the log names: sites without fresh rules, dropped start requests, and, by the level of their
        # lines, files with lines without effect.
        self._without_rules, self._start_drops = Named(), Named()
        self._faulty = {logging.WARNING: Named(), logging.INFO: Named()}
        self._interval = crawler.settings.getfloat("LOGSTATS_INTERVAL")
        self._stop_saying: Callable[[], object] = lambda: None
        self._thread = ThreadPoolExecutor(1, "norobots-report")  # starts when it is used
        self._counters = counters = Counters(_ROWS_MAX if self._files else 0)
        if self._interval > 0:
            crawler.signals.connect(self._say_what_waits, signals.spider_opened)
        events.loaded.connect(self._load)
        events.passed.connect(lambda _request, _question, access: counters.add_pass(access.snapshot.origin))
        events.dropped.connect(self._drop)
        events.exempt.connect(self._exempt)
        events.wait.connect(self._wait)
        events.site_waits.connect(self._site_waits)
        events.closing.connect(self._close)

    async def _load(self, event: Load) -> None:
        access, snapshot, previous = event.access, event.access.snapshot, event.previous
        examine = partial(Examined.of, access, event.robot, self._config.also_robots)
        is_small = len(snapshot.body) <= _SMALL
        examined = examine() if is_small else await compat.in_thread(self._thread, examine)
        if previous is not None:  # each origin counts once, by what was found last
            self._stats.inc_value(f"norobots/origins/{previous.kind}", -1)
        self._stats.inc_value(f"norobots/origins/{access.kind}")
        if access.stale and event.source == "network":
            self._stats.inc_value("norobots/stale")
        if examined.lines and event.is_new:
            # A decision of this crawl may differ from what the site meant, or not.
            level = logging.WARNING if TYPOS in examined.marks else logging.INFO
            level = self._faulty[level].level(snapshot.origin, level)
            self._log(level, "%s has lines without effect: %s.", printable(snapshot.url), examined.text)
        self._counters.load(event, examined)
        if previous is None or (previous.outcome, previous.stale) != (access.outcome, access.stale):
            self._log_outcome(access, is_first=previous is None)

    def _drop(
        self, request: Request, _url: str, _robot: str | bytes, error: RobotsForbidden, access: Access | None
    ) -> None:
        decision, has_no_rules = error.decision, isinstance(error, RobotsUnreachable)
        self._counters.drop(decision, access)
        level = logging.DEBUG
        # The user asked for a start request, and the crawl may do nothing else. The log already has a line
        # about a site without rules.
        if request.meta.get("is_start_request") and (access is None or not has_no_rules):
            level = self._start_drops.level(request.url, logging.WARNING)
        verdict = "dropped" if has_no_rules else "forbidden by robots.txt"
        said = f"Would be {verdict}" if self._config.dry_run else verdict.capitalize()
        self._log(level, "%s: %s (%s)", said, without_userinfo(str(request)), decision.why)
        if self._config.dry_run:
            self._stats.inc_value("norobots/would_drop")
            return
        self._stats.inc_value("robotstxt/forbidden")
        if has_no_rules:
            self._stats.inc_value("norobots/unreachable")
            return
        self._stats.inc_value(f"norobots/forbidden_by/{decision.parser or StrictRobotParser.__name__}")
        if decision.decided_for:
            self._stats.inc_value(f"norobots/forbidden_for/{decision.decided_for}")

    def _exempt(self, _request: Request, _url: str, _robot: str | bytes, reason: Reason | None) -> None:
        if reason is None:
            self._counters.requests["overridden"] += 1
            self._stats.inc_value("norobots/overridden")

    def _wait(self, request: Request, what: str) -> None:
        self._counters.requests[what] += 1
        self._stats.inc_value(f"norobots/retry/{what}")
        if what == "waited":
            self._log(logging.DEBUG, "Waits for a closed site: %s", without_userinfo(str(request)))
        elif what == "no_room" and self._counters.requests[what] == 1:
            self._log(
                logging.WARNING,
                "The requests that wait for closed sites have reached the limit, %d: further ones are "
                "dropped (NOROBOTS_RETRY_CLOSED_MAX)",
                self._config.retry_closed_max,
            )

    def _site_waits(self, access: Access, seconds: float | None, is_first: bool) -> None:
        origin = access.snapshot.origin
        what = "no longer wait (NOROBOTS_RETRY_CLOSED)"
        if seconds is not None:
            until = f"{datetime.now() + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}"  # in local time
            limit = " (NOROBOTS_RETRY_CLOSED limits the retries)" if is_first else ""
            what = f"wait until {until}, when robots.txt is downloaded again{limit}"
        # The line that says why is a WARNING for these sites.
        level = logging.INFO if origin in self._without_rules else logging.DEBUG
        self._log(level, "%s: requests to %s %s", access.detail, printable(str(origin)), what)

    def _say_what_waits(self) -> None:
        """Log what waits for how long, as often as Scrapy logs its own numbers."""
        self._stop_saying = compat.call_later(self._interval, self._say_what_waits)
        waits = self._waits()
        if waits is not None and waits.requests:
            when = "" if waits.next_try is None else f" (next try in {math.ceil(waits.next_try)} s)"
            self._log(
                logging.INFO,
                "Requests that wait: %d; closed sites: %d%s; robots.txt files being downloaded: %d",
                waits.requests,
                waits.closed_sites,
                when,
                waits.loading_sites,
            )

    async def _close(self, reason: str, all_origins: OriginCache, robot: str | bytes) -> None:
        """Write the final stats, the summary in the log, and the files that `NOROBOTS_REPORT` names."""
        self._stop_saying()
        # The files of most interest that are in memory; none without a report.
        accesses = list(filter(None, map(all_origins.latest, self._counters.of_most_interest())))
        listings = await compat.in_thread(
            self._thread, partial(list_files, accesses, robot, self._counters.drops())
        )
        self._stats.set_value("norobots/passed", self._counters.requests["passed"])
        crawl = {
            "generator": f"scrapy-norobots {__version__}",
            "spider": printable(spider_name(self._crawler)),
            "started": self._started.isoformat(timespec="seconds"),
            "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "reason": printable(str(reason)),  # users give any object to CloseSpider
            "dry_run": self._config.dry_run,
            **_setup_of(self._crawler.settings, self._config, robot),
        }
        facts = facts_of(self._counters, crawl, listings)
        self._log(logging.INFO, "%s", log_text(facts))
        for path, render in self._files:
            try:
                written = _write(path, render(facts).encode(), self._started)
            except OSError as exc:
                self._log(logging.ERROR, "NOROBOTS_REPORT: could not write %s: %s", printable(str(path)), exc)
            else:
                self._log(logging.INFO, "The robots.txt report was written to %s", printable(str(written)))

    def _log_outcome(self, access: Access, *, is_first: bool) -> None:
        """Log what an origin without fresh rules means for the crawl, and log when it has rules again."""
        level = logging.WARNING
        if access.stale:
            what = "still follow the cached rules"
        elif access.kind == "closed":
            what = "are not sent" if access.is_closed_for_now and self._retries_closed else "are dropped"
            what = "would be dropped" if self._config.dry_run else what
        elif access.kind == "open":
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
        if level > logging.DEBUG:
            level = self._without_rules.level(origin, level)
        self._log(level, "%s: requests to %s %s%s%s", access.detail, printable(str(origin)), what, why, again)


def _setup_of(settings: BaseSettings, config: Config, robot: str | bytes) -> dict[str, Any]:
    # Without secrets; `robot` is that of requests without one of their own.
    given = {name: settings.get(name, DEFAULTS[name]) for name in DEFAULTS}
    changed = {name: value for name, value in given.items() if value not in (DEFAULTS[name], None, "")}
    return {
        "robot": printable(robot.decode("utf-8", "replace") if isinstance(robot, bytes) else robot),
        "token": printable(to_name(robot)),
        "readings": [one.__name__ for one in (config.parser, *config.also_obey)],
        "status_policy": _shown(given["NOROBOTS_STATUS_POLICY"]),
        "settings": {name: _shown(value) for name, value in changed.items()},
        "versions": {
            "Scrapy": scrapy.__version__,
            "Twisted": twisted.__version__,
            "Python": platform.python_version(),
        },
    }


def _shown(value: object) -> str:
    text = str(value)
    return printable(_SECRET.sub("***", text) if "://" in text else text)


def _prepare(template: str, spider: Spider, start: datetime) -> tuple[Path, Renderer]:
    """Return the path that a template names, with its renderer, and create its directory.

    Raises `ValueError`, with `NOROBOTS_REPORT` and its value, if a placeholder is unknown or a report cannot
    be written there.
    """
    # A symbolic link may lead to a file with another extension.
    render = RENDERERS.get(Path(template).suffix.lower())
    if render is None or "://" in template:
        problem = f"expected the path of a file that ends in {', '.join(RENDERERS)}"
        raise error("NOROBOTS_REPORT", template, problem)
    name = expand("NOROBOTS_REPORT", template, spider, start)
    try:
        path = Path(os.path.realpath(name))  # write through symbolic links
        is_taken = path.exists() and not path.is_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        with _temporary_file(path, b""):
            pass
    except (OSError, ValueError) as exc:  # ValueError: a null character
        raise error("NOROBOTS_REPORT", template, f"cannot be written: {exc}") from exc
    if is_taken:
        raise error("NOROBOTS_REPORT", template, f"{path} is not a regular file")
    return path, render


def _write(path: Path, data: bytes, started: datetime) -> Path:
    """Write the report of a crawl and return its path; raises `OSError`, and then writes nothing.

    An older file is replaced. A file that was written after `started` is the report of another crawl, which
    stays; a number is then added to the name of this one.
    """
    names = chain([path], (path.with_stem(f"{path.stem}-{number}") for number in count(2)))
    with _temporary_file(path, data) as temporary:
        return temporary.replace(next(name for name in names if _reserve(name, started)))


def _reserve(path: Path, started: datetime) -> bool:
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
    finally:
        temporary.unlink(missing_ok=True)
