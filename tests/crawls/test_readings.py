"""Several readings of one file: `NOROBOTS_ALSO_OBEY`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers.running.crawling import ADDON, crawl, run_crawl
from tests.helpers.sites import Site

PROTEGO = "scrapy.robotstxt.ProtegoRobotParser"
PYTHON = "scrapy.robotstxt.PythonRobotParser"

# The strict reading has neither wildcards nor Allow; RFC 9309 has both.
RULES = "User-agent: *\nDisallow: /back/\n"
BOTH = "User-agent: *\nDisallow: /back/\nAllow: /back/door\nDisallow: /*.pdf\n"


def crawled(*paths: str, **settings: Any) -> Any:
    with Site(BOTH) as site:
        seen = crawl(*(site.url + path for path in paths), settings={**ADDON, **settings})
    drops = {drop.url[len(site.url) :]: drop for drop in seen.drops}
    return seen, drops, site


def test_a_request_passes_only_if_all_readings_allow_it(mode: str) -> None:
    seen, drops, site = crawled("/", "/back/door", "/a.pdf", "/back/", NOROBOTS_ALSO_OBEY=["rfc9309"])
    assert site.pages() == ["/"]
    assert {path: drop.line for path, drop in drops.items()} == {"/back/door": 2, "/a.pdf": 4, "/back/": 2}
    why = f"line 4 of {site.url}/robots.txt, 'Disallow: /*.pdf', in the record of line 1 for '*', by RFC 9309"
    assert drops["/a.pdf"].text.endswith(why)
    assert seen.log_lines("Forbidden by robots.txt", "/a.pdf", why)
    assert seen.stats["norobots/forbidden_by/StrictRobotParser"] == 2
    assert seen.stats["norobots/forbidden_by/Rfc9309RobotParser"] == 1
    assert len(site.robots_hits()) == 1


def test_also_obey_may_have_several_parsers_beside_a_replaced_first_one() -> None:
    _, drops, _ = crawled(
        "/a.pdf",
        "/back/door",
        ROBOTSTXT_PARSER=PROTEGO,
        NOROBOTS_ALSO_OBEY=f"{PYTHON}, scrapy_norobots.StrictRobotParser",
    )
    assert drops["/a.pdf"].text.endswith("as read by ProtegoRobotParser")
    assert drops["/back/door"].line == 2  # readings of this package are asked before the others


def test_rfc_9309_may_be_the_only_reading() -> None:
    _, drops, site = crawled(
        "/a.pdf", "/back/door", "/back/", ROBOTSTXT_PARSER="scrapy_norobots.Rfc9309RobotParser"
    )
    assert site.pages() == ["/back/door"]
    assert {path: drop.line for path, drop in drops.items()} == {"/a.pdf": 4, "/back/": 2}


@pytest.mark.parametrize("multivalue", [True, False])
def test_the_multi_value_dialect(multivalue: bool) -> None:
    settings = {**ADDON, "NOROBOTS_MULTIVALUE": multivalue}
    with Site("User-agent: nobody *\nDisallow: /attic /cellar\n") as site:
        seen = crawl(f"{site.url}/cellar", f"{site.url}/", settings=settings)
    assert site.pages() == (["/"] if multivalue else ["/", "/cellar"])
    assert [drop.line for drop in seen.drops] == ([2] if multivalue else [])


def test_the_dialect_works_with_scrapys_own_middleware() -> None:
    settings = {
        "ROBOTSTXT_OBEY": True,
        "ROBOTSTXT_PARSER": "scrapy_norobots.StrictRobotParser",
        "NOROBOTS_MULTIVALUE": True,
    }
    with Site("User-agent: nobody *\nDisallow: /attic /cellar\n") as site:
        crawl(f"{site.url}/cellar", f"{site.url}/", settings=settings)
    assert site.pages() == ["/"]


@pytest.mark.parametrize("setting", ["ROBOTSTXT_PARSER", "NOROBOTS_ALSO_OBEY"])
def test_a_reading_that_fails_closes_the_site(setting: str) -> None:
    seen, drops, site = crawled("/", **{setting: "tests.helpers.components.parsers.BrokenParser"})
    assert site.pages() == []
    assert drops["/"].type == "RobotsUnreachable"
    assert "could not be parsed (RuntimeError: no such luck)" in drops["/"].text
    assert seen.log_lines("WARNING", "are dropped")


def test_a_parser_that_is_not_installed_is_refused() -> None:
    parser = "tests.helpers.components.parsers.UninstalledParser"
    done = run_crawl("data:,", settings={**ADDON, "NOROBOTS_ALSO_OBEY": [parser]})
    assert f"NOROBOTS_ALSO_OBEY = [{parser!r}]: UninstalledParser cannot be used: " in done.stderr


@pytest.mark.parametrize("parser", [PROTEGO, PYTHON])
@pytest.mark.parametrize(
    ("body", "forbidden"),
    [
        (b"# caf\xe9\nUser-agent: *\nDisallow: /back/\n", "/back/1"),
        ("User-agent: *\nDisallow: /back/\n".encode("utf-16"), "/back/1"),
        (b"\xef\xbb\xbfUser-agent: *\nDisallow: /back/\n", "/back/1"),
        (b"User-agent: *\nDisallow: /caf\xe9/\n", "/caf%E9/1"),
    ],
    ids=["a bad byte in a comment", "UTF-16", "a byte order mark", "a bad byte in a path"],
)
def test_other_parsers_get_a_file_that_they_can_read(parser: str, body: bytes, forbidden: str) -> None:
    with Site(body) as site:
        seen = crawl(site.url + forbidden, settings={**ADDON, "ROBOTSTXT_PARSER": parser})
    assert site.pages() == []
    assert [drop.type for drop in seen.drops] == ["RobotsForbidden"]


@pytest.mark.parametrize(
    ("name", "type_of_robot"), [(None, "bytes"), ("TownCatalogue", "str")], ids=["header", "setting"]
)
def test_other_parsers_get_the_robot_in_scrapys_types(name: str | None, type_of_robot: str) -> None:
    settings = {
        "ROBOTSTXT_OBEY": True,
        "ROBOTSTXT_PARSER": "tests.helpers.components.parsers.TellsTheRobotsType",
    }
    if name:
        settings["ROBOTSTXT_USER_AGENT"] = name
    for add_on in ({}, ADDON):
        with Site(RULES) as site:
            seen = crawl(f"{site.url}/", settings={**add_on, **settings})
        assert site.pages() == ["/"]
        assert seen.log_lines(f"asked by {type_of_robot}")


@pytest.mark.parametrize("setting", ["ROBOTSTXT_PARSER", "NOROBOTS_ALSO_OBEY"])
def test_a_parser_needs_no_from_crawler(setting: str) -> None:
    bare = "tests.helpers.components.parsers.BareParser"
    _, drops, site = crawled("/", "/a.pdf", **{setting: bare})
    assert site.pages() == ["/"]
    assert drops["/a.pdf"].text.endswith("as read by BareParser")


def test_a_parser_that_fails_on_a_question_forbids() -> None:
    seen, drops, site = crawled("/", NOROBOTS_ALSO_OBEY=["tests.helpers.components.parsers.FailingParser"])
    assert site.pages() == []
    assert drops["/"].text.endswith(
        f"FailingParser failed (RuntimeError: not this one) on {site.url}/robots.txt"
    )
    assert seen.stats["norobots/forbidden_by/FailingParser"] == 1
