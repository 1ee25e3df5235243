"""Refreshes in real crawls: when a file is downloaded again, and which rules apply meanwhile."""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import Any

import pytest
from scrapy import signals

from tests.helpers.running.crawling import ADDON, Crawl, crawl
from tests.helpers.sites import Answer, Hit, Site, page

RULES = "User-agent: *\nDisallow: /back/\n"
OTHER_RULES = "User-agent: *\nDisallow: /attic/\n"
SHORT = {
    **ADDON,
    "RETRY_ENABLED": False,
    "NOROBOTS_TTL": 200,
    "NOROBOTS_TTL_MIN": 0,
    "NOROBOTS_ERROR_TTL": 100,
}
LONGER_THAN_TTL = 250
FORBIDDEN, CLOSED = "RobotsForbidden", "RobotsUnreachable"
HTTPX = "scrapy.core.downloader.handlers._httpx.HttpxDownloadHandler"


class Changing(Site):
    """A site with a list of responses for robots.txt; the last one is repeated."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        super().__init__(self._next)

    def _next(self, hit: Hit) -> Answer:
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def ask(site: Site, *plan: tuple[float, str], **settings: Any) -> Crawl:
    """Check targets of a site, each some seconds later on the plugin's clocks."""
    with Site() as start:
        return crawl(
            f"{start.url}/",
            spider="asking.Asking",
            settings={**SHORT, **settings},
            arguments={"plan": [(pause, site.url + target) for pause, target in plan]},
        )


@pytest.mark.skipif(not hasattr(signals, "robots_parsed"), reason="this version of Scrapy has no such signal")
def test_robots_parsed_is_sent_for_a_changed_file_and_not_for_a_304() -> None:
    first = Answer(RULES, headers={"ETag": '"1"'})
    with Changing(first, Answer(status=304), Answer(OTHER_RULES)) as site, Site() as start:
        plan = [(pause, f"{site.url}/") for pause in (0, LONGER_THAN_TTL, LONGER_THAN_TTL)]
        seen = crawl(
            f"{start.url}/", spider="asking.ListeningAndAsking", settings=SHORT, arguments={"plan": plan}
        )
        assert len(site.robots_hits()) == 3
    assert [allowed for _, _, allowed in seen.notes["parsed"]] == [False, True]


