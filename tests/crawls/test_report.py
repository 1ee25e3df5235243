"""The summary and the report of real crawls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.crawls.test_refresh import LONGER_THAN_TTL, RULES, SHORT
from tests.helpers.running.crawling import ADDON, crawl, with_no_origin, with_report
from tests.helpers.sites import Answer, Site

CLOSED = Answer(status=503)
NONE_WAITED = dict.fromkeys(("waited", "came_back", "given_up", "left"), 0)


def row_of(facts: dict[str, Any], site: Site) -> dict[str, Any]:
    (row,) = (row for row in facts["rows"] if row["origin"] == site.url)
    return dict(row)


# The summary and the data


def test_a_crawl_logs_and_reports_what_it_met(mode: str, tmp_path: Path) -> None:
    page, data = tmp_path / "new" / "folder" / "report.html", tmp_path / "report.json"
    with Site(RULES) as town, Site() as village, Site(CLOSED) as shut:
        seen = crawl(
            *(f"{town.url}{path}" for path in ("/", "/a", "/back/1", "/back/2")),
            *(f"{site.url}/" for site in (village, shut)),
            {"url": f"{town.url}/back/3", "meta": {"dont_obey_robotstxt": True}},
            settings=with_report(page, data),
        )
    facts = json.loads(data.read_text())
    assert facts["requests"] == {**NONE_WAITED, "passed": 3, "dropped": 3, "overridden": 1}
    assert len(seen.pages) == 4
    assert seen.stats["norobots/passed"] == 3
    assert seen.stats["norobots/overridden"] == 1  # the retried robots.txt is not counted
    assert len(shut.robots_hits()) == 2
    assert facts["origins"] == 3
    assert {(each["text"], each["origins"]) for each in facts["outcomes"]} == {
        ("rules", 1),
        ("open (4xx)", 1),
        ("closed (5xx)", 1),
    }
    assert [(rule["text"], rule["requests"], rule["origins"]) for rule in facts["rules"]] == [
        ("Disallow: /back/", 2, [town.url]),
        ("closed (5xx)", 1, [shut.url]),
    ]
    assert [(entry["kind"], entry["requests"], entry["origins"]) for entry in facts["to_do"]] == [
        ("failed", 1, [shut.url])
    ]
    assert facts["crawl"]["settings"] == {
        "NOROBOTS_REPORT": str([str(page), str(data)]),
        "NOROBOTS_RETRY_CLOSED": "0",
    }
    counts = {
        site: (row_of(facts, site)["requests"], row_of(facts, site)["dropped"]) for site in (town, shut)
    }
    assert counts == {town: (4, 2), shut: (1, 1)}
    assert row_of(facts, shut)["detail"] == f"{shut.url}/robots.txt answered 503"
    assert facts["crawl"]["reason"] == "finished"
    summary = seen.log.partition("INFO: robots.txt in this crawl (pages)\n")[2]
    assert summary.startswith(
        "  requests: 3 passed, 3 dropped, 1 not checked (dont_obey_robotstxt)\n"
        f"  2 dropped at {town.url}: line 2, 'Disallow: /back/'\n"
        f"  1 dropped at {shut.url}: closed (5xx)\n"
        "  origins: 3 ("
    )
    assert "such as 503 to the end (1 request dropped for such reasons): " in summary
    assert seen.log_lines(f"INFO: The robots.txt report was written to {page}")
    assert page.read_text("utf-8").startswith("<!doctype html>")


def test_the_path_of_a_report_is_escaped_in_the_log(tmp_path: Path) -> None:
    data = tmp_path / "rep\x1b[31mort.json"
    seen = crawl("data:,", settings=with_report(data))
    assert data.exists()
    assert len(seen.log_lines("INFO: The robots.txt report was written to ", "rep\\x1b[31mort.json")) == 1
    assert "\x1b" not in seen.log


def test_files_with_patterns_are_something_to_do_unless_a_reading_obeys_them() -> None:
    with (
        Site("User-agent: *\nDisallow: /*.pdf\n") as site,
        Site("User-agent: *\nDisallow: /a # *\n") as plain,
    ):
        urls = (f"{site.url}/x.pdf", f"{plain.url}/", f"{site.url}/y.pdf")
        seen = crawl(*urls)
        both = crawl(*urls, settings={**ADDON, "NOROBOTS_ALSO_OBEY": ["rfc9309"]})
    assert seen.log_lines("to do: 1 site had * or $ in rules for this robot, read literally")
    assert not both.log_lines("* or $")


def test_sites_that_never_answer_are_something_to_do(tmp_path: Path) -> None:
    file, dead = tmp_path / "report.json", "http://127.0.0.1:1"
    seen = crawl(f"{dead}/a", settings=with_report(file))
    (entry,) = json.loads(file.read_text())["to_do"]
    assert (entry["kind"], entry["origins"]) == ("unanswered", [dead])
    assert seen.log_lines(
        "to do: 1 site gave no usable answer in the end (1 request dropped for such reasons): check hosts"
    )


@pytest.mark.usefixtures("_asyncio")
def test_a_report_has_no_secrets(tmp_path: Path) -> None:
    files = tmp_path / "report.json", tmp_path / "report.html"
    store = "redis://user:pa@ss@127.0.0.1:1/0?password=word"
    with Site(RULES) as site:
        seen = crawl(f"{site.url}/", settings=with_report(*files, NOROBOTS_STORE=store))
    assert json.loads(files[0].read_text())["crawl"]["settings"]["NOROBOTS_STORE"] == (
        "redis://***@127.0.0.1:1/0?***"
    )
    summary = seen.log.partition("robots.txt in this crawl")[2].partition("Dumping")[0]
    assert not [text for text in (*(file.read_text() for file in files), summary) if "pa@ss" in text]


@pytest.mark.parametrize("limit", [1, 16])
def test_a_request_that_waits_is_counted_once(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "report.json"
    with Site("User-agent: *\nDisallow: /back/\n") as site:
        crawl(
            *(f"{site.url}/{number}" for number in range(8)),
            settings={**ADDON, "CONCURRENT_REQUESTS": limit, "NOROBOTS_REPORT": str(path)},
        )
    (row,) = json.loads(path.read_bytes())["rows"]
    assert row["requests"] == 8


def test_a_file_that_is_downloaded_again_is_counted_once() -> None:
    with Site("User-agent: *\nDisallow: /*.pdf\n") as site:
        settings = {**ADDON, "NOROBOTS_TTL": 0, "NOROBOTS_TTL_MIN": 0, "CONCURRENT_REQUESTS": 1}
        seen = crawl(f"{site.url}/1", f"{site.url}/2", settings=settings)
    assert len(site.robots_hits()) > 1
    assert seen.log_lines("to do: 1 site had * or $ in rules")
    assert seen.log_lines("origins: 1 (rules: 1)")


def test_a_crawl_without_downloads_has_a_summary() -> None:
    seen = crawl("data:,")
    assert "  requests: 0 passed, 0 dropped, 0 not checked (dont_obey_robotstxt)\n  origins: 0\n" in seen.log


def test_stale_copies_are_reported(tmp_path: Path) -> None:
    answers = [Answer(RULES), CLOSED]
    file = tmp_path / "report.json"
    with Site() as start, Site(lambda _: answers.pop(0) if len(answers) > 1 else answers[0]) as site:
        crawl(
            f"{start.url}/",
            spider="tests.helpers.spiders.asking.Asking",
            settings={**SHORT, "NOROBOTS_REPORT": str(file)},
            arguments={"plan": [(0, f"{site.url}/a"), (LONGER_THAN_TTL, f"{site.url}/back/")]},
        )
    facts = json.loads(file.read_text())
    row = row_of(facts, site)
    assert row["outcome"] == "rules (stale)"
    assert (row["requests"], row["dropped"]) == (2, 1)
    assert facts["origins"] == 2


# A dry run


def test_a_dry_run_reports_and_drops_nothing(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    settings = with_report(file, NOROBOTS_DRY_RUN=True)
    with Site(RULES) as site, Site(CLOSED) as shut:
        urls = [f"{site.url}/", f"{site.url}/back/1", f"{site.url}/%62ack/2", f"{shut.url}/"]
        seen = crawl(*urls, settings=settings)
    assert sorted(seen.pages) == sorted(urls)
    assert seen.drops == []
    assert seen.stats["norobots/would_drop"] == 3
    assert "robotstxt/forbidden" not in seen.stats
    assert len(seen.log_lines("WARNING: NOROBOTS_DRY_RUN is on: ")) == 1
    assert len(seen.log_lines("WARNING: Would be forbidden by robots.txt: <GET", "Disallow: /back/")) == 2
    assert len(seen.log_lines("WARNING", f"requests to {shut.url} would be dropped")) == 1
    assert len(seen.log_lines(f"DEBUG: Would be dropped: <GET {shut.url}/> ({shut.url}/robots.txt ")) == 1
    assert not seen.log_lines(" Forbidden by robots.txt")
    facts = json.loads(file.read_text())
    assert facts["requests"] == {**NONE_WAITED, "passed": 1, "dropped": 3, "overridden": 0}
    assert facts["crawl"]["dry_run"] is True
    assert "\n  requests: 1 passed, 3 would have been dropped, 0 not checked" in seen.log


def test_a_dry_run_lets_a_url_without_an_origin_pass() -> None:
    seen = crawl(with_no_origin("http://127.0.0.1:99999/"), settings={**ADDON, "NOROBOTS_DRY_RUN": True})
    assert seen.stats["norobots/would_drop"] == 1
    assert not [drop for drop in seen.drops if drop.type.startswith("Robots")]
    assert "1 would have been dropped at no origin: the URL is invalid: " in seen.log
