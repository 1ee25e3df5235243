"""Requests that rules in memory forbid are dropped when they are scheduled."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.crawls.test_refresh import SHORT, Changing
from tests.helpers.running.crawling import ADDON, Crawl, crawl, with_report
from tests.helpers.sites import Answer, Site, page

RULES = "User-agent: *\nDisallow: /back/\n"
EARLY = "norobots/forbidden_early"
LINKS = ("/1", "/back/1", "/back/2", "/back/1", "/2", "/%62ack/3")


def follow(spider: str = "following.WithoutErrback", **settings: Any) -> Crawl:
    """Crawl a page and the pages that it links to, which have the same links."""
    with Site(RULES, {target: page(*LINKS) for target in ("/", "/1", "/2")}) as site:
        seen = crawl(
            f"{site.url}/", spider=spider, arguments={"follow": True}, settings={**ADDON, **settings}
        )
    forbidden = {"/back/1", "/back/2", "/back/3"} if settings.get("NOROBOTS_DRY_RUN") else set()
    # Without a reactor, Scrapy's handler sends "/%62ack/3" as "/back/3".
    assert {unquote(target) for target in site.pages()} == {"/", "/1", "/2"} | forbidden
    return seen


def test_a_forbidden_link_is_dropped_before_it_is_queued(mode: str, tmp_path: Path) -> None:
    report = tmp_path / "robots.json"
    seen = follow(**with_report(report))
    assert seen.stats[EARLY] == seen.stats["robotstxt/forbidden"] == 3
    assert seen.stats["norobots/forbidden_by/StrictRobotParser"] == 3
    assert seen.stats["scheduler/enqueued"] == 3
    # Further links to the same pages are filtered out as duplicates.
    assert seen.stats["dupefilter/filtered"] == 3 * len(LINKS) - 5
    assert len(seen.log_lines("Forbidden by robots.txt: <GET")) == 3
    assert not seen.log_lines("ERROR")
    (row,) = json.loads(report.read_text())["rows"]
    assert (row["requests"], row["dropped"]) == (6, 3)


def with_middleware(name: str, order: int) -> dict[str, Any]:
    return {"DOWNLOADER_MIDDLEWARES": {f"tests.helpers.components.{name}": order}}


SEEING = {
    "an errback": {},
    "a middleware that may change requests": with_middleware("middlewares.OneSlot", 50),
    "a middleware that sees exceptions": with_middleware("middlewares.SeesExceptions", 900),
    "a subclass of the middleware": with_middleware("derived.OurOwn", 100),
    "another scheduler": {"SCHEDULER": "tests.helpers.components.schedulers.OtherScheduler"},
}


@pytest.mark.parametrize("name", SEEING)
def test_it_is_dropped_in_the_downloader_if_a_component_could_see_the_difference(name: str) -> None:
    seen = follow("following.WithoutErrback" if SEEING[name] else "pages.Pages", **SEEING[name])
    assert EARLY not in seen.stats
    assert seen.stats["robotstxt/forbidden"] >= 3


def test_a_dry_run_drops_nothing() -> None:
    seen = follow(NOROBOTS_DRY_RUN=True)
    assert EARLY not in seen.stats
    assert seen.stats["norobots/would_drop"] == 3


def test_requests_to_a_temporarily_closed_origin_are_not_dropped_early() -> None:
    with Site(Answer(status=503)) as closed:
        pages = {f"/{i}": page(f"/{i + 1}", f"{closed.url}/{i}") for i in range(10)}
        with Site("", pages) as site:
            seen = crawl(
                f"{site.url}/0",
                spider="following.WithoutErrback",
                arguments={"follow": True},
                settings={**ADDON, "RETRY_ENABLED": False},
            )
    assert closed.pages() == []
    assert EARLY not in seen.stats
    assert seen.stats["norobots/unreachable"] == 10


def test_requests_that_stale_rules_forbid_are_not_dropped_early() -> None:
    """The first page takes longer than the rules are fresh, and the next download fails."""
    with Changing(Answer(RULES), Answer(status=503)) as site:
        site.answers["/"] = replace(page("/1"), before=lambda: threading.Event().wait(1))
        site.answers["/1"] = page("/back/1")
        seen = crawl(
            f"{site.url}/",
            spider="following.WithoutErrback",
            arguments={"follow": True},
            settings={**SHORT, "NOROBOTS_TTL": 0.5, "NOROBOTS_ERROR_TTL": 3600},
        )
        assert site.pages() == ["/", "/1"]
        assert len(site.robots_hits()) == 2
    assert EARLY not in seen.stats
    assert seen.stats["robotstxt/forbidden"] == 1


def test_a_request_that_is_not_filtered_leaves_no_trace_in_the_duplicate_filter() -> None:
    seen = follow("following.UnfilteredFirst")
    # Four links of the first page; then three pages once more, since the filter has not seen them.
    assert seen.stats[EARLY] == seen.stats["robotstxt/forbidden"] == 7
