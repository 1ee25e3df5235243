"""Faults of other robots.txt implementations, each with tests that it does not occur here.

`CASES` is the index. Most tests are in the files of the modules concerned; those that need a crawl of their
own are below.
"""

from __future__ import annotations

import importlib
import threading

import pytest

from tests.helpers.running.crawling import ADDON, crawl
from tests.helpers.sites import Answer, ForwardProxy, Hit, Site, page
from tests.helpers.sites.faults import FAULTS

RULES = "User-agent: *\nDisallow: /back/\n"

# Fault -> tests that it does not occur here: file and function, or a host of the fault lab.
CASES = {
    "an error page is read as rules": [
        "fault: not found, with rules in the error page",
        "test_outcomes.test_each_preset_allows_and_denies_as_documented",
    ],
    "a 5xx opens the site, and nobody notices": [
        "fault: server error, with rules in the error page",
        "test_outcomes.test_allowing_after_a_failure_logs_a_warning",
    ],
    "the robots.txt of an offsite page is filtered, and the page is not": [
        "test_fetch.test_a_robots_txt_request_is_not_filtered_as_offsite"
    ],
    "a redirect loop takes 21 requests and opens the site unseen": [
        "fault: redirects to itself",
        "fault: endless redirects",
    ],
    "a redirect leads to another scheme": [
        "fault: redirects to ftp",
        "fault: redirects to a file of this machine",
    ],
    "a redirected robots.txt counts for its target too": [
        "test_fetch.test_rules_behind_a_redirect_apply_to_the_first_origin"
    ],
    "a meta refresh is followed": [
        "fault: a page that refreshes to another",
        "test_fetch.test_a_meta_refresh_is_not_followed",
    ],
    "https obeys the file of http": ["test_middleware.test_http_and_https_are_different_origins"],
    "port and user information make keys of their own": [
        "test_middleware.test_spellings_of_an_origin_share_one_download",
        "test_known_faults.test_a_default_port_does_not_make_another_origin",
    ],
    "the port is dropped": ["test_middleware.test_each_port_is_an_origin"],
    "the query is part of the key": ["test_known_faults.test_a_query_is_not_part_of_the_origin"],
    "credentials in a URL are sent": [
        "test_middleware.test_spellings_of_an_origin_share_one_download",
        "test_fetch.test_credentials_in_a_redirect_are_not_sent",
    ],
    "s3:, ftp: and about: URLs are asked for a robots.txt": [
        "test_middleware.test_urls_of_other_schemes_pass"
    ],
    "a cancelled first waiter leaves the others hanging": [
        "test_middleware.test_cancelling_a_waiter_does_not_affect_others"
    ],
    "the spider's own User-Agent is ignored": [
        "test_fetch.test_the_user_agent_of_the_page_is_sent_and_selects_the_record",
        "test_known_faults.test_a_rotating_user_agent_is_checked_as_it_is_sent",
    ],
    "cookies are sent": ["test_fetch.test_a_robots_txt_request_has_no_cookies_and_no_referer"],
    "U+2028 ends a line": ["test_clauses.test_other_characters_do_not_end_a_line"],
    "a byte order mark hides the first record": ["fault: a byte order mark", "fault: UTF-16"],
    "gzip without its header, and the header without gzip": [
        "fault: gzip without its header",
        "fault: not gzip despite its header",
        "fault: gzip without its header, cut off",
    ],
    "an HTML page is read line by line": ["fault: an HTML page"],
    "a large file is cut off, and what is left is obeyed": [
        "fault: too large",
        "fault: a length that is not reached",
        "fault: half a chunk",
        "test_outcomes.test_a_body_over_the_limit_is_an_error",
    ],
    "a tarpit holds the crawl": [
        "fault: no answer",
        "fault: a byte a second",
        "fault: headers at a byte a second",
    ],
    "Retry-After is obeyed without a limit": ["fault: too many requests"],
    "a first page that redirects has robots.txt asked for twice": [
        "test_known_faults.test_a_redirecting_first_page_causes_one_download"
    ],
    "misses are not remembered, and each page asks again": [
        "test_known_faults.test_a_missing_robots_txt_is_remembered"
    ],
    "requests that wait ask each for themselves": [
        "test_middleware.test_50_requests_at_once_share_one_download"
    ],
    "a decision is kept where rules should be": ["test_known_faults.test_rules_are_cached_and_not_decisions"],
    "the target of a page's redirect is not checked": [
        "test_middleware.test_the_target_of_a_redirect_is_checked"
    ],
    "a refresh that fails destroys good rules": [
        "test_refresh.test_a_failed_refresh_keeps_good_rules_and_logs_one_warning"
    ],
    "a lifetime of 0 makes each page ask again": [
        "test_refresh.test_the_freshness_headers_of_the_response_apply"
    ],
    "a failure is remembered for ever": ["test_refresh.test_a_recovered_robots_txt_applies_and_is_logged"],
    "links out of scope have robots.txt asked for": [
        "test_known_faults.test_a_filtered_link_causes_no_download"
    ],
    "what is kept leaks from one crawl to another": [
        "test_known_faults.test_two_crawls_in_a_process_share_nothing"
    ],
    "a crawl that is stopped hangs on those who wait": ["test_known_faults.test_a_stopped_crawl_ends"],
    "the request for robots.txt is held by its own middleware": [
        "test_middleware.test_300_pages_need_one_download"
    ],
}


