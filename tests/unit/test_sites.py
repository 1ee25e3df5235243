"""How many failures of a site use up its retries."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest

from scrapy_norobots.events import Events
from scrapy_norobots.rules.access import Access
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Origin
from scrapy_norobots.waiting import sites
from scrapy_norobots.waiting.sites import Sites, _Site
from tests.helpers.samples.made_up import JUDGE, TIME, TOWN, access

OTHER = TOWN._replace(host="other.example")


def made(tries: int) -> Sites:
    other = MagicMock()
    return Sites(other, MagicMock(events=Events()), other, other, tries=tries)


def failed(in_a_row: int, origin: Origin = TOWN) -> Access:
    return JUDGE.judge(Snapshot(origin, origin.robots_url, TIME, 503, failures=in_a_row))


def is_retried(of: Sites, by: Access) -> bool:
    return of._count(_Site(by.snapshot.origin, "FooBot", None), by)


def test_failures_in_a_row_use_up_the_retries() -> None:
    of = made(tries=2)
    assert [is_retried(of, failed(number)) for number in (1, 2, 3)] == [True, True, False]


def test_one_failure_that_several_loads_see_is_counted_once() -> None:
    of, first = made(tries=1), failed(1)
    assert [is_retried(of, first) for _ in range(5)] == [True] * 5
    assert not is_retried(of, failed(2))


@pytest.mark.parametrize("in_a_row", [1, 2])
def test_a_site_that_was_open_since_has_all_its_retries_again(in_a_row: int) -> None:
    """Something else than `Sites` has downloaded its robots.txt, so only the failures in a row show it."""
    of = made(tries=1)
    assert is_retried(of, failed(2))
    assert is_retried(of, failed(in_a_row))


def test_failures_without_room_in_memory_use_up_the_retries() -> None:
    """The number of failures in a row begins again if memory has forgotten them."""
    of, site = made(tries=2), _Site(TOWN, "FooBot", None)
    assert of._count(site, failed(1))
    site.is_closed = True
    assert [of._count(site, failed(1)) for _ in range(2)] == [True, False]


def test_a_site_that_opens_has_all_its_retries_again() -> None:
    of = made(tries=1)
    assert is_retried(of, failed(1))
    assert not is_retried(of, access())
    assert is_retried(of, failed(2))


def test_a_site_whose_failures_are_forgotten_has_all_its_retries_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sites, "_FAILING_MAX", 1)
    of = made(tries=1)
    assert is_retried(of, failed(1))
    assert is_retried(of, failed(1, OTHER))
    assert is_retried(of, failed(2))
    assert not is_retried(of, failed(3))
