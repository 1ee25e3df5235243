"""`CrawlReport`: what is logged of each origin and drop, and at which level."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.settings import Settings
from scrapy.statscollectors import MemoryStatsCollector

from scrapy_norobots import RobotsForbidden, RobotsUnreachable
from scrapy_norobots.events import Load
from scrapy_norobots.features.report.crawl import CrawlReport
from scrapy_norobots.features.report.listing import NOTHING, Examined
from scrapy_norobots.rules.access import Access, Judge, StatusPolicy
from scrapy_norobots.rules.freshness import Freshness
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.scrapy_api.log import spider_name
from scrapy_norobots.settings import Config
from scrapy_norobots.standard import Decision, Origin, Reason, RobotsTxt, Verdict

TIMES = Freshness(600, 86_400, 60, 7 * 86_400)
RULES = b"User-agent: *\nDisallow: /back/\n"
INEFFECTIVE = b"Disalow: /attic/\n"


TOWN = SimpleNamespace(name="town")


def crawl_report(spider: Any = TOWN, **settings: Any) -> CrawlReport:
    crawler = SimpleNamespace(spider=spider, spidercls=None, settings=Settings(settings))
    crawler.stats = MemoryStatsCollector(SimpleNamespace(settings=Settings()))  # type: ignore[arg-type]
    crawler.engine = SimpleNamespace(_slot=SimpleNamespace(scheduler=SimpleNamespace(parking=object())))
    config = Config.from_settings(crawler.settings)
    return CrawlReport(crawler, config, datetime.now(timezone.utc))  # type: ignore[arg-type]


def stats(report: CrawlReport) -> dict[str, Any]:
    return report._stats.get_stats()


def access(
    status: int | None = 200,
    previous: Access | None = None,
    *,
    number: int = 0,
    body: bytes = RULES,
    policy: str = "koster1996",
) -> Access:
    origin = Origin("http", f"town{number}.example", 80)
    snapshot = Snapshot(origin, origin.robots_url, 0.0, status, body=body)
    return Judge(StatusPolicy.of(policy), TIMES, RobotsTxt.parse).judge(snapshot, previous)


def event(now: Access, previous: Access | None = None) -> Load:
    return Load(now, previous, "network", 0.1, Request(f"{now.snapshot.origin}/"), "FooBot")


def load(
    report: CrawlReport, now: Access, previous: Access | None = None, examined: Examined = NOTHING
) -> None:
    report.loaded(event(now, previous), examined)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the level and the text of what was logged since this was last asked."""
    lines = [f"{record.levelname}: {record.getMessage()}" for record in caplog.records]
    caplog.clear()
    return lines


@pytest.fixture(autouse=True)
def _every_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "scrapy_norobots")


URL = "http://town0.example/robots.txt"
CLOSED_NOW = "WARNING: are dropped"
OPEN = "are allowed"
RULES_NOW = "INFO: now follow its rules"

# Statuses of an origin's loads, one after the other; the policy; what is logged of the last one.
OUTCOMES: dict[str, tuple[Sequence[int], str, str]] = {
    "rules": ([200], "koster1996", ""),
    "no file": ([404], "koster1996", f"DEBUG: {OPEN}"),
    "closed": ([403], "koster1996", CLOSED_NOW),
    "closed for a while": ([503], "koster1996", "WARNING: are not sent"),
    "open for a while": ([503], "allow", f"WARNING: {OPEN}"),
    "a redirect that leads nowhere": ([301], "rfc9309", f"WARNING: {OPEN}"),
    "stale": ([200, 503], "koster1996", "WARNING: still follow the cached rules"),
    "still closed": ([503, 503], "koster1996", ""),
    "still stale": ([200, 503, 503], "koster1996", ""),
    "still rules": ([200, 200], "koster1996", ""),
    "rules again": ([503, 200], "koster1996", RULES_NOW),
    "fresh again": ([200, 503, 200], "koster1996", RULES_NOW),
    "gone": ([200, 404], "koster1996", f"DEBUG: {OPEN}"),
    "closed another way": ([503, 403], "koster1996", CLOSED_NOW),
}


