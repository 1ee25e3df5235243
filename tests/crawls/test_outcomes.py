"""What a crawl may do after each outcome of a download of robots.txt: the policy table and its presets."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from tests.helpers.running.crawling import ADDON, crawl
from tests.helpers.sites import Answer, Site

# A body that would forbid everything, to show that only that of a 2xx response is read.
SHUT = "User-agent: *\nDisallow: /\n"

OUTCOMES: dict[str, Answer] = {
    "200": Answer(SHUT),
    "204": Answer(status=204),
    "301 nowhere": Answer(SHUT, 301),
    "304": Answer(status=304),
    "400": Answer(SHUT, 400),
    "401": Answer(SHUT, 401),
    "403": Answer(SHUT, 403),
    "404": Answer(SHUT, 404),
    "407": Answer(SHUT, 407),
    "408": Answer(SHUT, 408),
    "410": Answer(SHUT, 410),
    "425": Answer(SHUT, 425),
    "429": Answer(SHUT, 429),
    "500": Answer(SHUT, 500),
    "503": Answer(SHUT, 503),
    "999": Answer(SHUT, 999),
    "cut off": Answer(SHUT, headers={"Content-Length": "9999"}),
}

CLOSED_BY_ALL_BUT_ALLOW = {"200", "407", "408", "425", "429", "500", "503", "999", "cut off"}
TABLE = {
    "koster1996": CLOSED_BY_ALL_BUT_ALLOW | {"301 nowhere", "304", "401", "403"},
    "rfc9309": CLOSED_BY_ALL_BUT_ALLOW,
    "allow": {"200"},
}

FAST = {**ADDON, "RETRY_ENABLED": False, "NOROBOTS_TIMEOUT": 5}


def crawl_outcomes(policy: Any) -> tuple[set[str], Any]:
    """Crawl a host for each outcome. Return the outcomes whose page was dropped, and the crawl."""
    hosts = {name: f"127.0.1.{number}" for number, name in enumerate(OUTCOMES, 1)}
    answers = {f"{hosts[name]}/robots.txt": answer for name, answer in OUTCOMES.items()}
    settings = {**FAST, "NOROBOTS_STATUS_POLICY": policy}
    with Site(host="0.0.0.0", answers=answers) as site:
        seen = crawl(*(f"{site.url_of(host)}/page" for host in hosts.values()), settings=settings)
    fetched = {hit.host for hit in site.hits if hit.target == "/page"}
    dropped = {name for name, host in hosts.items() if host not in fetched}
    assert {drop.url for drop in seen.drops} == {f"{site.url_of(hosts[name])}/page" for name in dropped}
    return dropped, seen


@pytest.mark.parametrize("preset", TABLE)
def test_each_preset_allows_and_denies_as_documented(preset: str) -> None:
    dropped, seen = crawl_outcomes(preset)
    assert dropped == TABLE[preset]
    # 200 and 204 have rules, even if empty; every other drop is a `RobotsUnreachable`.
    assert seen.stats["norobots/origins/rules"] == 2
    assert seen.stats.get("norobots/unreachable", 0) == len(dropped) - 1
    assert {drop.type for drop in seen.drops} <= {"RobotsForbidden", "RobotsUnreachable"}


def test_a_mapping_changes_the_default_preset() -> None:
    dropped, _ = crawl_outcomes({"403": "allow", "4xx": "deny", "404": "allow", "5xx": "allow"})
    not_now = {"407", "408", "425", "429"}
    assert dropped == {"200", "301 nowhere", "304", "400", "401", "410", "cut off"} | not_now


@pytest.mark.parametrize(
    ("answer", "most"), [(Answer(status=403), None), (Answer(status=503), 40), (Answer(SHUT), None)]
)
def test_an_errback_gets_the_time_of_the_next_try(answer: Answer, most: float | None) -> None:
    with Site(answer) as site:
        seen = crawl(f"{site.url}/a", settings={**FAST, "NOROBOTS_ERROR_TTL": 40})
    (drop,) = seen.drops
    if most is None:
        assert drop.retry_after is None
    else:
        assert drop.retry_after is not None
        assert 0 < drop.retry_after <= most


def test_allowing_after_a_failure_logs_a_warning() -> None:
    with Site(Answer(status=500)) as site:
        seen = crawl(f"{site.url}/a", settings={**FAST, "NOROBOTS_STATUS_POLICY": "allow"})
    assert site.pages() == ["/a"]
    (line,) = seen.log_lines("[scrapy_norobots", "WARNING: ", " requests to http")
    assert f"{site.url}/robots.txt answered 500: requests to {site.url} are allowed" in line


def test_robots_txt_itself_is_allowed_at_a_closed_origin() -> None:
    with Site(Answer("back soon", status=503)) as site:
        anyway = {"handle_httpstatus_all": True}
        urls = [f"{site.url}{target}" for target in ("/a", "/robots.txt", "/%72obots.txt")]
        seen = crawl(*({"url": url, "meta": anyway} for url in urls), settings=FAST)
    assert len(seen.pages) + len(seen.drops) == 2  # Scrapy treats the last two as one
    assert [drop.url for drop in seen.drops] == [f"{site.url}/a"]


@pytest.mark.parametrize(("status", "outcome"), [(403, "403"), (503, "5xx")])
def test_a_start_url_at_a_closed_site_logs_one_warning(status: int, outcome: str) -> None:
    with Site(Answer(status=status)) as site:
        seen = crawl(f"{site.url}/", f"{site.url}/b")
    assert [drop.type for drop in seen.drops] == ["RobotsUnreachable"] * 2
    assert len(site.robots_hits()) == (2 if status == 503 else 1)  # tried again
    (line,) = (line for line in seen.log_lines(site.url) if " WARNING: " in line or " ERROR: " in line)
    assert f"{site.url}/robots.txt answered {status}: requests to {site.url} are dropped (" in line
    assert f"(NOROBOTS_STATUS_POLICY denies '{outcome}')" in line
    why = f"({site.url}/robots.txt answered {status}, and NOROBOTS_STATUS_POLICY denies "
    assert len(seen.log_lines(f"DEBUG: Dropped: <GET {site.url}/", why)) == 2
    assert not seen.log_lines("Forbidden by robots.txt")
    assert all(drop.text.startswith(f"Dropped: {drop.url} {why}") for drop in seen.drops)


@pytest.mark.parametrize("policy", ["koster1996", "allow"])
def test_many_sites_without_rules_do_not_fill_the_log(policy: str) -> None:
    with Site(Answer(status=503), host="0.0.0.0") as site:
        urls = [f"{site.url_of(f'127.2.0.{number}')}/" for number in range(1, 26)]
        seen = crawl(*urls, settings={**FAST, "NOROBOTS_STATUS_POLICY": policy})
    assert len(seen.log_lines("WARNING: ", "answered 503")) == 20
    assert len(seen.log_lines("DEBUG: ", ": requests to http", "answered 503")) == 5


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_refused_connection_closes_the_origin(mode: str) -> None:
    url = f"http://127.0.0.1:{unused_port()}"
    seen = crawl(f"{url}/a", f"{url}/b", settings=FAST)
    assert [drop.type for drop in seen.drops] == ["RobotsUnreachable"] * 2
    assert f"{url}/robots.txt could not be downloaded (" in seen.drops[0].text
    (line,) = seen.log_lines("[scrapy_norobots", "WARNING: ", " requests to http")
    assert "(NOROBOTS_STATUS_POLICY denies 'error'); robots.txt is downloaded again after 60 s" in line
    assert [key for key in seen.stats if key.startswith("robotstxt/exception_count/")]
