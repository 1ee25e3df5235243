"""A crawl with an invalid setting does not start, and names the setting."""

from __future__ import annotations

from tests.helpers.running.crawling import ADDON, run_crawl
from tests.helpers.sites import Site


def test_a_parser_that_cannot_be_imported_is_an_error() -> None:
    path = "tests.helpers.components.parsers.NotAParser"
    done = run_crawl("data:,", settings={**ADDON, "ROBOTSTXT_PARSER": path})
    assert f"ValueError: ROBOTSTXT_PARSER = {path!r}: must be a RobotParser class: " in done.stderr


def test_a_crawl_with_an_invalid_setting_does_not_start() -> None:
    with Site() as site:
        done = run_crawl(f"{site.url}/", settings={**ADDON, "NOROBOTS_TIMEOUT": "soon"})
    assert site.targets() == []
    assert "ValueError: NOROBOTS_TIMEOUT = 'soon': must be a number of seconds" in done.stderr
