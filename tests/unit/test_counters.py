"""The counts of a crawl: exact totals, and bounded memory for any number of origins and rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_norobots.features.report.counters import Cause, Counters, Outcome
from scrapy_norobots.features.report.facts import facts_of
from scrapy_norobots.rules.access import Access, Judge, StatusPolicy
from scrapy_norobots.rules.freshness import Freshness
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Origin, RobotsTxt

JUDGE = Judge(StatusPolicy.of("koster1996"), Freshness(600, 86_400, 60, 7 * 86_400), RobotsTxt.parse)
RULES = b"User-agent: *\nDisallow: /back/\n"


def origin(number: int) -> Origin:
    return Origin("http", f"town{number}.example", 80)


def access(number: int, status: int | None = 200, previous: Access | None = None) -> Access:
    snapshot = Snapshot(origin(number), origin(number).robots_url, 0.0, status, body=RULES)
    return JUDGE.judge(snapshot, previous)


def load(counters: Counters, now: Access, previous: Access | None = None, seconds: float = 0.1) -> None:
    counters.load(now, previous, "network", seconds, None)


def drop(counters: Counters, at: Access, path: str = "/back/") -> None:
    counters.drop(at.decide(f"{at.snapshot.origin}{path}", "FooBot"), at)


def count_causes(stream: Iterable[int], size: int) -> Counters:
    counters = Counters(0, causes_max=size)
    for line in stream:
        counters.add_cause(Cause("http://town.example", line, "/"))
        assert len(counters.causes) <= size
    return counters


@given(st.lists(st.integers(0, 30)), st.integers(1, 12))
def test_errors_of_counts_of_causes_are_within_short_by(stream: list[int], size: int) -> None:
    counters = count_causes(stream, size)
    kept = {cause.line: count for cause, count in counters.causes.items()}
    for line, count in Counter(stream).items():
        assert count - counters.short_by <= kept.get(line, 0) <= count
    assert counters.short_by * size <= 2 * len(stream)


def test_counts_of_causes_that_fit_are_exact_and_in_order() -> None:
    counters = count_causes((3, 1, 2, 2, 1, 3), 3)
    assert [(cause.line, count) for cause, count in counters.most_common_causes()] == [(1, 2), (2, 2), (3, 2)]
    assert counters.short_by == 0


@pytest.mark.parametrize("rows_max", [0, 1, 1_000])
def test_20000_origins_keep_at_most_rows_max_rows(rows_max: int) -> None:
    counters = Counters(rows_max, causes_max=500)
    most = 0
    for number in range(20_000):
        now = access(number, (200, 404, 503, None)[number % 4])
        load(counters, now, seconds=number % 7)
        if now.forbids(now.snapshot.origin, "/back/", "FooBot"):
            for _ in range(3 if number % 2_000 == 0 else 1):
                drop(counters, now)
        most = max(most, len(counters.rows), len(counters.causes))
    assert most == max(rows_max, 500)
    assert counters.origins == 20_000 == len(counters.rows) + counters.left_out
    assert counters.outcomes == {
        Outcome("rules", "rules", False): 5_000,
        Outcome("open", "4xx", False): 5_000,
        Outcome("closed", "5xx", False): 5_000,
        Outcome("closed", "error", False): 5_000,
    }
    assert counters.requests["dropped"] == 15_020
    # Rows without a drop are newer than the last eviction.
    assert all(row.dropped or int(at.host[4:-8]) > 19_000 for at, row in counters.rows.items())
    if rows_max == 1_000:
        busiest = {origin(number) for number in range(0, 20_000, 2_000)}
        assert busiest <= counters.rows.keys()
        facts = facts_of(counters, {})
        assert len(facts["rows"]) + facts["rows_left_out"] == 20_000


def test_a_refresh_moves_an_origin_from_one_outcome_to_another() -> None:
    for rows_max in (0, 10):
        counters = Counters(rows_max)
        first = access(1)
        stale = access(1, 503, first)
        load(counters, first, seconds=2.0)
        load(counters, stale, first)
        load(counters, access(2, 404))
        assert counters.origins == 2
        assert +counters.outcomes == {Outcome("rules", "rules", True): 1, Outcome("open", "4xx", False): 1}
        assert counters.sources == {"network": 3}
        assert counters.slowest == (origin(1), 2.0)


def test_an_origin_with_a_row_is_counted_once() -> None:
    counters = Counters(10)
    load(counters, access(1))
    load(counters, access(1, 404))  # it was evicted from memory
    assert counters.origins == 1
    assert +counters.outcomes == {Outcome("open", "4xx", False): 1}


def test_the_first_drop_gives_an_origin_a_row() -> None:
    counters = Counters(1)
    first, second = access(1), access(2, 404)
    load(counters, first)
    load(counters, second)
    assert list(counters.rows) == [origin(2)]
    drop(counters, first)
    drop(counters, first)
    assert {place: row.dropped for place, row in counters.rows.items()} == {origin(1): 2}
    for _ in range(3):
        counters.add_pass(origin(1))
    counters.add_pass(origin(2))
    assert counters.rows[origin(1)].requests == 5
    assert counters.requests["passed"] == 4


def test_long_texts_of_sites_are_shortened() -> None:
    counters = Counters(10)
    long = "/" + 50_000 * "x"
    now = access(1)
    body = f"User-agent: *\nDisallow: {long}\n".encode()
    now = replace(now, rules=RobotsTxt.parse(body), note=50_000 * "x")
    load(counters, now)
    drop(counters, now, long)
    ((cause, count),) = counters.most_common_causes()
    assert (len(cause.text), count) == (200, 1)
    assert len(counters.rows[origin(1)].detail) == 200
