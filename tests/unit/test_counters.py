"""The counts of a crawl: exact totals in bounded memory, as plain data and as the summary in the log."""

from __future__ import annotations

from collections import Counter

import pytest
from scrapy import Request

from scrapy_norobots.events import Load
from scrapy_norobots.features.report import counters as counters_module
from scrapy_norobots.features.report.counters import Counters, Outcome, facts_of
from scrapy_norobots.features.report.listing import PATTERNS, TYPOS, Examined
from scrapy_norobots.features.report.page import log_text
from scrapy_norobots.rules.access import Access
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Origin
from tests.helpers.samples.made_up import JUDGE

RULES = "User-agent: *\nDisallow: /back/\n"
NOTHING = Examined()
CRAWL = {"spider": "town", "dry_run": False}


def origin(number: int) -> Origin:
    return Origin("http", f"town{number}.example", 80)


def access(
    number: int = 0, status: int | None = 200, previous: Access | None = None, *, body: str = RULES
) -> Access:
    snapshot = Snapshot(origin(number), origin(number).robots_url, 0.0, status, body=body.encode())
    return JUDGE.judge(snapshot, previous)


def load(
    counters: Counters, now: Access, previous: Access | None = None, examined: Examined = NOTHING
) -> None:
    request = Request(now.snapshot.origin.robots_url)
    counters.load(Load(now, previous, "network", 0.1, request, "FooBot"), examined)


def drop(counters: Counters, at: Access, path: str = "/back/", times: int = 1) -> None:
    for _ in range(times):
        counters.drop(at.decide(f"{at.snapshot.origin}{path}", "FooBot"), at)


def busy() -> Counters:
    """Return the counts of a crawl that met some of everything."""
    counters = Counters(10)
    town, shut = access(), access(1, 503)
    faulty = Examined(3, "no-colon (line 1)", "", frozenset({TYPOS, PATTERNS}))
    load(counters, town, examined=faulty)
    load(counters, shut)
    load(counters, access(2, 404))
    load(counters, access(3, 404))
    for _ in range(5):
        counters.add_pass(origin(0))
    drop(counters, town, times=2)
    drop(counters, shut, "/", 3)
    counters.requests["overridden"] = 1
    return counters


def test_rules_are_counted_over_sites() -> None:
    counters = Counters(10)
    for number in range(4):
        now = access(number, body=RULES + "Disallow: /a/\n", status=503 if number == 3 else 200)
        load(counters, now)
        drop(counters, now, "/back/1", number + 1)
        drop(counters, now, "/a/")
    sites = [f"http://town{number}.example" for number in range(4)]
    rule = {"is_line": True, "line": None}
    closed = {**rule, "is_line": False, "text": "closed (5xx)"}
    assert facts_of(counters, CRAWL)["rules"] == [
        {**rule, "text": "Disallow: /back/", "requests": 6, "origins": [sites[2], sites[1], sites[0]]},
        {**closed, "requests": 5, "origins": [sites[3]]},
        {**rule, "text": "Disallow: /a/", "requests": 3, "origins": sites[:3]},
    ]


def test_causes_beyond_the_first_5000_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters_module, "_CAUSES_MAX", 2)
    counters = Counters(0)
    for number in (0, 1, 2, 2, 0, 3):
        drop(counters, access(number))
    said = facts_of(counters, CRAWL)
    (rule,) = said["rules"]
    assert (rule["requests"], rule["origins"]) == (3, ["http://town0.example", "http://town1.example"])
    assert (said["dropped_other"], said["requests"]["dropped"]) == (3, 6)


def test_however_many_origins_there_are_at_most_rows_max_rows_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(counters_module, "_CAUSES_MAX", 500)
    counters = Counters(100)
    most = 0
    for number in range(2_000):
        now = access(number, (200, 404, 503, None)[number % 4])
        load(counters, now)
        if now.forbids(now.snapshot.origin, "/back/", "FooBot"):
            drop(counters, now, times=3 if number % 200 == 0 else 1)
        most = max(most, len(counters.rows))
    assert most == 100
    assert len(counters.causes) == 500
    assert counters.outcomes == {
        Outcome("rules", "rules", False): 500,
        Outcome("open", "4xx", False): 500,
        Outcome("closed", "5xx", False): 500,
        Outcome("closed", "error", False): 500,
    }
    assert counters.requests["dropped"] == 1_520
    # Rows without a drop are newer than the last eviction.
    assert all(row.dropped or int(at.host[4:-8]) > 1_900 for at, row in counters.rows.items())
    said = facts_of(counters, CRAWL)
    assert said["origins"] == 2_000 == len(said["rows"]) + said["rows_left_out"]
    assert {entry["kind"]: entry["requests"] for entry in said["to_do"]} == {"failed": 500, "unanswered": 500}
    assert {origin(number) for number in range(0, 2_000, 200)} <= counters.rows.keys()


def test_the_rows_of_failures_stay_longer_than_those_of_usual_files() -> None:
    counters = Counters(10)
    for number in range(50):
        load(counters, access(number, 200 if number % 9 else 503))
    assert {origin(number) for number in range(0, 50, 9)} <= counters.rows.keys()


def test_a_file_that_changes_counts_as_it_is_in_the_end() -> None:
    counters, faulty = Counters(1), Examined(1, marks=frozenset({TYPOS}))
    first, refused = access(), access(0, 403)
    load(counters, first, examined=faulty)
    load(counters, refused, first)
    load(counters, first, refused, faulty)
    assert counters.marks[TYPOS] == counters.faulty_files == 1


def test_the_log_says_first_what_was_dropped_and_what_to_do() -> None:
    counters = busy()
    counters.requests |= Counter(waited=4, came_back=2, given_up=1, left=1)
    assert log_text(facts_of(counters, CRAWL)) == (
        "robots.txt in this crawl (town)\n"
        "  requests: 5 passed, 5 dropped, 1 not checked (dont_obey_robotstxt)\n"
        "  3 dropped at http://town1.example: closed (5xx)\n"
        "  2 dropped at http://town0.example: line 2, 'Disallow: /back/'\n"
        "  requests that waited for closed sites: 4; came back: 2, given up: 1, left at the end: 1\n"
        "  origins: 4 (open (4xx): 2, rules: 1, closed (5xx): 1)\n"
        "  to do: 1 site answered with an error such as 503 to the end (3 requests dropped for such "
        "reasons): crawl them later, or raise NOROBOTS_RETRY_CLOSED\n"
        "  to do: 1 site meant to forbid more to this robot, but made a mistake: leave out what the marked "
        "lines name\n"
        "  to do: 1 site had * or $ in rules for this robot, read literally: set NOROBOTS_ALSO_OBEY = "
        '["rfc9309"]\n'
        "  files with lines without effect: 1"
    )


def test_the_summary_is_short() -> None:
    counters = busy()
    counters.requests["waited"] = 1
    for number, status in enumerate((401, 403, 503, None), 10):
        load(counters, access(number, status))
        drop(counters, access(number, status), "/")
    lines = log_text(facts_of(counters, CRAWL)).splitlines()
    assert len(lines) == 14
    assert lines[5] == "  2 dropped for other reasons"
    assert sum(line.startswith("  to do: ") for line in lines) == 5


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
    found = facts_of(counters, CRAWL)["to_do"]
    assert [(one["kind"], one["sites"], one["requests"], len(one["origins"])) for one in found] == (
        [(kind, len(statuses), 2 * len(statuses), len(statuses) if rows_max else 0)] if kind else []
    )