@pytest.mark.parametrize("case", CASES)
def test_all_tests_of_the_index_exist(case: str) -> None:
    for where in CASES[case]:
        if where.startswith("fault: "):
            assert where.removeprefix("fault: ") in {fault.name for fault in FAULTS}
        else:
            module, _, function = where.partition(".")
            folder = "unit" if module == "test_clauses" else "crawls"
            assert callable(getattr(importlib.import_module(f"tests.{folder}.{module}"), function))


def test_a_default_port_does_not_make_another_origin() -> None:
    with Site(RULES) as site, ForwardProxy({"town.example": site}) as proxy:
        urls = ("http://town.example/1", "http://town.example:80/2", "http://TOWN.example:/3")
        seen = crawl(*({"url": url, "meta": {"proxy": proxy.url}} for url in urls))
    assert len(seen.pages) == 3
    assert [hit.target for hit in proxy.hits if "robots" in hit.target] == ["http://town.example/robots.txt"]


def test_a_query_is_not_part_of_the_origin() -> None:
    with Site(RULES) as site:
        crawl(f"{site.url}?a=1", f"{site.url}/?b=2", f"{site.url}/c?d=/e")
    assert len(site.robots_hits()) == 1


def test_a_rotating_user_agent_is_checked_as_it_is_sent() -> None:
    robots = "User-agent: FooBot\nDisallow: /a\n\nUser-agent: BarBot\nDisallow: /b\n"
    with Site(robots) as site:
        seen = crawl(
            *(
                {"url": f"{site.url}{target}", "headers": {"User-Agent": f"{name}/1.0"}, "dont_filter": True}
                for name in ("FooBot", "BarBot")
                for target in ("/a", "/b")
            )
        )
    sent = {(hit.headers["user-agent"], hit.target) for hit in site.hits if hit.target != "/robots.txt"}
    assert sent == {("FooBot/1.0", "/b"), ("BarBot/1.0", "/a")}
    assert len(seen.drops) == 2
    assert len(site.robots_hits()) == 1


def test_a_redirecting_first_page_causes_one_download() -> None:
    with Site(RULES, {"/": Answer(status=301, headers={"Location": "/home"})}) as site:
        crawl(f"{site.url}/")
    assert site.targets() == ["/robots.txt", "/", "/home"]


@pytest.mark.parametrize("status", [404, 403, 503])
def test_a_missing_robots_txt_is_remembered(status: int) -> None:
    with Site(Answer(status=status)) as site:
        settings = {**ADDON, "RETRY_ENABLED": False, "CONCURRENT_REQUESTS": 1}
        crawl(*(f"{site.url}/{i}" for i in range(10)), settings=settings)
    assert len(site.robots_hits()) == 1


def test_rules_are_cached_and_not_decisions() -> None:
    with Site(RULES) as site:
        settings = {**ADDON, "CONCURRENT_REQUESTS": 1}
        targets = ("/back/1", "/1", "/back/2", "/2")
        seen = crawl(*(f"{site.url}{target}" for target in targets), settings=settings)
    assert site.pages() == ["/1", "/2"]
    assert len(seen.drops) == 2


def test_a_filtered_link_causes_no_download() -> None:
    with Site(RULES, host="localhost") as other, Site() as site:
        site.answers["/"] = page(f"{other.url}/open")
        arguments = {"follow": True, "allowed_domains": ["127.0.0.1"]}
        crawl(f"{site.url}/", arguments=arguments)
    assert site.pages() == ["/"]
    assert other.hits == []


def test_two_crawls_in_a_process_share_nothing() -> None:
    with Site(Answer(status=403)) as site:
        seen = crawl(
            f"{site.url}/a",
            spider="tests.helpers.spiders.pages.Pages",
            beside={"NOROBOTS_STATUS_POLICY": "rfc9309"},
        )
    # The first crawl denies a 403, the second allows it: both download the file and use their own policy.
    assert [drop.type for drop in seen.drops] == ["RobotsUnreachable"]
    assert sorted(site.targets()) == ["/a", "/robots.txt", "/robots.txt"]


def test_a_stopped_crawl_ends(mode: str) -> None:
    asked, over = threading.Event(), threading.Event()

    def robots(hit: Hit) -> Answer:
        asked.set()
        over.wait(60)
        return Answer(RULES)

    settings = {**ADDON, "RETRY_ENABLED": False, "NOROBOTS_TIMEOUT": 1}
    with Site(robots) as site, Site(answers={"/": Answer(before=lambda: asked.wait(60))}) as other:
        stops = {"url": f"{other.url}/", "meta": {"dont_obey_robotstxt": True}}
        urls = [f"{site.url}/{i}" for i in range(40)]
        seen = crawl(
            stops, *urls, settings=settings, mode=mode, spider="tests.helpers.spiders.stopping.StopsEarly"
        )
        over.set()
    assert site.pages() == []
    assert seen.stats["finish_reason"] == "enough"
    assert len(site.robots_hits()) == 1
