"""A report in words: how the crawl was set, what to do, and the summary in the log."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from scrapy.robotstxt import ProtegoRobotParser
from scrapy.settings import Settings

from scrapy_norobots.features.report.counters import Counters, Facts, facts_of
from scrapy_norobots.features.report.listing import PATTERNS, TYPOS, Examined
from scrapy_norobots.features.report.summary import log_text, setup_of
from scrapy_norobots.settings import Config
from scrapy_norobots.standard import Decision, Reason, Verdict
from tests.unit.test_counters import CRAWL, access, busy, drop, load, origin


def summary(counters: Counters, *files: Any, **crawl: Any) -> str:
    return log_text(facts_of(counters, {**CRAWL, **crawl}, files))


def to_do(counters: Counters, *files: Any) -> dict[str, dict[str, Any]]:
    said: Facts = facts_of(counters, CRAWL, files)
    assert all(entry["docs"].startswith("https://scrapy-norobots.") for entry in said["to_do"])
    return {entry["kind"]: entry for entry in said["to_do"]}


def test_a_crawl_without_requests_has_nothing_to_do() -> None:
    assert summary(Counters(10)) == (
        "robots.txt in this crawl (town)\n"
        "  requests: 0 passed, 0 dropped, 0 not checked (dont_obey_robotstxt)\n"
        "  origins: 0\n"
        "  to do: nothing"
    )


def test_the_log_says_first_what_was_dropped_and_what_to_do() -> None:
    counters = busy()
    counters.requests |= Counter(waited=4, came_back=2, given_up=1, left=1)
    assert summary(counters) == (
        "robots.txt in this crawl (town)\n"
        "  requests: 5 passed, 5 dropped, 1 not checked (dont_obey_robotstxt)\n"
        "  3 dropped at http://town1.example: closed (5xx)\n"
        "  2 dropped at http://town0.example: line 2, 'Disallow: /back/'\n"
        "  requests that waited for closed sites: 4; came back: 2, given up: 1, left at the end: 1\n"
        "  origins: 4 (open (4xx): 2, rules: 1, closed (5xx): 1)\n"
        "  to do: 1 site answered with an error such as 503 to the end (3 requests dropped): crawl them "
        "later, or raise NOROBOTS_RETRY_CLOSED\n"
        "  to do: 1 site meant to forbid more to this robot, but made a mistake: leave out what the marked "
        "lines name\n"
        "  to do: 1 site said no to a use of their pages that the crawl did not obey: set NOROBOTS_PURPOSES\n"
        "  to do: 1 site had * or $ in rules for this robot, read literally: set NOROBOTS_ALSO_OBEY = "
        '["rfc9309"]\n'
        "  robots.txt loaded: 3 from network, 1 from store; slowest: http://town1.example in 1.23 s\n"
        "  files with lines without effect: 1\n"
        "  origins with a Crawl-delay: 1; longest: 2.5 s at http://town0.example\n"
        "  sites that state the use of their pages: 1 content-signal, 1 no to ai-train, 1 no to search"
    )


def test_a_dry_run_says_what_would_have_been_dropped() -> None:
    text = summary(busy(), dry_run=True)
    assert "\n  requests: 5 passed, 5 would have been dropped, 1 not checked" in text
    assert "\n  3 would have been dropped at http://town1.example: " in text
    assert "(3 requests would have been dropped)" in text


def test_the_summary_has_at_most_15_lines() -> None:
    counters = busy()
    counters.requests["waited"] = 1
    for number, status in enumerate((401, 403, 503, None), 10):
        load(counters, access(number, status))
        drop(counters, access(number, status), "/")
    file = {"origin": "http://town0.example", "differs": {"1": []}}
    lines = summary(counters, file).splitlines()
    assert len(lines) == 15
    assert lines[5] == "  2 dropped for other reasons"
    assert sum(line.startswith("  to do: ") for line in lines) == 7


def test_a_rule_of_several_sites_is_one_line() -> None:
    counters = Counters(10)
    for number in range(3):
        drop(counters, access(number), times=2)
    assert "\n  6 dropped at 3 sites: 'Disallow: /back/'\n" in summary(counters)


def test_a_cause_without_an_origin_says_so() -> None:
    counters = Counters(10)
    decision = Decision(Verdict.FORBIDDEN, "http://x:no/", "FooBot", Reason.BAD_URL, detail="'no' is no port")
    counters.drop(decision, None)
    assert "\n  1 dropped at no origin: 'no' is no port\n" in summary(counters)


# What to do


@pytest.mark.parametrize(
    ("statuses", "kind"),
    [((403, 401), "refused"), ((503, 429), "failed"), ((None,), "unanswered"), ((404, 200), "")],
)
@pytest.mark.parametrize("rows_max", [0, 10])
def test_sites_without_rules_are_something_to_do(
    statuses: tuple[int | None, ...], kind: str, rows_max: int
) -> None:
    counters = Counters(rows_max)
    for number, status in enumerate(statuses):
        load(counters, access(number, status))
        drop(counters, access(number, status), "/", 2)
    found = to_do(counters)
    assert set(found) == {kind} - {""}
    if kind:
        entry = found[kind]
        assert (entry["sites"], entry["requests"]) == (len(statuses), 2 * len(statuses))
        assert len(entry["origins"]) == (len(statuses) if rows_max else 0)


@pytest.mark.parametrize("mark", [TYPOS, PATTERNS])
def test_marked_files_are_something_to_do(mark: str) -> None:
    counters = Counters(10)
    load(counters, access(1), examined=Examined(marks=frozenset({mark})))
    load(counters, access(2))
    assert to_do(counters)[mark]["origins"] == ["http://town1.example"]


def test_statements_are_something_to_do_unless_they_are_obeyed() -> None:
    counters = Counters(10)
    load(counters, access(1))
    counters.add_usage(origin(1), {"content-usage", "no to ai-train"}, ["ai-train"])
    assert to_do(counters) == {}
    counters.add_usage(origin(1), {"no to search"}, ["ai-train"])
    load(counters, access(1), access(1))  # statements are reported once
    assert to_do(counters)["refusals"]["origins"] == ["http://town1.example"]


def test_files_that_the_readings_see_differently_are_something_to_do() -> None:
    counters = Counters(10)
    load(counters, access(1))
    files = [{"origin": f"http://town{number}.example", "differs": {}} for number in (0, 1)]
    assert to_do(counters, *files) == {}
    files[1]["differs"] = {"1": ["x"]}
    assert to_do(counters, *files)["differ"]["origins"] == ["http://town1.example"]


# How the crawl was set


ROBOT = "FooBot/1.0 (+https://foo.example/bot; bot@foo.example)"


def setup(**settings: Any) -> dict[str, Any]:
    given = Settings(settings)
    return setup_of(
        given, Config.from_settings(given), b"FooBot/1.0 (+https://foo.example/bot; bot@foo.example)"
    )


def test_the_setup_has_what_is_not_the_default() -> None:
    made = setup()
    assert made["settings"] == {}
    assert (made["robot"], made["token"]) == (
        "FooBot/1.0 (+https://foo.example/bot; bot@foo.example)",
        "FooBot",
    )
    assert made["readings"] == ["StrictRobotParser"]
    assert made["status_policy"] == "koster1996"
    assert made["versions"].keys() == {"Scrapy", "Twisted", "Python"}
    made = setup(NOROBOTS_TTL=60, NOROBOTS_TTL_MIN=1, NOROBOTS_ALSO_OBEY=[ProtegoRobotParser])
    assert made["settings"].keys() == {"NOROBOTS_TTL", "NOROBOTS_TTL_MIN", "NOROBOTS_ALSO_OBEY"}
    assert made["readings"] == ["StrictRobotParser", "ProtegoRobotParser"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("redis://user:pa@ss/w'ord@host:6379/0", "redis://***@host:6379/0"),
        ("redis://:pass?w@host/0?password=word&db=1", "redis://***@host/0?***"),
        ("redis://host/0", "redis://host/0"),
        ("sqlite:///robots.sqlite", "sqlite:///robots.sqlite"),
    ],
)
def test_the_setup_has_no_secrets(value: str, shown: str) -> None:
    assert setup(NOROBOTS_STORE=value)["settings"] == {"NOROBOTS_STORE": shown}
