"""Evidence: what each robots.txt said when a page was requested, and what the crawl decided by it.

`Evidence` runs on the event loop, and puts answers and decisions into a queue. No request waits for the disk;
the end of the crawl does, for a minute at most. A thread (`writer`) writes them: answers to requests for
robots.txt as WARC records (`answers`), decisions as lines of JSON (`fields`, which has what all others need
to know about the files). `audit` makes every decision of a run again.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import time
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.python import global_object_name

from scrapy_norobots.events import Events
from scrapy_norobots.features.evidence import fields
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.scrapy_api.log import crawl_log, spider_name
from scrapy_norobots.settings import Config, Section, error, setting
from scrapy_norobots.standard import Origin, Reason
from scrapy_norobots.standard.decision import printable
from scrapy_norobots.values import expand

logger = logging.getLogger(__name__)

# How long the end of a crawl waits for what is still to be written, and the end of a process after a crawl
# that did not end, in seconds: a disk may never answer.
_LONGEST_END = 60.0
_LONGEST_EXIT = 3.0


@dataclass(frozen=True, slots=True)
class EvidenceConfig(Section):
    """The settings of one crawl for evidence. If the path `folder` is empty, nothing is recorded."""

    folder: str = setting("NOROBOTS_EVIDENCE")
    allowed: bool = setting("NOROBOTS_EVIDENCE_ALLOWED")
    required: bool = setting("NOROBOTS_EVIDENCE_REQUIRED")
    usage: bool = setting("NOROBOTS_USAGE")
    purposes: tuple[str, ...] = setting("NOROBOTS_PURPOSES")


class Evidence:
    """Records the evidence of one crawl."""

    def __init__(self, crawler: Crawler, config: Config, evidence: EvidenceConfig, events: Events) -> None:
        """Open the files and start the thread; raise `ValueError` if a placeholder or the folder is wrong."""
        self._crawler = crawler
        self._stats = compat.stats(crawler)
        self._config = evidence
        self._has_logged_loss = False
        self._log = crawl_log(crawler, logger)
        self._folder = expand("NOROBOTS_EVIDENCE", evidence.folder, crawler.spider, events.started)
        try:
            from scrapy_norobots.features.evidence.writer import Writer  # noqa: PLC0415  # needs an extra

            self._writer = Writer(Path(self._folder), _run_name(crawler), _settings(config, evidence))
        except ImportError as exc:
            problem = f"needs warcio: pip install 'scrapy-norobots[evidence]' ({exc})"
            raise error("NOROBOTS_EVIDENCE", evidence.folder, problem) from exc
        except (OSError, ValueError) as exc:  # a ValueError for a null character
            raise error("NOROBOTS_EVIDENCE", evidence.folder, f"cannot be written: {exc}") from exc
        crawler.signals.connect(self._close, signals.spider_closed)
        # Another component may still keep the crawl from starting, and then no signal says so.
        weakref.finalize(self, self._writer.end, _LONGEST_EXIT)
        events.answered.connect(self._answered)
        events.downloaded.connect(self._downloaded)
        events.recalled.connect(self._recalled)
        events.dropped.connect(
            lambda request, url, robot, error, access: self._put(
                fields.Made(time.time(), url, robot, request.url, access, error.decision)
            )
        )
        events.exempt.connect(self._exempt)
        if evidence.allowed:
            events.passed.connect(
                lambda request, question, access: self._put(
                    fields.Made(time.time(), question.url, question.robot, request.url, access)
                )
            )

    def _answered(
        self, origin: Origin, response: Response, snapshot: Snapshot | None, previous: Snapshot | None
    ) -> None:
        if snapshot is None:
            self._put(fields.Answer(origin, response, time.time(), note=fields.REDIRECT))
            return
        is_renewal = snapshot.status == 304 and previous is not None and previous.conditions(snapshot.url)
        renewed = previous if is_renewal else None
        judged = fields.judged_of(renewed or snapshot)
        self._put(fields.Answer(origin, response, snapshot.time, judged, renewed))

    def _downloaded(self, snapshot: Snapshot) -> None:
        if snapshot.status is None:  # it has led to no file
            self._put(fields.Answer.of(snapshot))

    def _recalled(self, snapshots: Sequence[Snapshot]) -> None:
        for snapshot in snapshots:
            self._put(fields.Answer.of(snapshot, fields.STORE))

    def _exempt(self, request: Request, url: str, robot: str | bytes, reason: Reason | None) -> None:
        if self._config.allowed or reason is None:
            self._put(fields.Made(time.time(), url, robot, request.url, exemption=reason))

    def _put(self, record: fields.Answer | fields.Made) -> None:
        self._writer.put(record)
        self._check_loss()

    def _check_loss(self) -> None:
        """If evidence is lost, log it once, and close the spider if evidence is required."""
        if self._has_logged_loss or (self._writer.error is None and not self._writer.lost):
            return
        self._has_logged_loss = True
        cause = (
            "it came after the end of the crawl"
            if self._writer.has_ended
            else "the disk is too slow, and the queue is full"
        )
        self._log(
            logging.ERROR,
            "NOROBOTS_EVIDENCE: evidence could not be written to %s: %s; %s",
            printable(self._folder),
            self._writer.error or cause,
            "the spider is closed, since NOROBOTS_EVIDENCE_REQUIRED is True"
            if self._config.required
            else "the crawl continues, and its evidence is incomplete",
        )
        if self._config.required and not compat.is_closing(self._crawler):
            self._closing = compat.close_spider(self._crawler, "norobots_evidence")  # kept until it ends

    async def _close(self) -> None:
        """Wait until all is written, without blocking the event loop."""
        writer = self._writer
        await compat.in_thread(ThreadPoolExecutor(1), partial(writer.end, _LONGEST_END))
        if not writer.has_ended:
            writer.error = TimeoutError(f"the disk did not take all of it within {_LONGEST_END:g} s")
        self._check_loss()
        if not isinstance(writer.error, FileNotFoundError):
            self._log(
                logging.INFO,
                "The evidence of this crawl is in %s (decisions: %d, answers to requests for robots.txt: %d, "
                "head: %s)",
                printable(self._folder),
                writer.decisions,
                writer.answers,
                writer.head,
            )
            self._stats.set_value("norobots/evidence/head", writer.head)
        self._stats.set_value("norobots/evidence/answers", writer.answers)
        self._stats.set_value("norobots/evidence/decisions", writer.decisions)
        if writer.lost:
            self._stats.set_value("norobots/evidence/lost", writer.lost)


def subscribe(crawler: Crawler, config: Config, events: Events) -> None:
    """Record the evidence of a crawl if ``NOROBOTS_EVIDENCE`` is set, once the middleware is ready."""
    evidence = EvidenceConfig.from_settings(crawler.settings)
    if evidence.folder and crawler.spider is not None:  # the shell has no crawl to record
        events.opened.connect(lambda _: Evidence(crawler, config, evidence, events))


def _run_name(crawler: Crawler) -> str:
    """Return the name of a run: no two processes of a fleet have the same at the same time."""
    start = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S%fZ")
    parts = (spider_name(crawler), start, socket.gethostname(), str(os.getpid()))
    return "-".join(re.sub(r"[^\w.]", "_", part) for part in parts)


def _settings(config: Config, evidence: EvidenceConfig) -> fields.Settings:
    return fields.Settings(
        policy=dict(config.status_policy.table),
        parsers=[global_object_name(one) for one in (config.parser, *config.also_obey)],
        multivalue=config.multivalue,
        dry_run=config.dry_run,
        also_robots=list(config.also_robots),
        purposes=list(evidence.purposes) if evidence.purposes or evidence.usage else None,
        allowed=evidence.allowed,
        robot=config.robot,
    )
