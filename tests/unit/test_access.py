"""`access`: from a snapshot and a policy to what may be fetched."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scrapy_norobots.access import PRESETS, Access, AccessKind, Judge, StatusPolicy
from scrapy_norobots.freshness import Freshness
from scrapy_norobots.snapshot import Snapshot
from scrapy_norobots.standard import Origin, Reason, RobotsTxt

ORIGIN = Origin("http", "town.example", 80)
FOUND = Snapshot(ORIGIN, ORIGIN.robots_url, 0.0, status=200, body=b"User-agent: *\nDisallow: /back/\n")
LOST = Snapshot(ORIGIN, ORIGIN.robots_url, 0.0, error="TimeoutError: took\x1b too long")
TIMES = Freshness(ttl_min=600, ttl=86_400, error_ttl=60, stale_ttl=7 * 86_400)


def judge(snapshot: Snapshot, known: Access | None = None, policy: object = "koster1996") -> Access:
    return Judge(StatusPolicy.of(policy), TIMES, RobotsTxt.parse).judge(snapshot, known)


def test_rules_of_a_2xx_answer() -> None:
    access = judge(FOUND)
    assert access.kind is AccessKind.RULES
    assert not access.temporary
    assert not access.forbids(ORIGIN, "/", "FooBot")
    assert access.forbids(ORIGIN, "/back/1", "FooBot")
    decision = access.decide("http://town.example/back/1", "FooBot")
    assert not decision.allowed
    assert decision.source == "http://town.example/robots.txt"


@pytest.mark.parametrize("status", [301, 304, 407, 408, 421, 425, 429, 431, 500, 503, 599, 999, 0, 102])
def test_what_may_pass_is_temporary(status: int) -> None:
    for preset in PRESETS:
        assert judge(replace(FOUND, status=status), policy=preset).temporary


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
def test_what_the_site_has_said_is_not_temporary(status: int) -> None:
    assert not judge(replace(FOUND, status=status)).temporary


def test_a_closed_origin_says_why_and_what_changes_it() -> None:
    access = judge(LOST)
    decision = access.decide("http://town.example/a", "FooBot/1.0")
    assert not decision.allowed
    assert decision.reason is Reason.ERROR
    assert str(decision) == (
        "http://town.example/a is forbidden for 'FooBot': http://town.example/robots.txt could not be had "
        r"(TimeoutError: took\x1b too long), and NOROBOTS_STATUS_POLICY denies 'error'"
    )


def test_robots_txt_itself_is_allowed_at_a_closed_origin() -> None:
    access = judge(replace(FOUND, status=403))
    url = "http://town.example/robots.txt"
    assert not access.forbids(ORIGIN, "/robots.txt", "FooBot")
    assert not access.forbids(ORIGIN, "/x/../%72obots.txt", "FooBot")
    assert access.decide(url, "FooBot").reason is Reason.ROBOTS_TXT
    assert access.forbids(ORIGIN, "/robots.txt?a", "FooBot")
    assert access.forbids(ORIGIN, "/", "FooBot")


def test_size_counts_what_can_be_long() -> None:
    short = judge(replace(FOUND, status=404))
    long = judge(replace(FOUND, status=404, url="http://town.example/" + "a" * 50_000))
    assert 50_000 < long.size - short.size < 150_000
    assert judge(FOUND).size > short.size


def test_a_status_comes_before_its_class() -> None:
    policy = StatusPolicy.of({"4xx": "deny", 410: "allow"})
    assert policy.look_up(404) == ("4xx", "deny")
    assert policy.look_up(410) == ("410", "allow")


def test_a_status_of_no_class_is_the_servers_failure() -> None:
    assert StatusPolicy.of({"5xx": "allow"}).look_up(999) == ("5xx", "allow")
    assert StatusPolicy.of({"999": "deny", "5xx": "allow"}).look_up(999) == ("999", "deny")


def test_a_mapping_may_name_the_preset_it_changes() -> None:
    assert StatusPolicy.of({"preset": "allow", "403": "deny"}).table == {**PRESETS["allow"], "403": "deny"}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("koster", "'koster' is no preset; there are koster1996, rfc9309, allow"),
        (None, "None is no preset"),
        ({"preset": 7}, "7 is no preset"),
        ({"200": "deny"}, "'200' is no outcome"),
        ({"2xx": "deny"}, "'2xx' is no outcome"),
        ({"40": "deny"}, "'40' is no outcome"),
        ({"timeout": "deny"}, "'timeout' is no outcome"),
        ({"403": "open"}, "'open' for '403' is neither 'allow' nor 'deny'"),
        ({"403": True}, "True for '403' is neither"),
        ({"403": ["deny"]}, "is neither"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(value: object, problem: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        StatusPolicy.of(value)
    assert problem in str(error.value)


HOUR = 3600.0
ANSWER = replace(FOUND, headers={"etag": '"1"', "cache-control": "max-age=1000"})


def test_a_failed_refresh_leaves_the_rules_in_force_until_they_are_too_old() -> None:
    known = judge(ANSWER)
    for failures, now in enumerate((HOUR, 6 * 24 * HOUR, TIMES.stale_ttl), 1):
        stale = judge(replace(LOST, time=now), known)
        assert stale.stale
        assert stale.temporary
        assert stale.lifetime == TIMES.back_off(failures)
        assert stale.snapshots == (ANSWER, replace(LOST, time=now, failures=failures))
        assert stale.forbids(ORIGIN, "/back/", "FooBot")
        assert not stale.forbids(ORIGIN, "/", "FooBot")
        known = stale  # a copy gets no younger by being kept
    closed = judge(replace(LOST, time=TIMES.stale_ttl + 1), known)
    assert closed.kind is AccessKind.CLOSED
    assert not closed.stale


def test_a_temporary_outcome_is_asked_again_less_and_less_often() -> None:
    known, lifetimes = None, []
    for _ in range(10):
        known = judge(LOST, known)
        lifetimes.append(known.lifetime)
    assert lifetimes == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600, 3600]
    assert judge(LOST, judge(FOUND, known)).lifetime == 60  # one success, and the pauses start anew
    assert known is not None
    assert judge(LOST, replace(known, snapshot=replace(LOST, failures=10**6))).lifetime == 3600


def test_a_long_pause_that_the_user_wants_is_not_cut() -> None:
    patient = replace(TIMES, error_ttl=7200)
    assert [patient.back_off(failures) for failures in (1, 2, 3)] == [7200, 7200, 7200]


@pytest.mark.parametrize(
    "downloads",
    [
        [replace(FOUND, time=3600.0)],
        [replace(FOUND, status=404)],
        [LOST],
        [LOST, LOST, LOST],
        [FOUND, replace(LOST, time=60.0)],
        [FOUND, replace(FOUND, status=304, time=100.0, headers={"cache-control": "max-age=700"})],
        [FOUND, LOST, replace(FOUND, status=304, time=100.0)],
        [FOUND, LOST, replace(FOUND, status=503, time=120.0)],
        [FOUND, LOST, replace(FOUND, status=403, time=10.0)],
        [FOUND, replace(LOST, time=8 * 86_400.0)],
        [replace(FOUND, status=404), LOST, LOST],
    ],
)
def test_what_a_store_kept_is_judged_as_when_it_was_new(downloads: list[Snapshot]) -> None:
    known = None
    for snapshot in downloads:
        known = judge(snapshot, known)
    assert known is not None
    judging = Judge(StatusPolicy.of("koster1996"), TIMES, RobotsTxt.parse)
    came = known.snapshots[-1].time
    again = judging.recall(known.snapshots, came)
    assert (
        replace(again, rules=known.rules, detail=known.detail) == known
    )  # of a 304 the renewed answer is kept
    assert (again.rules is None) == (known.rules is None)
    assert judging.recall(known.snapshots, came + 10).lifetime == known.lifetime - 10
    assert judging.recall(known.snapshots, came + 10**6).lifetime < 0
    assert judging.recall(known.snapshots, came - 200).lifetime == known.lifetime


def test_a_clock_put_back_makes_no_copy_too_old() -> None:
    known = judge(replace(ANSWER, time=1e9))
    assert judge(replace(LOST, time=0.0), known).stale


@pytest.mark.parametrize("policy", PRESETS)
@pytest.mark.parametrize("status", [302, 407, 408, 425, 429, 500, 503])
def test_known_rules_count_more_than_any_policy_for_failures(policy: str, status: int) -> None:
    access = judge(replace(FOUND, status=status, time=HOUR), judge(FOUND), policy)
    assert access.stale
    assert access.forbids(ORIGIN, "/back/", "FooBot")


@pytest.mark.parametrize(("status", "kind"), [(403, AccessKind.CLOSED), (404, AccessKind.OPEN)])
def test_what_the_site_says_anew_counts(status: int, kind: AccessKind) -> None:
    known = judge(replace(LOST, time=HOUR), judge(FOUND))
    assert judge(replace(FOUND, status=status, time=2 * HOUR), known).kind is kind


def test_only_rules_are_kept_over_a_failure() -> None:
    assert judge(LOST, judge(replace(FOUND, status=404))).kind is AccessKind.CLOSED
    assert judge(replace(LOST, time=1.0), judge(LOST)).kind is AccessKind.CLOSED


def test_a_304_renews_rules_and_their_headers() -> None:
    known = judge(replace(LOST, time=HOUR), judge(ANSWER))
    answer = Snapshot(ORIGIN, ANSWER.url, 2 * HOUR, status=304, headers={"cache-control": "max-age=2000"})
    renewed = judge(answer, known)
    assert renewed.rules is known.rules
    assert not renewed.stale
    assert not renewed.temporary
    assert renewed.lifetime == 2000
    assert renewed.snapshot == replace(
        ANSWER, time=2 * HOUR, headers={"etag": '"1"', "cache-control": "max-age=2000"}
    )


def test_a_redirect_that_leads_nowhere_is_no_permission_except_by_rfc_9309() -> None:
    kinds = {preset: judge(replace(FOUND, status=302), policy=preset).kind for preset in PRESETS}
    assert kinds == {
        "koster1996": AccessKind.CLOSED, "rfc9309": AccessKind.OPEN, "allow": AccessKind.OPEN,
    }  # fmt: skip


def test_a_304_that_renews_nothing_leads_nowhere() -> None:
    assert judge(replace(FOUND, status=304)).outcome == "3xx"
    assert judge(replace(FOUND, status=304), judge(replace(FOUND, status=404))).outcome == "3xx"


def test_an_origin_is_closed_for_now_if_that_may_change() -> None:
    assert judge(LOST).is_closed_for_now
    assert judge(replace(FOUND, status=503)).is_closed_for_now
    assert not judge(replace(FOUND, status=403)).is_closed_for_now
    assert not judge(LOST, policy="allow").is_closed_for_now
    assert not judge(LOST, judge(FOUND)).is_closed_for_now  # the copy stays in use


def test_a_site_can_ask_to_be_left_alone_for_longer_than_the_back_off() -> None:
    busy = replace(FOUND, status=429, headers={"retry-after": "300"})
    assert judge(busy).lifetime == 300
    assert judge(busy, judge(FOUND)).lifetime == 300  # of the copy that stays in use
    assert judge(replace(busy, failures=4)).lifetime == 480
    store = Judge(StatusPolicy.of("koster1996"), TIMES, RobotsTxt.parse)
    assert store.recall([replace(busy, failures=1)], now=100.0).lifetime == 200


@pytest.mark.parametrize(
    ("error", "is_unknown"),
    [
        ("CannotResolveHostError: DNS lookup failed: no results for hostname lookup: town.example.", True),
        ("DNSLookupError: DNS lookup failed: no results for hostname lookup: town.example.", True),
        ("TimeoutError", False),
        ("ConnectionRefusedError: DNSLookupError", False),
        ("", False),
    ],
)
def test_a_host_whose_name_does_not_resolve_is_unknown(error: str, is_unknown: bool) -> None:
    snapshot = replace(LOST, error=error)
    assert snapshot.is_unknown_host is is_unknown
    assert not replace(snapshot, local_failure=True).is_unknown_host
