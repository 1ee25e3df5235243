"""Rules for other names: `NOROBOTS_ALSO_ROBOTS`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.helpers.judges.evidence import audit, change_decisions, decisions
from tests.helpers.running.commands import run
from tests.helpers.running.crawling import ADDON, crawl
from tests.helpers.sites import Site

RULES = """\
User-agent: GPTBot
Disallow: /diary

User-agent: CCBot
Disallow: /archive

User-agent: *
Disallow: /attic
"""
NAMES = ["CCBot", "GPTBot"]
SETTINGS = {**ADDON, "USER_AGENT": "Tamarin/1.0", "NOROBOTS_ALSO_ROBOTS": NAMES}
ALSO = ("-s", "NOROBOTS_ALSO_ROBOTS=CCBot,GPTBot")
PATHS = ("/", "/attic", "/diary", "/archive")


def crawled(rules: str = RULES, **settings: Any) -> Any:
    with Site(rules) as site:
        seen = crawl(*(site.url + path for path in PATHS), settings={**SETTINGS, **settings})
    return seen, {drop.url[len(site.url) :]: drop for drop in seen.drops}, site


def test_a_request_passes_only_if_each_robot_may_send_it(mode: str) -> None:
    seen, drops, site = crawled()
    assert site.pages() == ["/"]
    assert {path: drop.line for path, drop in drops.items()} == {"/attic": 8, "/diary": 2, "/archive": 5}
    assert len(site.robots_hits()) == 1
    for name, path in {"GPTBot": "/diary", "CCBot": "/archive"}.items():
        assert drops[path].text.endswith(f"for '{name}', by the rules for '{name}' (NOROBOTS_ALSO_ROBOTS)")
        assert seen.log_lines("Forbidden by robots.txt", path, f"by the rules for '{name}'")
        assert seen.stats[f"norobots/forbidden_for/{name}"] == 1
        assert seen.log_lines(f"1 dropped at {site.url}: line", f"'Disallow: {path}'")
    assert "ALSO_ROBOTS" not in drops["/attic"].text
    assert seen.stats["norobots/forbidden_by/StrictRobotParser"] == 3


def test_every_reading_is_asked_for_each_robot() -> None:
    rules = "User-agent: *\nDisallow:\n\nUser-agent: GPTBot\nDisallow: /*y$\n"
    seen, drops, _ = crawled(rules, NOROBOTS_ALSO_OBEY="rfc9309", NOROBOTS_ALSO_ROBOTS="CCBot, GPTBot")
    assert list(drops) == ["/diary"]
    assert drops["/diary"].text.endswith(
        "'Disallow: /*y$', in the record of line 4 for 'GPTBot', by RFC 9309, "
        "by the rules for 'GPTBot' (NOROBOTS_ALSO_ROBOTS)"
    )
    assert seen.stats["norobots/forbidden_for/GPTBot"] == 1


def test_a_large_file_is_read_for_each_robot() -> None:
    padding = "".join(f"User-agent: padding{number}\nDisallow: /\n\n" for number in range(1500))
    _, drops, site = crawled(padding + RULES)
    assert site.pages() == ["/"]
    assert set(drops) == set(PATHS[1:])


def test_the_audit_makes_the_decisions_of_each_robot_again(tmp_path: Path) -> None:
    folder = tmp_path / "evidence"
    crawled(NOROBOTS_EVIDENCE=str(folder))
    by_path = {facts["url"].rpartition("/")[2]: facts for facts in decisions(folder)}
    assert by_path["diary"]["robot"] == "Tamarin/1.0"
    assert by_path["diary"]["decided_for"] == "GPTBot"
    assert by_path["archive"]["decided_for"] == "CCBot"
    assert "decided_for" not in by_path["attic"]
    assert "decided_for" not in by_path[""]
    # The evidence has the names, whatever the project's setting is now.
    assert "all agree" in audit(folder).stdout
    assert "all agree" in audit(folder, "-s", "NOROBOTS_ALSO_ROBOTS=Potto").stdout
    change_decisions(folder, lambda facts: facts.pop("decided_for", None))
    done = audit(folder)
    assert done.returncode == 1
    assert "recorded with decided_for None; judged with decided_for 'GPTBot'" in done.stdout


def test_robots_check_names_the_robot_that_decided(tmp_path: Path) -> None:
    file = tmp_path / "robots.txt"
    file.write_text(RULES)
    arguments = ("robots-check", "--file", str(file), "--robot", "Tamarin", "http://town.example/diary")
    done = run(tmp_path, *arguments, *ALSO)
    assert done.returncode == 1
    assert done.stdout.startswith("forbidden http://town.example/diary for 'Tamarin': line 2 of ")
    assert done.stdout.rstrip().endswith("by the rules for 'GPTBot' (NOROBOTS_ALSO_ROBOTS)")
    done = run(tmp_path, *arguments, *ALSO, "--json")
    answer = json.loads(done.stdout)
    assert (answer["robot"], answer["decided_for"]) == ("Tamarin", "GPTBot")
    done = run(tmp_path, *arguments, "--json")
    assert json.loads(done.stdout)["decided_for"] is None
