"""`CrawlReport`: joins the counts of a crawl with its settings, its log and its report files.

Nothing that goes wrong here may cost the crawl anything: where a report cannot be written is found out before
the first request, and if it cannot be written in the end, that is an ERROR in the log.
"""

from __future__ import annotations

import logging
import re
from datetime import datetime, timezone
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from scrapy_norobots.parser import strict_reading
from scrapy_norobots.report import files
from scrapy_norobots.report.facts import facts_of, log_text
from scrapy_norobots.report.faults import Faults
from scrapy_norobots.report.page import RENDERERS
from scrapy_norobots.report.tally import Tally
from scrapy_norobots.standard import Origin
from scrapy_norobots.standard.decision import printable

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_norobots.access import Access
    from scrapy_norobots.settings import Config

logger = logging.getLogger(__name__)

# How many origins are warned of for lines that count for nobody: every fourth large site has some.
FAULTS_TOLD = 20


# `*` or `$` in a Disallow line, before a comment: what the readings differ in most.
_PATTERN = re.compile(rb"(?i)(?:^|[\r\n])[ \t]*disallow[ \t]*:[^#\r\n]*[*$]")


def spider_name(crawler: Crawler) -> str:
    """Return the name of a crawl's spider, for the log and for names of files."""
    return str(getattr(crawler.spider or crawler.spidercls, "name", None) or "spider")


class CrawlReport:
    """What one crawl met. The middleware counts in `tally` and tells of what is loaded, and of the end."""

    def __init__(self, crawler: Crawler, config: Config) -> None:
        """Raise `ValueError` if a report could not be written where `NOROBOTS_REPORT` wants it."""
        self._crawler = crawler
        self._dry_run = config.dry_run
        self._spider_name = spider_name(crawler)
        self._started = _now()
        # Each file, and what makes its text: a link may lead to a file with another ending.
        self._files = [
            (files.prepare(path, self._spider_name, self._started), RENDERERS[PurePath(path).suffix.lower()])
            for path in config.report
        ]
        self._told: set[Origin] = set()
        self.tally = Tally(config.report_origins if self._files else 0)

    def load(self, access: Access, known: Access | None, source: str, seconds: float) -> None:
        """Count a robots.txt that was had, or not, from `source`, and warn of lines that count for nobody."""
        faults = None
        # Findings are dear where nobody reads them.
        robots = strict_reading(access.rules)
        if robots is not None and (self._files or len(self._told) < FAULTS_TOLD):
            faults = Faults.of(access.snapshot.body, multivalue=robots.multivalue)
        if faults is not None:
            self._tell(access, faults)
        is_new = known is None or known.rules is None
        if is_new and access.rules is robots is not None and _PATTERN.search(access.snapshot.body):
            self.tally.see_pattern(access.snapshot.url)
        self.tally.load(access, known, source, seconds, faults)

    def finish(self, reason: str) -> None:
        """Say what the crawl met: in the log, and where `NOROBOTS_REPORT` wants it."""
        crawl = {
            "generator": f"scrapy-norobots {_version()}",
            "spider": printable(self._spider_name),
            "started": self._started.isoformat(),
            "finished": _now().isoformat(),
            "reason": printable(reason),
            "dry_run": self._dry_run,
        }
        facts = facts_of(self.tally, crawl)
        self._log(logging.INFO, "%s", log_text(facts))
        for path, render in self._files:
            try:
                files.write(path, render(facts).encode())
            except OSError as exc:
                self._log(logging.ERROR, "NOROBOTS_REPORT: %s could not be written: %s", path, exc)
            else:
                self._log(logging.INFO, "The report on robots.txt is in %s", path)

    def _tell(self, access: Access, faults: Faults) -> None:
        origin = access.snapshot.origin
        if origin in self._told or len(self._told) >= FAULTS_TOLD:
            return
        self._told.add(origin)
        self._log(
            logging.WARNING,
            "%s has lines without effect: %s.",
            printable(access.snapshot.url),
            faults,
        )
        if len(self._told) == FAULTS_TOLD:
            self._log(
                logging.WARNING,
                "%d files with such lines have been told of; of more, only a report tells (NOROBOTS_REPORT).",
                FAULTS_TOLD,
            )

    def _log(self, level: int, message: str, *arguments: Any) -> None:
        logger.log(level, message, *arguments, extra={"spider": self._crawler.spider})


def _now() -> datetime:
    return datetime.now(timezone.utc).replace(microsecond=0)


def _version() -> str:
    from scrapy_norobots import __version__  # noqa: PLC0415  # the package imports this one

    return __version__
