"""`access`: from a snapshot and a policy to what may be fetched."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scrapy_norobots.access import PRESETS, AccessKind, StatusPolicy, access_of
from scrapy_norobots.snapshot import Snapshot
from scrapy_norobots.standard import Origin, Reason, RobotsTxt

ORIGIN = Origin("http", "town.example", 80)
FOUND = Snapshot(ORIGIN, ORIGIN.robots_url, 0.0, status=200, body=b"User-agent: *\nDisallow: /back/\n")
LOST = Snapshot(ORIGIN, ORIGIN.robots_url, 0.0, error="TimeoutError: took\x1b too long")
POLICY = StatusPolicy.of("koster1996")


def test_rules_of_a_2xx_answer() -> None:
    access = access_of(FOUND, POLICY, RobotsTxt.parse)
    assert access.kind is AccessKind.RULES
    assert not access.temporary
    assert access.allowed("http://town.example/", "FooBot")
    decision = access.decide("http://town.example/back/1", "FooBot")
    assert not decision.allowed
    assert decision.source == "http://town.example/robots.txt"


@pytest.mark.parametrize("status", [429, 500, 503, 599, 999, 0, 102])
def test_what_may_pass_is_temporary(status: int) -> None:
    for preset in PRESETS:
        assert access_of(replace(FOUND, status=status), StatusPolicy.of(preset), RobotsTxt.parse).temporary


@pytest.mark.parametrize("status", [301, 304, 400, 401, 403, 404, 410, 451])
def test_what_the_site_has_said_is_not_temporary(status: int) -> None:
    assert not access_of(replace(FOUND, status=status), POLICY, RobotsTxt.parse).temporary


def test_a_closed_origin_says_why_and_what_changes_it() -> None:
    access = access_of(LOST, POLICY, RobotsTxt.parse)
    decision = access.decide("http://town.example/a", "FooBot/1.0")
    assert not decision.allowed
    assert decision.reason is Reason.ERROR
    assert str(decision) == (
        "http://town.example/a is forbidden for 'FooBot': http://town.example/robots.txt could not be had "
        r"(TimeoutError: took\x1b too long), and NOROBOTS_STATUS_POLICY denies 'error'"
    )


def test_robots_txt_itself_is_allowed_at_a_closed_origin() -> None:
    access = access_of(replace(FOUND, status=403), POLICY, RobotsTxt.parse)
    url = "http://town.example/robots.txt"
    assert access.allowed(url, "FooBot")
    assert access.decide(url, "FooBot").reason is Reason.ROBOTS_TXT
    assert not access.allowed(url + "?a", "FooBot")


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