def test_requests_that_wait_longer_than_rules_are_fresh_obey_the_newest_rules() -> None:
    """Twelve pages wait in a line for more than a second; the third file forbids those that still wait."""
    settings = {**SHORT, "NOROBOTS_TTL": 0.25, "DOWNLOAD_DELAY": 0.1, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    first = Answer(RULES, before=lambda: time.sleep(1))  # so that all pages wait for it
    with Changing(first, Answer(RULES), Answer("User-agent: *\nDisallow: /\n")) as site:
        seen = crawl(*(f"{site.url}/{i}" for i in range(12)), settings=settings)
        targets = site.targets()
    assert len(seen.pages) + len(seen.drops) == 12
    third = [place for place, target in enumerate(targets) if target == "/robots.txt"][2]
    assert set(targets[third:]) == {"/robots.txt"}


def test_a_page_that_waits_for_its_delay_obeys_rules_that_were_loaded_since() -> None:
    """Another page leads to a third one, for which they are loaded."""
    settings = {**SHORT, "DOWNLOAD_SLOTS": {"slow": {"delay": 2}}}
    first = Answer(RULES, headers={"Cache-Control": "max-age=0"})
    with Changing(first, Answer(OTHER_RULES)) as site:
        site.answers["/1"] = page("/2")
        waiting = {"url": f"{site.url}/attic/", "meta": {"download_slot": "slow"}}
        seen = crawl(waiting, f"{site.url}/1", settings=settings, arguments={"follow": True})
        assert [hit.target for hit in site.hits] == ["/robots.txt", "/1", "/robots.txt", "/2"]
    assert [drop.type for drop in seen.drops] == [FORBIDDEN]


def test_a_refresh_is_conditional_and_a_304_renews() -> None:
    def robots(hit: Hit) -> Answer:
        if hit.headers.get("if-none-match") == '"v1"':
            return Answer(status=304)
        headers = {"ETag": '"v1"', "Last-Modified": "Thu, 30 Jun 1994 12:00:00 GMT"}
        return Answer(RULES, headers=headers)

    with Site(robots) as site:
        seen = ask(site, (0, "/back/"), (0, "/"), *[(LONGER_THAN_TTL, "/back/"), (0, "/")] * 2)
    assert seen.notes["results"] == [FORBIDDEN, "passed"] * 3
    first, *later = site.robots_hits()
    assert not {"if-none-match", "if-modified-since"} & first.headers.keys()
    assert len(later) == 2
    for hit in later:
        assert hit.headers["if-none-match"] == '"v1"'
        assert hit.headers["if-modified-since"] == "Thu, 30 Jun 1994 12:00:00 GMT"
    assert seen.stats["robotstxt/response_status_count/304"] == 2
    assert not seen.log_lines("[scrapy_norobots", "WARNING", " requests to http")


@pytest.mark.parametrize("etag", ['"caf\xe9"', '"\x80\xff"'])
def test_a_site_whose_etag_is_not_ascii_can_be_refreshed(etag: str, mode: str) -> None:
    def robots(hit: Hit) -> Answer:
        is_same = hit.headers.get("if-none-match") == etag
        return Answer(status=304) if is_same else Answer(RULES, headers={"ETag": etag})

    # Scrapy's handler with aiohttp fails on every response with such a header, also on pages.
    if mode == "no reactor" and not (find_spec("httpx2") or find_spec("httpx")):
        pytest.skip("httpx is not installed")
    settings = {"DOWNLOAD_HANDLERS": {"http": HTTPX}} if mode == "no reactor" else {}
    with Site(robots) as site:
        seen = ask(site, (0, "/back/"), *[(LONGER_THAN_TTL, "/back/"), (0, "/")] * 2, **settings)
    assert seen.notes["results"] == [FORBIDDEN, *[FORBIDDEN, "passed"] * 2]
    _, *later = site.robots_hits()
    assert len(later) == 2
    assert all(hit.headers.get("if-none-match", etag) == etag for hit in later)
    assert not seen.log_lines("[scrapy_norobots", "WARNING", " requests to http")


def test_a_304_that_was_not_asked_for_does_not_renew() -> None:
    with Changing(Answer(RULES), Answer(status=304)) as site:
        seen = ask(site, (0, "/back/"), (LONGER_THAN_TTL, "/back/"), (0, "/"))
    assert seen.notes["results"] == [FORBIDDEN, FORBIDDEN, "passed"]
    assert seen.stats["norobots/stale"] == 1
    assert seen.log_lines("[scrapy_norobots", "WARNING", "robots.txt answered 304")


def test_a_refresh_after_a_404_is_not_conditional() -> None:
    with Changing(Answer(status=404, headers={"ETag": '"none"'}), Answer(RULES)) as site:
        seen = ask(site, (0, "/back/"), (LONGER_THAN_TTL, "/back/"), (0, "/back/"))
    assert seen.notes["results"][-1] == FORBIDDEN
    assert ["if-none-match" in hit.headers for hit in site.robots_hits()] == [False, False]


def test_the_freshness_headers_of_the_response_apply() -> None:
    with Site(Answer(RULES, headers={"Cache-Control": "max-age=3600"})) as site:
        ask(site, (0, "/"), (LONGER_THAN_TTL, "/"), NOROBOTS_TTL=7200)
    assert len(site.robots_hits()) == 1
    with Site(Answer(RULES, headers={"Cache-Control": "max-age=0"})) as site:
        ask(site, (0, "/"), (0.01, "/"), NOROBOTS_TTL=3600)
    assert len(site.robots_hits()) == 2
    with Site(Answer(RULES, headers={"Cache-Control": "max-age=0"})) as site:
        ask(site, (0, "/"), (LONGER_THAN_TTL, "/"), NOROBOTS_TTL=3600, NOROBOTS_TTL_MIN=600)
    assert len(site.robots_hits()) == 1


def test_a_failed_refresh_keeps_good_rules_and_logs_one_warning() -> None:
    with Changing(Answer(RULES), Answer(status=503)) as site:
        seen = ask(site, (0, "/back/"), *[(LONGER_THAN_TTL, "/back/"), (0, "/")] * 2)
    assert seen.notes["results"] == [FORBIDDEN, FORBIDDEN, "passed", FORBIDDEN, "passed"]
    (line,) = seen.log_lines("[scrapy_norobots", "WARNING", " requests to http")
    assert (
        f"{site.url}/robots.txt answered 503: requests to {site.url} still follow the cached rules " in line
    )
    assert "(they are used until NOROBOTS_STALE_TTL ends); robots.txt is downloaded again after 100 s" in line
    assert seen.stats["norobots/stale"] == len(site.robots_hits()) - 1 >= 1


def test_good_rules_are_dropped_after_stale_ttl() -> None:
    with Changing(Answer(RULES), Answer(status=503)) as site:
        seen = ask(site, (0, "/"), (LONGER_THAN_TTL, "/"), NOROBOTS_STALE_TTL=100)
    assert seen.notes["results"] == ["passed", CLOSED]
    assert seen.log_lines("WARNING", "answered 503: ", "are dropped")


def test_a_recovered_robots_txt_applies_and_is_logged() -> None:
    with Changing(Answer(status=503), Answer(RULES)) as site:
        seen = ask(site, (0, "/"), (0.01, "/"), (LONGER_THAN_TTL, "/"), (0, "/back/"))
    assert seen.notes["results"] == [CLOSED, CLOSED, "passed", FORBIDDEN]
    assert len(site.robots_hits()) == 2
    assert seen.log_lines(
        f"INFO: {site.url}/robots.txt answered 200: requests to {site.url} now follow its rules"
    )


def test_the_errback_gets_the_cause_of_the_failure() -> None:
    with Site(Answer(RULES, headers={"Content-Length": "999"})) as site:
        seen = ask(site, (0, "/"))
    (results,) = seen.notes["results"]
    assert results.startswith(f"{CLOSED} from ")
    assert "Loss" in results or "Failed" in results


def test_retry_times_is_the_number_of_retries() -> None:
    for retries in (0, 2):
        with Site(Answer(status=503)) as site:
            ask(site, (0, "/"), RETRY_ENABLED=True, RETRY_TIMES=7, NOROBOTS_RETRY_TIMES=retries)
        assert len(site.robots_hits()) == 1 + retries


def test_memory_max_limits_memory() -> None:
    with Site(RULES) as one, Site(RULES) as other, Site() as start:
        plan = [(0, f"{site.url}/") for site in (one, other, one, other)]
        spider, settings = "asking.Asking", {**ADDON, "NOROBOTS_MEMORY_MAX": 1}
        crawl(f"{start.url}/", spider=spider, settings=settings, arguments={"plan": plan})
    assert len(one.robots_hits()) == len(other.robots_hits()) == 2
