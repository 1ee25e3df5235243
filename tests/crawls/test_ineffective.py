"""The warning about lines without effect in robots.txt files."""

from __future__ import annotations

import json
from pathlib import Path

from tests.crawls.test_refresh import LONGER_THAN_TTL, SHORT
from tests.helpers.running.crawling import ADDON, crawl, with_report
from tests.helpers.sites import Site

FAULTY = "User-agent: *\nDisallow: /back/\nDisalow: /attic/\n\nDisallow: /cellar/\n"


def test_lines_without_effect_are_one_warning() -> None:
    with Site(FAULTY) as site:
        seen = crawl(f"{site.url}/", f"{site.url}/attic/", f"{site.url}/cellar/")
    (line,) = seen.log_lines("WARNING: ", "without effect")
    assert f"{site.url}/robots.txt has lines without effect: 2 lines, so the strict" in line
    assert "(line 3, " in line
    assert "'Disalow: /attic/'" in line
    assert "line 5, 'Disallow: /cellar/'" in line


def test_lines_of_other_robots_are_no_warning() -> None:
    with Site(FAULTY.replace("*", "Other")) as site:
        seen = crawl(f"{site.url}/", f"{site.url}/attic/")
        for_others = crawl(f"{site.url}/", settings={**ADDON, "NOROBOTS_ALSO_ROBOTS": ["Other"]})
    assert not seen.log_lines("WARNING: ", "effect")
    assert seen.log_lines("INFO: ", f"{site.url}/robots.txt has lines without effect: 2 lines")
    assert for_others.log_lines("WARNING: ", "has lines without effect: 2 lines")


def test_lines_without_effect_are_reported_with_another_reading_too() -> None:
    settings = {**ADDON, "NOROBOTS_ALSO_OBEY": ["rfc9309"]}
    with Site(FAULTY) as site:
        seen = crawl(f"{site.url}/", settings=settings)
    assert not seen.log_lines("WARNING: ", "without effect")  # it forbids what these lines mean
    assert seen.log_lines("INFO: ", "without effect: 2 lines")
    assert seen.log_lines("  files with lines without effect: 1")


def test_lines_without_effect_are_reported_once_per_origin() -> None:
    with Site() as start, Site(FAULTY) as site:
        seen = crawl(
            f"{start.url}/",
            spider="asking.Asking",
            settings=SHORT,
            arguments={"plan": [(0, f"{site.url}/"), (LONGER_THAN_TTL, f"{site.url}/")]},
        )
    assert len(site.robots_hits()) == 2
    assert len(seen.log_lines("has lines without effect")) == 1
    assert seen.log_lines("  files with lines without effect: 1")


def test_lines_without_effect_do_not_fill_the_log(tmp_path: Path) -> None:
    with Site(FAULTY, host="0.0.0.0") as site:
        urls = [f"{site.url_of(f'127.2.0.{number}')}/" for number in range(1, 26)]
        seen = crawl(*urls, settings=with_report(tmp_path / "report.json"))
    assert len(seen.log_lines("WARNING: ", "without effect")) == 20
    assert len(seen.log_lines("DEBUG: ", "without effect")) == 5
    rows = json.loads((tmp_path / "report.json").read_text())["rows"]
    assert [row["ignored_lines"] for row in rows] == [2] * 25
    assert rows[0]["findings"] == "misspelt-field (line 3), stray-disallow (line 5)"


def test_the_users_parser_has_no_lines_without_effect() -> None:
    settings = {**ADDON, "ROBOTSTXT_PARSER": "scrapy.robotstxt.ProtegoRobotParser"}
    with Site(FAULTY) as site:
        seen = crawl(f"{site.url}/", f"{site.url}/back/", settings=settings)
    assert not seen.log_lines("without effect")
    assert "ProtegoRobotParser\n" in seen.log.partition("robots.txt in this crawl (pages)\n")[2]