@pytest.mark.parametrize("case", OUTCOMES)
def test_a_change_of_an_origin_is_one_line(case: str, caplog: pytest.LogCaptureFixture) -> None:
    statuses, policy, what = OUTCOMES[case]
    report = crawl_report()
    previous = None
    for status in statuses:
        caplog.clear()
        now = access(status, previous, policy=policy)
        load(report, now, previous)
        previous = now
    level, _, meaning = what.partition(": ")
    why = f" ({now.setting})" if now.setting else ""
    again = "; robots.txt is downloaded again after 60 s" if now.temporary else ""
    line = f"{level}: {now.detail}: requests to http://town0.example {meaning}{why}{again}"
    assert said(caplog) == ([line] if what else [])


def test_requests_to_a_closed_origin_are_dropped_without_retries(caplog: pytest.LogCaptureFixture) -> None:
    load(crawl_report(NOROBOTS_RETRY_CLOSED=0), access(503))
    assert "requests to http://town0.example are dropped" in said(caplog)[0]


def test_requests_to_a_closed_origin_are_dropped_without_a_place_to_wait(
    caplog: pytest.LogCaptureFixture,
) -> None:
    report = crawl_report()
    report._crawler.engine._slot.scheduler = object()  # type: ignore[union-attr]
    load(report, access(503))
    assert "requests to http://town0.example are dropped" in said(caplog)[0]


def test_a_dry_run_says_that_requests_would_be_dropped(caplog: pytest.LogCaptureFixture) -> None:
    load(crawl_report(NOROBOTS_DRY_RUN=True), access(503))
    assert "requests to http://town0.example would be dropped" in said(caplog)[0]


def test_after_20_sites_without_rules_those_20_stay_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    report = crawl_report()
    closed = [access(503, number=number) for number in range(21)]
    for each in closed:
        load(report, each)
    lines = said(caplog)
    assert [line.partition(":")[0] for line in lines] == 21 * ["WARNING"] + ["DEBUG"]
    assert lines[20] == (
        "WARNING: 20 sites without fresh rules were reported; further ones are logged at DEBUG level"
    )
    for number in (0, 20):
        load(report, access(200, number=number), closed[number])
    again = said(caplog)
    assert all(line.endswith(" now follow its rules") for line in again)
    assert [line.partition(":")[0] for line in again] == ["INFO", "DEBUG"]


def test_each_load_is_counted_by_what_it_came_to() -> None:
    report = crawl_report()
    first = access()
    for now, previous in ((first, None), (access(503, first), first), (access(404, number=1), None)):
        load(report, now, previous)
    assert stats(report) == {"norobots/origins/rules": 1, "norobots/origins/open": 1, "norobots/stale": 1}


# Lines without effect


def test_a_file_with_lines_without_effect_is_a_warning_once(caplog: pytest.LogCaptureFixture) -> None:
    report = crawl_report()
    now = access(body=INEFFECTIVE)
    for previous in (None, now):
        load(report, now, previous, Examined.of(now, "FooBot"))
    (line,) = said(caplog)
    assert line.startswith(f"WARNING: {URL} has lines without effect: 1 of 1 Disallow line, ")


# Drops

CLOSED = Decision(Verdict.FORBIDDEN, "http://town0.example/", "FooBot", Reason.STATUS, detail="closed")


def by_rule(parser: str = "") -> RobotsForbidden:
    decision = access().decide("http://town0.example/back/", "FooBot")
    return RobotsForbidden(replace(decision, parser=parser))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (by_rule(), {"robotstxt/forbidden": 1, "norobots/forbidden_by/StrictRobotParser": 1}),
        (by_rule("Protego"), {"robotstxt/forbidden": 1, "norobots/forbidden_by/Protego": 1}),
        (RobotsUnreachable(CLOSED), {"robotstxt/forbidden": 1, "norobots/unreachable": 1}),
    ],
    ids=["a rule", "a rule of another parser", "no rules"],
)
def test_a_drop_is_counted_by_what_forbids_it(error: RobotsForbidden, expected: dict[str, int]) -> None:
    report = crawl_report()
    report.dropped(Request(error.decision.url), error.decision.url, "FooBot", error, access())
    assert stats(report) == expected
    assert report.counters.requests["dropped"] == 1


@pytest.mark.parametrize(
    ("error", "verdict"),
    [(by_rule(), "Would be forbidden by robots.txt"), (RobotsUnreachable(CLOSED), "Would be dropped")],
)
def test_a_dry_run_counts_what_would_be_dropped(
    error: RobotsForbidden, verdict: str, caplog: pytest.LogCaptureFixture
) -> None:
    report = crawl_report(NOROBOTS_DRY_RUN=True)
    request = Request("http://town0.example/back/", meta={"depth": 1})
    report.dropped(request, request.url, "FooBot", error, access())
    assert stats(report) == {"norobots/would_drop": 1}
    assert said(caplog)[0].startswith(f"DEBUG: {verdict}: <GET ")


