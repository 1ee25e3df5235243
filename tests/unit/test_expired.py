"""Which requests go by expired rules."""

from __future__ import annotations

from dataclasses import replace

from scrapy import Request

from scrapy_norobots.rules.access import Access, AccessKind
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Origin
from scrapy_norobots.waiting.expired import ExpiredRules

TOWN = Origin("http", "town.example", 80)
ACCESS = Access(
    AccessKind.OPEN, Snapshot(TOWN, "http://town.example/robots.txt", 0.0, status=404), "4xx", lifetime=1.0
)


def request() -> Request:
    return Request("http://town.example/")


def test_one_request_goes_after_each_download() -> None:
    expired = ExpiredRules()
    for _ in range(2):
        assert expired.lets_go(request(), TOWN, ACCESS, has_reloaded=True)
        assert not expired.lets_go(request(), TOWN, ACCESS, has_reloaded=True)
        expired.has_begun_to_load(TOWN)


def test_a_request_waits_for_one_download_at_least() -> None:
    assert not ExpiredRules().lets_go(request(), TOWN, ACCESS, has_reloaded=False)


def test_rules_without_any_lifetime_are_used_by_all() -> None:
    expired, access = ExpiredRules(), replace(ACCESS, lifetime=0.0)
    assert all(expired.lets_go(request(), TOWN, access, has_reloaded=False) for _ in range(3))


def test_an_access_is_used_once() -> None:
    expired, one = ExpiredRules(), request()
    assert expired.pop(one) is None
    expired.lets_go(one, TOWN, ACCESS, has_reloaded=True)
    assert expired.pop(request()) is None
    assert expired.pop(one) is ACCESS
    assert expired.pop(one) is None
