"""`access`: the access that results from a snapshot and a policy, and the spellings of a target."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scrapy_norobots.rules.access import PRESETS, Access, Judge, OriginCache, StatusPolicy, spellings_of
from scrapy_norobots.rules.snapshot import ClosingError, Freshness, Snapshot
from scrapy_norobots.standard import Origin, Reason, RobotsTxt

ORIGIN = Origin("http", "town.example", 80)
FOUND = Snapshot(ORIGIN, ORIGIN.robots_url, 0.0, status=200, body=b"User-agent: *\nDisallow: /back/\n")
LOST = Snapshot(ORIGIN, ORIGIN.robots_url, 0.0, error="TimeoutError: took\x1b too long")
TIMES = Freshness(ttl_min=600, ttl=86_400, error_ttl=60, stale_ttl=7 * 86_400)


def judge(snapshot: Snapshot, known: Access | None = None, policy: object = "koster1996") -> Access:
    return Judge(StatusPolicy.of(policy), TIMES, RobotsTxt.parse).judge(snapshot, known)


@pytest.mark.parametrize("status", [301, 304, 407, 408, 421, 425, 429, 431, 500, 503, 599, 999, 0, 102])
def test_failures_that_may_pass_are_temporary(status: int) -> None:
    for preset in PRESETS:
        assert judge(replace(FOUND, status=status), policy=preset).temporary


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
def test_a_statement_of_the_site_is_not_temporary(status: int) -> None:
    assert not judge(replace(FOUND, status=status)).temporary


@pytest.mark.parametrize(
    ("failed", "expected"),
    [
        (["one", "two", "three", "one", "two"], [60, 60, 60, 120, 120]),
        (["one", "", "two", "", "one", "two"], [60, 60, 60, 120, 120, 120]),  # the site fails, too
        ([*(f"{number}" for number in range(12)), "0"], [*[60] * 11, 120, 120]),  # more are the site's fault
    ],
)
def test_the_wait_is_doubled_when_one_of_several_proxies_has_failed_again(
    failed: list[str], expected: list[int]
) -> None:
    access, waits = None, []
    for proxy in failed:
        access = judge(replace(LOST, proxy=proxy), access)
        waits.append(access.lifetime)
    assert waits == expected


def test_a_proxy_that_fails_closes_the_site_to_those_that_have_failed_since_the_wait_was_doubled() -> None:
    access, closed = None, []
    for proxy in ["one", "two", "one", "", "two"]:
        access = judge(replace(LOST, proxy=proxy), access)
        closed.append([name for name in ("one", "two", "") if access.applies_to(name)])
    assert closed == [["one"], ["one", "two"], ["one"], ["one", "two", ""], ["one", "two"]]


def test_a_closed_origin_names_the_failure_and_the_setting() -> None:
    access = judge(LOST)
    decision = access.decide("http://town.example/a", "FooBot/1.0")
    assert not decision.allowed
    assert decision.reason is Reason.ERROR
    assert str(decision) == (
        "http://town.example/a is forbidden for 'FooBot': http://town.example/robots.txt could not be "
        r"downloaded (TimeoutError: took\x1b too long), and NOROBOTS_STATUS_POLICY denies 'error'"
    )


def test_size_includes_all_long_texts() -> None:
    short = judge(replace(FOUND, status=404))
    long = judge(replace(FOUND, status=404, url="http://town.example/" + "a" * 50_000))
    assert 49_900 < long.size - short.size < 150_000
    assert 49_900 < replace(short, note="a" * 50_000).size - short.size < 150_000
    assert judge(FOUND).size > short.size


def test_a_status_of_an_unknown_class_is_a_server_error() -> None:
    assert StatusPolicy.of({"5xx": "allow"}).look_up(999) == ("5xx", "allow")
    assert StatusPolicy.of({"999": "deny", "5xx": "allow"}).look_up(999) == ("999", "deny")


def test_no_policy_allows_what_was_not_downloaded_because_the_crawl_closes() -> None:
    assert judge(replace(FOUND, status=None, exception=ClosingError()), policy="allow").kind == "closed"


def test_a_mapping_may_name_the_preset_it_changes() -> None:
    assert StatusPolicy.of({"preset": "allow", "403": "deny"}).table == {**PRESETS["allow"], "403": "deny"}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("koster", "unknown preset 'koster'; choose from koster1996, rfc9309, allow"),
        (None, "unknown preset None"),
        ({"preset": 7}, "unknown preset 7"),
        ({"preset": ["allow"]}, "unknown preset ['allow']"),
        ({"200": "deny"}, "unknown outcome '200'"),
        ({"2xx": "deny"}, "unknown outcome '2xx'"),
        ({"40": "deny"}, "unknown outcome '40'"),
        ({"timeout": "deny"}, "unknown outcome 'timeout'"),
        ({"403": "open"}, "the action for '403' must be 'allow' or 'deny', not 'open'"),
        ({"403": True}, "must be 'allow' or 'deny', not True"),
        ({"403": ["deny"]}, "must be 'allow' or 'deny', not ['deny']"),
    ],
)
def test_an_invalid_policy_is_an_error(value: object, problem: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        StatusPolicy.of(value)
    assert problem in str(error.value)


HOUR = 3600.0
ANSWER = replace(FOUND, headers={"etag": '"1"', "cache-control": "max-age=1000"})


def test_a_failed_refresh_keeps_the_rules_until_they_are_too_old() -> None:
    known = judge(ANSWER)
    for failures, now in enumerate((HOUR, 6 * 24 * HOUR, TIMES.stale_ttl - 100), 1):
        stale = judge(replace(LOST, time=now), known)
        assert stale.stale
        assert stale.temporary
        assert stale.lifetime == min(60 * 2 ** (failures - 1), TIMES.stale_ttl - now)
        assert stale.snapshots == (ANSWER, replace(LOST, time=now, failures=failures))
        assert stale.forbids(ORIGIN, "/back/", "FooBot")
        assert not stale.forbids(ORIGIN, "/", "FooBot")
        known = stale  # keeping a copy does not renew it
    closed = judge(replace(LOST, time=TIMES.stale_ttl + 1), known)
    assert closed.kind == "closed"
    assert not closed.stale


def test_the_time_to_the_next_try_doubles_with_each_failure() -> None:
    known, lifetimes = None, []
    for _ in range(10):
        known = judge(LOST, known)
        lifetimes.append(known.lifetime)
    assert lifetimes == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600, 3600]
    assert judge(LOST, judge(FOUND, known)).lifetime == 60  # a success resets the pauses
    assert known is not None
    assert judge(LOST, replace(known, snapshot=replace(LOST, failures=10**6))).lifetime == 3600


def test_an_error_ttl_over_an_hour_is_kept() -> None:
    patient = replace(TIMES, error_ttl=7200)
    snapshots = [replace(LOST, failures=failures) for failures in (1, 2, 3)]
    assert [patient.until_next_try(snapshot) for snapshot in snapshots] == [7200, 7200, 7200]


@pytest.mark.parametrize(
    "downloads",
    [
        [replace(FOUND, time=3600.0)],
        [replace(FOUND, status=404)],
        [LOST],
        [LOST, LOST, LOST],
        [FOUND, replace(LOST, time=60.0)],
        [ANSWER, replace(FOUND, status=304, time=100.0, headers={"cache-control": "max-age=700"})],
        [ANSWER, LOST, replace(FOUND, status=304, time=100.0)],
        [FOUND, replace(FOUND, status=304, time=100.0)],
        [FOUND, LOST, replace(FOUND, status=503, time=120.0)],
        [FOUND, LOST, replace(FOUND, status=403, time=10.0)],
        [FOUND, replace(LOST, time=8 * 86_400.0)],
        [replace(FOUND, status=404), LOST, LOST],
    ],
)
def test_stored_snapshots_are_judged_as_when_they_were_new(downloads: list[Snapshot]) -> None:
    known = None
    for snapshot in downloads:
        known = judge(snapshot, known)
    assert known is not None
    judging = Judge(StatusPolicy.of("koster1996"), TIMES, RobotsTxt.parse)
    came = known.snapshots[-1].time
    again = judging.recall(known.snapshots, came)
    assert (
        replace(again, rules=known.rules, note=known.note) == known
    )  # after a 304 the renewed response is kept
    assert (again.rules is None) == (known.rules is None)
    assert judging.recall(known.snapshots, came + 10).lifetime == known.lifetime - 10
    assert judging.recall(known.snapshots, came + 10**6).lifetime < 0
    assert judging.recall(known.snapshots, came - 10).lifetime == known.lifetime - 10


@pytest.mark.parametrize("policy", PRESETS)
@pytest.mark.parametrize("status", [302, 407, 408, 425, 429, 500, 503])
def test_known_rules_take_precedence_over_the_policy(policy: str, status: int) -> None:
    access = judge(replace(FOUND, status=status, time=HOUR), judge(FOUND), policy)
    assert access.stale
    assert access.forbids(ORIGIN, "/back/", "FooBot")


@pytest.mark.parametrize(("status", "kind"), [(403, "closed"), (404, "open")])
def test_a_new_statement_of_the_site_replaces_old_rules(status: int, kind: str) -> None:
    known = judge(replace(LOST, time=HOUR), judge(FOUND))
    assert judge(replace(FOUND, status=status, time=2 * HOUR), known).kind is kind


def test_only_rules_stay_in_use_after_a_failure() -> None:
    assert judge(LOST, judge(replace(FOUND, status=404))).kind == "closed"
    assert judge(replace(LOST, time=1.0), judge(LOST)).kind == "closed"


def test_a_304_renews_rules_and_their_headers() -> None:
    known = judge(replace(LOST, time=HOUR), judge(ANSWER))
    answer = Snapshot(ORIGIN, ANSWER.url, 2 * HOUR, status=304, headers={"cache-control": "max-age=2000"})
    renewed = judge(answer, known)
    assert renewed.rules is known.rules
    assert not renewed.stale
    assert not renewed.temporary
    assert 1900 <= renewed.lifetime <= 2000
    assert renewed.snapshot == replace(
        ANSWER, time=2 * HOUR, headers={"etag": '"1"', "cache-control": "max-age=2000"}
    )


def test_a_304_without_an_age_does_not_have_that_of_the_file() -> None:
    """A cache on the way had the file for an hour before it asked the site again."""
    headers = {"etag": '"1"', "cache-control": "max-age=7200", "age": "3600"}
    previous = judge(replace(FOUND, headers=headers))
    access = judge(Snapshot(ORIGIN, FOUND.url, 2 * HOUR, status=304), previous)
    assert access.lifetime > 1.8 * previous.lifetime


def test_a_304_without_a_date_does_not_have_that_of_the_file() -> None:
    headers = {"etag": '"1"', "date": "Thu, 01 Jan 1970 00:00:00 GMT"}
    previous = judge(replace(FOUND, headers=headers))
    expires = {"expires": "Thu, 01 Jan 1970 11:00:00 GMT"}
    access = judge(Snapshot(ORIGIN, FOUND.url, 10 * HOUR, status=304, headers=expires), previous)
    assert access.lifetime <= HOUR


def test_a_304_without_previous_rules_gives_no_rules() -> None:
    assert judge(replace(FOUND, status=304)).outcome == "3xx"
    assert judge(replace(FOUND, status=304), judge(replace(FOUND, status=404))).outcome == "3xx"


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(FOUND, id="a file without a validator"),
        pytest.param(replace(ANSWER, url="http://other.example/robots.txt"), id="a file after a redirect"),
    ],
)
def test_a_304_to_a_request_without_a_condition_is_a_failure(known: Snapshot) -> None:
    access = judge(replace(FOUND, status=304, time=HOUR), judge(known))
    assert access.stale
    assert access.failure is not None
    assert access.failure.failures == 1
    assert access.snapshot == known
    assert not judge(replace(FOUND, status=304, time=TIMES.stale_ttl + 1), judge(known)).stale


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/a?b=c", {"/a?b=c"}),
        ("/a;", {"/a;", "/a"}),
        ("/a;?b;", {"/a;?b;", "/a?b;"}),
        ("/a;?b;?c", {"/a;?b;?c", "/a?b;?c"}),
        ("/a;b/c;d=1;e?f", {"/a;b/c;d=1;e?f", "/a;b/c?f"}),
        ("/;a", {"/;a", "/"}),
        ("/a?b;", {"/a?b;"}),
        ("/a?", {"/a?", "/a"}),
        ("/wow%21", {"/wow%21"}),
        ("/x/../a", {"/x/../a", "/a"}),
        ("/x/./%62/..?/..", {"/x/./%62/..?/..", "/x?/.."}),
        ("/../..", {"/../..", "/"}),
        ("/../../a", {"/../../a", "/a"}),
        ("/.well-known", {"/.well-known"}),
    ],
)
def test_spellings_include_those_that_handlers_send(
    target: str, expected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapy_norobots.rules.access._aiohttp_url", lambda: None)
    assert set(spellings_of(target)) == expected


def test_what_aiohttp_decodes_is_a_spelling_too() -> None:
    pytest.importorskip("yarl")
    assert "/wow!" in spellings_of("/wow%21")


# `OriginCache`: an access expires, or leaves if there is no room.


def origin(number: int) -> Origin:
    return Origin("http", f"{number}.town.example", 80)


FINE = Access("open", Snapshot(ORIGIN, ORIGIN.robots_url, 0.0, status=404), "4xx", lifetime=600)


def test_memory_max_evicts_the_least_recently_used_but_not_the_last() -> None:
    cache = OriginCache(memory_max=3 * FINE.size)
    for number in (1, 2, 3, 1, 4):
        if cache.get(origin(number)) is None:
            cache.put(origin(number), FINE)
    cache.put(origin(4), FINE)  # takes the place that it has
    assert cache.size == 3 * FINE.size
    assert [cache.get(origin(number)) is FINE for number in (1, 2, 3, 4)] == [True, False, True, True]
    cache = OriginCache(memory_max=1)
    cache.put(origin(1), FINE)
    assert cache.get(origin(1)) is FINE