START = {"is_start_request": True}
LINK = {"depth": 1}


@pytest.mark.parametrize(
    ("error", "has_origin", "meta", "level"),
    [
        (by_rule(), True, START, "WARNING"),
        (by_rule(), True, LINK, "DEBUG"),
        (RobotsUnreachable(CLOSED), True, START, "DEBUG"),  # the line of the site says it
        (RobotsUnreachable(CLOSED), False, START, "WARNING"),
        (RobotsUnreachable(CLOSED), False, LINK, "DEBUG"),
    ],
)
def test_a_drop_is_a_warning_if_the_user_would_see_nothing_else(
    error: RobotsForbidden,
    has_origin: bool,
    meta: dict[str, Any],
    level: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    request = Request(error.decision.url, meta=meta)
    crawl_report().dropped(request, request.url, "FooBot", error, access() if has_origin else None)
    (line,) = said(caplog)
    verdict = "Dropped" if isinstance(error, RobotsUnreachable) else "Forbidden by robots.txt"
    assert line == f"{level}: {verdict}: {request} ({error.decision.why})"


# The end


def test_the_end_says_all_that_was_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "report.json"
    report = crawl_report(SimpleNamespace(name="to\x1bwn"), NOROBOTS_REPORT=str(path), NOROBOTS_DRY_RUN=True)
    report.counters.requests["passed"] = 3
    report.finish("fini\x1bshed", "FooBot")
    assert stats(report) == {"norobots/passed": 3}
    crawl = json.loads(path.read_text())["crawl"]
    assert (crawl["spider"], crawl["reason"], crawl["dry_run"]) == (r"to\x1bwn", r"fini\x1bshed", True)
    assert crawl["generator"].startswith("scrapy-norobots ")
    assert crawl["started"] <= crawl["finished"]
    summary, written = said(caplog)
    assert summary.startswith("INFO: robots.txt in this crawl (to\\x1bwn)\n")
    assert written == f"INFO: The robots.txt report was written to {path}"


def test_the_reason_may_be_any_object(tmp_path: Path) -> None:
    """As with `CloseSpider(response.status)`."""
    path = tmp_path / "report.json"
    crawl_report(NOROBOTS_REPORT=str(path)).finish(404, "FooBot")  # type: ignore[arg-type]
    assert json.loads(path.read_text())["crawl"]["reason"] == "404"


def test_a_file_that_cannot_be_written_at_the_end_is_an_error_and_the_others_are_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gone, there = tmp_path / "gone" / "report.json", tmp_path / "report.json"
    report = crawl_report(NOROBOTS_REPORT=[str(gone), str(there)])
    gone.parent.rmdir()
    report.finish("finished", "FooBot")
    _, error, written = said(caplog)
    assert error.startswith(f"ERROR: NOROBOTS_REPORT: the report {gone} could not be written: ")
    assert written == f"INFO: The robots.txt report was written to {there}"


def test_without_a_spider_there_is_no_crawl_to_report(tmp_path: Path) -> None:
    """As in the shell."""
    crawl_report(None, NOROBOTS_REPORT=f"{tmp_path}/%(name)s.json").finish("shutdown", "FooBot")
    assert list(tmp_path.iterdir()) == []


def test_a_crawl_without_a_report_file_keeps_no_row_of_any_origin(tmp_path: Path) -> None:
    for path, rows in (("", 0), (str(tmp_path / "report.json"), 1)):
        report = crawl_report(NOROBOTS_REPORT=path)
        load(report, access())
        assert len(report.counters.rows) == rows


def test_each_line_names_the_spider_to_log_filters(caplog: pytest.LogCaptureFixture) -> None:
    load(crawl_report(), access(503))
    assert [record.spider for record in caplog.records] == [TOWN]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("spider", "spidercls", "expected"),
    [
        (SimpleNamespace(name="a"), SimpleNamespace(name="b"), "a"),
        (None, SimpleNamespace(name="b"), "b"),
        (SimpleNamespace(name=None), SimpleNamespace(name="b"), "spider"),
        (None, None, "spider"),
    ],
)
def test_a_crawl_is_named_after_its_spider(spider: object, spidercls: object, expected: str) -> None:
    crawler = SimpleNamespace(spider=spider, spidercls=spidercls)
    assert spider_name(crawler) == expected  # type: ignore[arg-type]
