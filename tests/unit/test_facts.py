"""What a report says of the counts, as data and in a few lines."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from scrapy_norobots.features.report.counters import Counters
from scrapy_norobots.features.report.facts import Facts, facts_of, log_text
from scrapy_norobots.features.report.ineffective import IneffectiveRules
from scrapy_norobots.rules.access import Access, Judge, StatusPolicy
from scrapy_norobots.rules.freshness import Freshness
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Decision, Origin, Reason, RobotsTxt, Verdict

JUDGE = Judge(StatusPolicy.of("koster1996"), Freshness(600, 86_400, 60, 7 * 86_400), RobotsTxt.parse)
CRAWL = {"spider": "town", "dry_run": False}
NONE_WAITED = dict.fromkeys(("waited", "came_back", "given_up", "left"), 0)


def access(
    host: str = "town.example", body: str = "User-agent: *\nDisallow: /a\n", status: int = 200
) -> Access:
    origin = Origin("http", host, 80)
    return JUDGE.judge(Snapshot(origin, origin.robots_url, 0.0, status, body=body.encode()))


def drop(counters: Counters, at: Access, path: str = "/a", times: int = 1) -> None:
    for _ in range(times):
        counters.drop(at.decide(f"{at.snapshot.origin}{path}", "FooBot"), at)


def facts(counters: Counters, **crawl: Any) -> Facts:
    return facts_of(counters, {**CRAWL, **crawl})


def test_a_crawl_that_met_nobody() -> None:
    said = facts(Counters(10))
    assert said == {
        "crawl": CRAWL,
        "requests": {"passed": 0, "dropped": 0, "overridden": 0, **NONE_WAITED},
        "origins": 0,
        "outcomes": [],
        "sources": {},
        "slowest": None,
        "usage": {},
        "patterns": {"files": 0, "first": None},
        "crawl_delays": {"files": 0, "longest": None},
        "causes": 0,
        "dropped_most": [],
        "dropped_most_short_by": 0,
        "rows": [],
        "rows_left_out": 0,
        "files": [],
    }
    assert log_text(said) == (
        "robots.txt in this crawl (town)\n"
        "  origins: 0\n"
        "  requests: 0 passed, 0 dropped, 0 not checked (dont_obey_robotstxt)"
    )


def busy() -> Counters:
    """Return the counts of a crawl that met some of everything."""
    counters = Counters(10)
    town, shut, bare = access(), access("shut.example", status=503), access("bare.example", status=404)
    counters.load(town, None, "network", 0.25, IneffectiveRules.of(b"hello\n"))
    counters.load(shut, None, "network", 1.23412, None)
    counters.load(bare, None, "store", 0.0, None)
    counters.load(access("bare2.example", status=404), None, "network", 0.0, None)
    for _ in range(5):
        counters.add_pass(town.snapshot.origin)
    drop(counters, town, "/a", 2)
    drop(counters, shut, "/", 3)
    counters.add_pattern("http://town.example/robots.txt")
    counters.add_crawl_delay(town.snapshot.origin, 2.5, is_new=True)
    counters.requests["overridden"] = 1
    return counters


def test_all_that_was_counted_is_in_the_data() -> None:
    said = facts(busy())
    assert said["requests"] == {"passed": 5, "dropped": 5, "overridden": 1, **NONE_WAITED}
    assert (said["origins"], said["rows_left_out"]) == (4, 0)
    assert said["outcomes"] == [
        {"kind": "open", "key": "4xx", "stale": False, "text": "open (4xx)", "origins": 2},
        {"kind": "rules", "key": "rules", "stale": False, "text": "rules", "origins": 1},
        {"kind": "closed", "key": "5xx", "stale": False, "text": "closed (5xx)", "origins": 1},
    ]
    assert list(said["sources"].items()) == [("network", 3), ("store", 1)]
    assert said["slowest"] == {"origin": "http://shut.example", "seconds": 1.234}
    assert said["patterns"] == {"files": 1, "first": "http://town.example/robots.txt"}
    assert said["crawl_delays"] == {"files": 1, "longest": {"origin": "http://town.example", "seconds": 2.5}}
    assert said["dropped_most"] == [
        {"origin": "http://shut.example", "line": None, "text": "closed (5xx)", "robot": None, "count": 3},
        {"origin": "http://town.example", "line": 2, "text": "/a", "robot": None, "count": 2},
    ]
    assert [row["origin"] for row in said["rows"]][:2] == ["http://shut.example", "http://town.example"]
    assert said["rows"][1] == {
        "origin": "http://town.example",
        "outcome": "rules",
        "source": "network",
        "seconds": 0.25,
        "requests": 7,
        "dropped": 2,
        "crawl_delay": 2.5,
        "ignored_lines": 1,
        "findings": "no-colon (line 1)",
        "detail": "http://town.example/robots.txt answered 200",
    }
    assert json.loads(json.dumps(said)) == said


def test_the_log_has_it_in_brief() -> None:
    assert log_text(facts(busy())) == (
        "robots.txt in this crawl (town)\n"
        "  origins: 4 (open (4xx): 2, rules: 1, closed (5xx): 1)\n"
        "  robots.txt loaded: 3 from network, 1 from store; slowest: http://shut.example in 1.23 s\n"
        "  files with * or $ in rules, which the 1994 standard reads literally: 1, "
        "first: http://town.example/robots.txt\n"
        "  origins with a Crawl-delay: 1; longest: 2.5 s at http://town.example\n"
        "  requests: 5 passed, 5 dropped, 1 not checked (dont_obey_robotstxt)\n"
        "  3 dropped at http://shut.example: closed (5xx)\n"
        "  2 dropped at http://town.example: line 2, 'Disallow: /a'"
    )


def test_a_dry_run_says_what_would_have_been_dropped() -> None:
    text = log_text(facts(busy(), dry_run=True))
    assert "\n  requests: 5 passed, 5 would have been dropped, 1 not checked" in text
    assert "\n  3 would have been dropped at http://shut.example: " in text


def test_requests_that_waited_are_one_line() -> None:
    counters = busy()
    counters.requests |= Counter(waited=4, came_back=2, given_up=1, left=1)
    text = log_text(facts(counters))
    waited = "requests that waited for closed sites: 4; came back: 2, given up: 1, left at the end: 1"
    assert f"\n  {waited}" in text


def test_several_files_with_patterns_are_files() -> None:
    counters = busy()
    counters.add_pattern("http://other.example/robots.txt")
    assert ": 2, first: http://town.example/robots.txt\n" in log_text(facts(counters))


def test_an_outcome_that_no_origin_has_any_more_is_left_out() -> None:
    counters = Counters(10)
    first = access()
    counters.load(first, None, "network", 0.1, None)
    counters.load(access(status=404), first, "network", 0.1, None)
    assert [outcome["text"] for outcome in facts(counters)["outcomes"]] == ["open (4xx)"]


@pytest.mark.parametrize(("rules", "in_data", "in_log"), [(10, 10, 10), (11, 11, 10), (101, 100, 10)])
def test_the_data_has_100_causes_and_the_log_10_of_them(rules: int, in_data: int, in_log: int) -> None:
    counters = Counters(10)
    at = access(body="User-agent: *\n" + "".join(f"Disallow: /{number}/\n" for number in range(rules)))
    for number in range(rules):
        drop(counters, at, f"/{number}/", 2 if number == rules - 1 else 1)
    said = facts(counters)
    assert len(said["dropped_most"]) == in_data
    assert said["causes"] == rules
    assert said["dropped_most"][0]["text"] == f"/{rules - 1}/"
    assert log_text(said).count(" dropped at ") == in_log


def test_a_cause_without_an_origin_is_said_so() -> None:
    counters = Counters(10)
    decision = Decision(Verdict.FORBIDDEN, "http://x:no/", "FooBot", Reason.BAD_URL, detail="'no' is no port")
    counters.drop(decision, None)
    (cause,) = facts(counters)["dropped_most"]
    assert (cause["origin"], cause["line"]) == ("", None)
    assert "\n  1 dropped at no origin: " in log_text(facts(counters))


def test_what_was_left_out_is_counted() -> None:
    counters = Counters(rows_max=1, causes_max=1)
    for host in ("one.example", "two.example"):
        at = access(host)
        counters.load(at, None, "network", 0.1, None)
        drop(counters, at)
    said = facts(counters)
    assert (said["origins"], len(said["rows"]), said["rows_left_out"]) == (2, 1, 1)
    assert said["dropped_most_short_by"] == 1


def test_text_of_a_site_is_escaped_wherever_it_goes() -> None:
    counters = Counters(10)
    at = access("to\x1bwn.example", "User-agent: *\nDisallow: /\x1b[31m\u202e\n")
    counters.load(at, None, "network", 0.1, IneffectiveRules.of(b"hello\x1b\n"))
    counters.load(access("shut\u202e.example", status=503), None, "network", 0.1, None)
    counters.add_pattern("http://town.example/\u202e")
    drop(counters, at, "/%1B[31m%E2%80%AE")
    said = facts(counters)
    assert log_text(said).replace("\n", "").isprintable()
    for text in (
        value for part in (said["rows"], said["dropped_most"]) for row in part for value in row.values()
    ):
        assert str(text).isprintable()
    assert r"/\x1b[31m\u202e" in log_text(said)
