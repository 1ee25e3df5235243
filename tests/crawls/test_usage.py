"""What sites and pages state about how pages may be used: `NOROBOTS_USAGE` and `NOROBOTS_PURPOSES`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scrapy_norobots import RobotsTxt
from tests.helpers.judges.evidence import audit, change_decisions, decisions
from tests.helpers.running.commands import run
from tests.helpers.running.crawling import ADDON, Crawl, crawl
from tests.helpers.sites import Answer, Site

RULES = """\
License: https://town.example/license.xml

User-agent: *
Content-Signal: search=yes, ai-train=no
Content-Usage: /open train-ai=y
Disallow: /attic

User-agent: Potto
Disallow: /potto

Content-Usage: /diary ai-use=n
"""
USAGE = {**ADDON, "USER_AGENT": "Tamarin/1.0", "NOROBOTS_USAGE": True}
PATHS = ("/", "/attic", "/diary", "/open")
SPIDER = "tests.helpers.spiders.usage.NotesUsage"

# A block that a content delivery network puts before the site's own groups.
MANAGED = """\
# BEGIN Managed content

User-agent: *
Content-Signal: search=yes,ai-train=no,use=reference
Allow: /

User-agent: GPTBot
Disallow: /

# END Managed Content

"""
OWN = "User-agent: *\nDisallow: /attic\n"


def crawled(rules: Any = RULES, **settings: Any) -> tuple[Crawl, dict[str, Any], Site]:
    with Site(rules) as site:
        urls = [site.url + path for path in PATHS]
        seen = crawl(*urls, spider=SPIDER, settings={**USAGE, **settings})
    return seen, {drop.url[len(site.url) :]: drop for drop in seen.drops}, site


def lines(notes: Any) -> list[int]:
    return [facts["line"] for facts in notes["robots_txt"]]


def test_statements_of_robots_txt_are_in_the_meta_of_responses() -> None:
    seen, drops, site = crawled()
    assert site.pages() == ["/", "/diary", "/open"]
    assert list(drops) == ["/attic"]
    assert lines(seen.notes["/"]) == [1, 4]
    assert lines(seen.notes["/open"]) == [1, 4, 5]
    assert lines(seen.notes["/diary"]) == [1, 4, 11]
    assert seen.notes["/"]["robots_txt"][1] == {
        "kind": "content-signal",
        "source": "robots.txt",
        "line": 4,
        "place": "group",
        "text": "Content-Signal: search=yes, ai-train=no",
        "value": {"search": True, "ai-train": False},
    }
    assert seen.notes["/diary"]["robots_txt"][2]["place"] == "after a blank line"
    assert seen.notes["/"]["no to ai-train"] == "Content-Signal: search=yes, ai-train=no"
    assert {name: count for name, count in seen.stats.items() if name.startswith("norobots/usage")} == {
        "norobots/usage/content-signal": 1,
        "norobots/usage/content-usage": 1,
        "norobots/usage/license": 1,
        "norobots/usage/no_to_ai-input": 1,
        "norobots/usage/no_to_ai-train": 1,
    }
    assert site.targets().count("/robots.txt") == 1
    assert len(site.hits) == 4  # nothing else was requested, not even the license


def test_statements_of_pages_are_in_the_meta_of_responses() -> None:
    html = {"Content-Type": "text/html"}
    answers = {
        "/": Answer(
            "<head><meta name=robots content=noai><meta name=tdm-reservation content=1>", headers=html
        ),
        "/attic": Answer(
            headers={"tdm-reservation": "1", "TDM-Policy": "/p.json", "Content-Usage": "train-ai=n"}
        ),
        "/diary": Answer(headers={"Link": "</l.xml>; rel=license", "X-Robots-Tag": "noimageai"}),
        "/open": Answer("noai", headers=html),
    }
    with Site(answers=answers) as site:
        seen = crawl(*(site.url + path for path in PATHS), spider=SPIDER, settings=USAGE)
    found = {path: [(facts["kind"], facts["source"]) for facts in seen.notes[path]["page"]] for path in PATHS}
    assert found == {
        "/": [("tdm-reservation", "meta"), ("noai", "meta")],
        "/attic": [("content-usage", "header"), ("tdm-reservation", "header"), ("tdm-policy", "header")],
        "/diary": [("license", "header"), ("noimageai", "header")],
        "/open": [],
    }
    assert seen.notes["/attic"]["page"][2]["problem"] == "not an absolute URL"
    assert seen.notes["/diary"]["page"][0]["value"] == f"{site.url}/l.xml"
    assert {seen.notes[path]["robots_txt"] for path in PATHS} == {None}  # there is no robots.txt
    assert seen.stats["norobots/usage/page/tdm-reservation"] == 2


def test_what_the_response_to_a_request_for_robots_txt_states_is_not_counted() -> None:
    moved = Answer(status=301, headers={"Location": "/moved.txt"})
    with Site(moved, {"/moved.txt": Answer(headers={"tdm-reservation": "1"})}) as site:
        seen = crawl(f"{site.url}/", spider=SPIDER, settings=USAGE)
    assert site.targets() == ["/robots.txt", "/moved.txt", "/"]
    assert not [name for name in seen.stats if name.startswith("norobots/usage")]


def test_what_pages_say_is_not_obeyed() -> None:
    answers = {"/": Answer(headers={"Content-Usage": "bots=n"})}
    with Site("", answers) as site:
        seen = crawl(f"{site.url}/", spider=SPIDER, settings={**USAGE, "NOROBOTS_PURPOSES": ["search"]})
    assert not seen.drops
    assert seen.notes["/"]["robots_txt"] == []


def test_responses_that_need_no_robots_txt_are_accepted() -> None:
    with Site(RULES) as site:
        meta = {"dont_obey_robotstxt": True, "norobots_url": "town.example"}
        requests = {"url": f"{site.url}/", "meta": meta}, f"{site.url}/robots.txt", "data:,"
        seen = crawl(*requests, spider=SPIDER, settings=USAGE)
    assert seen.notes == {"/": None, "/robots.txt": None}
    assert "log_count/ERROR" not in seen.stats


def test_nothing_is_read_by_default() -> None:
    seen, drops, _ = crawled(NOROBOTS_USAGE=False)
    assert list(drops) == ["/attic"]
    assert {seen.notes[path] for path in ("/", "/diary", "/open")} == {None}
    assert not [name for name in seen.stats if name.startswith("norobots/usage")]


def test_a_request_is_dropped_if_a_statement_says_no_to_a_purpose(mode: str) -> None:
    seen, drops, site = crawled(NOROBOTS_USAGE=False, NOROBOTS_PURPOSES=["ai-input", "search"])
    assert site.pages() == ["/", "/open"]
    assert set(drops) == {"/attic", "/diary"}
    assert (drops["/diary"].type, drops["/diary"].line) == ("RobotsForbidden", 11)
    why = (
        f"line 11 of {site.url}/robots.txt, 'Content-Usage: /diary ai-use=n', says no to 'ai-input' "
        "(NOROBOTS_PURPOSES)"
    )
    assert drops["/diary"].text.endswith(why)
    assert seen.log_lines("Forbidden by robots.txt", "/diary", why)
    assert seen.log_lines(f"1 dropped at {site.url}: line 11, 'Content-Usage: /diary ai-use=n'")
    assert seen.stats["norobots/forbidden_by/UsageStatements"] == 1
    assert seen.stats["norobots/forbidden_by/StrictRobotParser"] == 1
    assert lines(seen.notes["/"]) == [1, 4]  # they are read, too


def test_purposes_work_with_several_readings_and_other_robots() -> None:
    rules = "User-agent: *\nDisallow:\n\nUser-agent: Potto\nContent-Signal: ai-train=no\nAllow: /\n"
    settings: dict[str, Any] = {"NOROBOTS_PURPOSES": ["ai-train"], "NOROBOTS_ALSO_OBEY": "rfc9309"}
    assert crawled(rules, **settings)[2].pages() == sorted(PATHS)
    _, drops, site = crawled(rules, **settings, NOROBOTS_ALSO_ROBOTS=["Potto"])
    assert site.pages() == []
    assert drops["/"].text.endswith("(NOROBOTS_PURPOSES), by the rules for 'Potto' (NOROBOTS_ALSO_ROBOTS)")


def test_a_dry_run_sends_what_a_statement_forbids() -> None:
    seen, _, site = crawled(NOROBOTS_PURPOSES=["ai-train"], NOROBOTS_DRY_RUN=True)
    assert site.pages() == sorted(PATHS)
    assert seen.log_lines("Would be forbidden by robots.txt", "says no to 'ai-train'")


def test_a_large_file_is_obeyed() -> None:
    padding = "User-agent: padding\nDisallow: /\n\n" * 1_500
    assert crawled(padding + RULES, NOROBOTS_PURPOSES=["ai-train"])[2].pages() == []


@pytest.mark.parametrize("also", [[], ["rfc9309"]], ids=["strict", "and RFC 9309"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_managed_block_before_the_sites_own_groups_does_not_weaken_them(also: list[str], end: str) -> None:
    rules = (MANAGED + OWN).replace("\n", end)
    _, drops, site = crawled(Answer(rules.encode()), NOROBOTS_ALSO_OBEY=also)
    assert list(drops) == ["/attic"]
    _, drops, _ = crawled(Answer(rules.encode()), ROBOTSTXT_PARSER="scrapy.robotstxt.ProtegoRobotParser")
    assert list(drops) == ["/attic"]
    assert crawled(Answer(rules.encode()), NOROBOTS_PURPOSES=["ai-train"])[2].pages() == []
    assert not RobotsTxt.parse(rules).allowed("/", "GPTBot/1.1")
    assert site.pages() == ["/", "/diary", "/open"]


def test_the_audit_verifies_the_statements_of_robots_txt(tmp_path: Path) -> None:
    folder = tmp_path / "evidence"
    crawled(NOROBOTS_EVIDENCE=str(folder), NOROBOTS_PURPOSES=["ai-input"])
    made = {facts["url"].rpartition("/")[2]: facts for facts in decisions(folder)}
    assert (made["diary"]["verdict"], made["diary"]["reason"]) == ("forbidden", "statement")
    assert (made["diary"]["line"], made["diary"]["rule"]) == (11, "Content-Usage: /diary ai-use=n")
    assert [facts["line"] for facts in made[""]["usage"]] == [1, 4]
    assert [facts["line"] for facts in made["attic"]["usage"]] == [1, 4]
    # The evidence has the purposes, whatever the project's settings are now.
    assert "4 decisions" in audit(folder).stdout
    assert "all agree" in audit(folder).stdout
    assert "all agree" in audit(folder, "-s", "NOROBOTS_PURPOSES=search,ai-train").stdout
    change_decisions(folder, lambda facts: facts["usage"].pop() if facts["url"].endswith("open") else None)
    done = audit(folder)
    assert done.returncode == 1
    assert "/open: recorded with usage [" in done.stdout


@pytest.mark.parametrize("parser", ["scrapy.robotstxt.ProtegoRobotParser", None])
def test_evidence_of_a_statement_agrees_with_any_first_parser(tmp_path: Path, parser: str | None) -> None:
    folder = tmp_path / "evidence"
    # The strict parser would forbid the page, too.
    rules = "User-agent: *\nDisallow: /open\nAllow: /open\nContent-Signal: ai-train=no\n"
    settings = {"ROBOTSTXT_PARSER": parser} if parser else {"NOROBOTS_ALSO_OBEY": "rfc9309"}
    crawled(rules, NOROBOTS_EVIDENCE=str(folder), NOROBOTS_PURPOSES=["ai-train"], **settings)
    assert "4 decisions (4 forbidden): all agree" in audit(folder).stdout


def test_evidence_has_no_statements_if_they_are_not_read(tmp_path: Path) -> None:
    crawled(NOROBOTS_EVIDENCE=str(tmp_path / "evidence"), NOROBOTS_USAGE=False)
    assert all("usage" not in facts for facts in decisions(tmp_path / "evidence"))
    change_decisions(tmp_path / "evidence", lambda facts: facts.update(usage=[]))
    assert "4 problems" in audit(tmp_path / "evidence").stdout


def test_robots_check_shows_statements_and_obeys_purposes(tmp_path: Path) -> None:
    file = tmp_path / "robots.txt"
    file.write_text(RULES)
    arguments = ("robots-check", "--file", str(file), "--robot", "Tamarin", "http://town.example/diary")
    done = run(tmp_path, *arguments, "-s", "NOROBOTS_USAGE=True")
    assert done.returncode == 0
    assert done.stdout.rstrip().endswith("line 11: Content-Usage: /diary ai-use=n]")
    done = run(tmp_path, *arguments, "--json", "-s", "NOROBOTS_PURPOSES=ai-input")
    answer = json.loads(done.stdout)
    assert (answer["answer"], answer["reason"], answer["rule"]["line"]) == ("forbidden", "statement", 11)
    assert [facts["line"] for facts in answer["usage"]] == [1, 4, 11]
    assert json.loads(run(tmp_path, *arguments, "--json").stdout)["usage"] is None
    with Site(RULES) as site:
        done = run(tmp_path, "robots-check", f"{site.url}/diary", "-s", "NOROBOTS_PURPOSES=ai-input")
    assert (done.returncode, "says no to 'ai-input' (NOROBOTS_PURPOSES)" in done.stdout) == (1, True)


def test_robots_lint_finds_malformed_statements(tmp_path: Path) -> None:
    file = tmp_path / "robots.txt"
    file.write_text(
        "User-agent: *\nDisallow:\nContent-Signal: ai-train = no\nContent-Usage: train-ai=n\n"
        "Content-Usage: Train-AI=n\nLicense: /license.xml\nLicense: https://town.example/\n"
    )
    done = run(tmp_path, "robots-lint", str(file))
    assert [line.split(":")[1:3] for line in done.stdout.splitlines() if "[malformed-statement]" in line] == [
        ["3", " warning"],
        ["5", " warning"],
        ["6", " warning"],
    ]
    assert "license: not an absolute URL" in done.stdout
    assert len([line for line in done.stdout.splitlines() if "[later-field]" in line]) == 5
