"""What a crawl says of itself, in real crawls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.crawling import ADDON, crawl, with_no_origin, with_report
from tests.crawls.test_refresh import LONGER_THAN_TTL, RULES, SHORT
from tests.sites import Answer, Site

CLOSED = Answer(status=503)
NONE_WAITED = dict.fromkeys(("waited", "came_back", "given_up", "left"), 0)


def row_of(facts: dict[str, Any], site: Site) -> dict[str, Any]:
    (row,) = (row for row in facts["rows"] if row["origin"] == site.url)
    return dict(row)


# The summary and the data


def test_a_crawl_says_what_it_met(mode: str, tmp_path: Path) -> None:
    page, data = tmp_path / "new" / "folder" / "report.html", tmp_path / "report.json"
    with Site(RULES) as town, Site() as village, Site(CLOSED) as shut:
        seen = crawl(
            *(f"{town.url}{path}" for path in ("/", "/a", "/back/1", "/back/2")),
            *(f"{site.url}/" for site in (village, shut)),
            {"url": f"{town.url}/back/3", "meta": {"dont_obey_robotstxt": True}},
            mode=mode,
            settings=with_report(page, data),
        )
    facts = json.loads(data.read_text())
    assert facts["requests"] == {**NONE_WAITED, "passed": 3, "dropped": 3, "overridden": 1}
    assert len(seen.pages) == 4
    assert seen.stats["norobots/passed"] == 3
    assert seen.stats["norobots/overridden"] == 1  # the robots.txt that was tried again is not one
    assert len(shut.robots_hits()) == 2
    assert facts["origins"] == 3
    assert facts["sources"] == {"network": 3}
    assert {(each["text"], each["origins"]) for each in facts["outcomes"]} == {
        ("rules", 1),
        ("open (4xx)", 1),
        ("closed (5xx)", 1),
    }
    assert facts["dropped_most"] == [
        {"origin": town.url, "line": 2, "text": "/back/", "count": 2},
        {"origin": shut.url, "line": None, "text": "closed (5xx)", "count": 1},
    ]
    counts = {
        site: (row_of(facts, site)["requests"], row_of(facts, site)["dropped"]) for site in (town, shut)
    }
    assert counts == {town: (4, 2), shut: (1, 1)}
    assert row_of(facts, shut)["detail"] == f"{shut.url}/robots.txt answered 503"
    assert facts["slowest"]["origin"] in {town.url, village.url, shut.url}
    assert facts["crawl"]["reason"] == "finished"
    told = seen.log.partition("INFO: robots.txt in this crawl (pages)\n")[2]
    assert told.startswith("  origins asked: 3 (1 ")
    assert "\n  requests: 3 passed, 3 dropped, 1 passed by dont_obey_robotstxt\n" in told
    assert f"\n  dropped 2 at {town.url}: line 2, 'Disallow: /back/'\n" in told
    assert f"\n  dropped 1 at {shut.url}: closed (5xx)\n" in told
    assert seen.log_lines(f"INFO: The report on robots.txt is in {page}")
    assert page.read_text("utf-8").startswith("<!doctype html>")


def test_a_crawl_without_a_report_says_the_same_in_brief(mode: str) -> None:
    with Site(RULES) as site:
        seen = crawl(f"{site.url}/", f"{site.url}/back/", mode=mode)
    told = seen.log.partition("INFO: robots.txt in this crawl (pages)\n")[2]
    assert told.startswith(
        "  origins asked: 1 (1 rules)\n  robots.txt had: 1 from network; the slowest in 0."
    )
    assert "\n  requests: 1 passed, 1 dropped, 0 passed by dont_obey_robotstxt\n" in told


@pytest.mark.parametrize("rule", ["Disallow: /*.pdf", "disallow :/back/$ # the page alone"])
def test_patterns_are_told_in_brief(rule: str) -> None:
    with Site(f"User-agent: *\n{rule}\n") as site, Site("User-agent: *\nDisallow: /a # *\n") as plain:
        urls = (f"{site.url}/x.pdf", f"{plain.url}/", f"{site.url}/y.pdf")
        seen = crawl(*urls)
        both = crawl(*urls, settings={**ADDON, "NOROBOTS_ALSO_OBEY": ["scrapy.robotstxt.ProtegoRobotParser"]})
    told = f"  patterns that 1994 does not know (* or $) in 1 file, the first {site.url}/robots.txt\n"
    assert told in seen.log
    assert "patterns that" not in both.log


@pytest.mark.parametrize("limit", [1, 16])
def test_a_request_that_waits_for_its_turn_is_one_request(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "report.json"
    with Site("User-agent: *\nDisallow: /back/\n") as site:
        crawl(
            *(f"{site.url}/{number}" for number in range(8)),
            settings={**ADDON, "CONCURRENT_REQUESTS": limit, "NOROBOTS_REPORT": str(path)},
        )
    (row,) = json.loads(path.read_bytes())["rows"]
    assert row["requests"] == 8


def test_a_file_that_is_asked_for_again_is_one_file() -> None:
    with Site("User-agent: *\nDisallow: /*.pdf\n") as site:
        settings = {**ADDON, "NOROBOTS_TTL": 0, "NOROBOTS_TTL_MIN": 0, "CONCURRENT_REQUESTS": 1}
        seen = crawl(f"{site.url}/1", f"{site.url}/2", settings=settings)
    assert len(site.robots_hits()) > 1
    assert seen.log_lines("patterns that 1994 does not know (* or $) in 1 file,")


def test_a_crawl_that_asks_nobody_says_so() -> None:
    seen = crawl("data:,")
    assert "  origins asked: 0\n  requests: 0 passed, 0 dropped, 0 passed" in seen.log


def test_stale_copies_are_told(tmp_path: Path) -> None:
    answers = [Answer(RULES), CLOSED]
    file = tmp_path / "report.json"
    with Site() as start, Site(lambda _: answers.pop(0) if len(answers) > 1 else answers[0]) as site:
        crawl(
            f"{start.url}/",
            spider="tests.spiders.Asking",
            settings={**SHORT, "NOROBOTS_REPORT": str(file)},
            arguments={"plan": [(0, f"{site.url}/a"), (LONGER_THAN_TTL, f"{site.url}/back/")]},
        )
    facts = json.loads(file.read_text())
    row = row_of(facts, site)
    assert row["outcome"] == "rules of a stale copy"
    assert (row["requests"], row["dropped"]) == (2, 1)
    assert facts["origins"] == 2


# A dry run


def test_a_dry_run_tells_and_drops_nothing(mode: str, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    settings = with_report(file, NOROBOTS_DRY_RUN=True)
    with Site(RULES) as site, Site(CLOSED) as shut:
        urls = [f"{site.url}/", f"{site.url}/back/1", f"{site.url}/%62ack/2", f"{shut.url}/"]
        seen = crawl(*urls, mode=mode, settings=settings)
    assert sorted(seen.pages) == sorted(urls)
    assert seen.drops == []
    assert seen.stats["norobots/would_drop"] == 3
    assert "robotstxt/forbidden" not in seen.stats
    assert len(seen.log_lines("WARNING: NOROBOTS_DRY_RUN: ")) == 1
    assert len(seen.log_lines("WARNING: Would be forbidden by robots.txt: <GET", "Disallow: /back/")) == 2
    assert len(seen.log_lines("WARNING: Nothing would be fetched at", shut.url)) == 1
    assert not seen.log_lines(" Forbidden by robots.txt")
    facts = json.loads(file.read_text())
    assert facts["requests"] == {**NONE_WAITED, "passed": 1, "dropped": 3, "overridden": 0}
    assert facts["crawl"]["dry_run"] is True
    assert "\n  requests: 1 passed, 3 would have been dropped, 0 passed" in seen.log


def test_a_dry_run_lets_a_url_without_an_origin_pass() -> None:
    seen = crawl(with_no_origin("http://127.0.0.1:99999/"), settings={**ADDON, "NOROBOTS_DRY_RUN": True})
    assert seen.stats["norobots/would_drop"] == 1
    assert not [drop for drop in seen.drops if drop.type.startswith("Robots")]
    assert "would have been dropped 1 at no origin: the URL has no origin: " in seen.log
