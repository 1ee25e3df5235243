"""Snapshots: plain facts of one download, and the lifetime of a response with any headers."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_norobots.rules.snapshot import Freshness, Snapshot, stated_wait
from scrapy_norobots.standard import Origin
from tests.helpers.samples.snapshots import FOUND, LOST

ORIGIN = Origin("http", "town.example", 80)
CAME = 784_111_777.0  # Sun, 06 Nov 1994 08:49:37 GMT
NOW = "Sun, 06 Nov 1994 08:49:37 GMT"
TIMES = Freshness(ttl_min=600, ttl=86_400, error_ttl=60, stale_ttl=7 * 86_400)
FLOOR, CEILING = TIMES.ttl_min, TIMES.ttl


@pytest.fixture
def no_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_norobots.rules.snapshot._SPREAD", 0)


@pytest.mark.usefixtures("no_spread")
@pytest.mark.parametrize(
    ("headers", "lifetime"),
    [
        pytest.param({}, CEILING, id="nothing"),
        pytest.param({"cache-control": "public"}, CEILING, id="no time in it"),
        pytest.param({"cache-control": "max-age=3600"}, 3600, id="between"),
        pytest.param({"cache-control": 'public , MAX-AGE = "3600"'}, 3600, id="odd form"),
        pytest.param({"cache-control": "s-maxage=900, max-age=3600"}, 3600, id="shared caches are others"),
        pytest.param({"cache-control": "x-max-age=900"}, CEILING, id="another name"),
        pytest.param({"cache-control": "max-age=0"}, FLOOR, id="zero"),
        pytest.param({"cache-control": "max-age=-1"}, FLOOR, id="negative"),
        pytest.param({"cache-control": "max-age=soon"}, FLOOR, id="nonsense"),
        pytest.param({"cache-control": "max-age="}, FLOOR, id="empty"),
        pytest.param({"cache-control": "max-age=1.5e9"}, FLOOR, id="no whole number"),
        pytest.param({"cache-control": "max-age=٣٦٠٠"}, FLOOR, id="digits of another script"),
        pytest.param({"cache-control": "max-age=" + "9" * 5000}, CEILING, id="huge"),
        pytest.param({"cache-control": "no-cache, max-age=3600"}, FLOOR, id="no-cache"),
        pytest.param({"cache-control": "no-store"}, FLOOR, id="no-store"),
        pytest.param({"cache-control": 'no-cache="set-cookie"'}, FLOOR, id="no-cache with a field"),
        pytest.param({"cache-control": 'x="a, max-age=0", max-age=3600'}, 3600, id="a comma in quotes"),
        pytest.param({"cache-control": 'x="a, no-store, b", max-age=3600'}, 3600, id="no-store in quotes"),
        pytest.param({"cache-control": 'x="a, \\", no-cache, b", max-age=3600'}, 3600, id="an escaped quote"),
        pytest.param({"cache-control": 'x="a", no-cache, y="b", max-age=3600'}, FLOOR, id="between quotes"),
        pytest.param({"cache-control": 'private="a, b",max-age="3600"'}, 3600, id="a number in quotes"),
        pytest.param({"cache-control": 'no-cache="a, b", max-age=3600'}, FLOOR, id="two fields"),
        pytest.param({"cache-control": "max-age=3600", "age": "1000"}, 2600, id="age"),
        pytest.param({"cache-control": "max-age=3600", "age": "-5"}, 3600, id="negative age"),
        pytest.param({"cache-control": "max-age=3600", "age": "999999"}, FLOOR, id="too old"),
        pytest.param({"cache-control": "max-age=" + "9" * 400, "age": "9" * 400}, FLOOR, id="huge and old"),
        pytest.param({"expires": "Sun, 06 Nov 1994 09:49:37 GMT"}, 3600, id="Expires"),
        pytest.param({"expires": "Sun, 06 Nov 1994 09:49:37 GMT", "age": "1000"}, 2600, id="Expires and age"),
        pytest.param({"expires": "Sun, 06 Nov 1994 07:49:37 GMT"}, FLOOR, id="expired"),
        pytest.param({"expires": "Wed, 06 Nov 2194 07:49:37 GMT"}, CEILING, id="in 200 years"),
        pytest.param({"expires": "0"}, FLOOR, id="Expires 0"),
        pytest.param({"expires": "-1"}, FLOOR, id="Expires -1"),
        pytest.param({"expires": "Thu, 99 Foo 2000 99:99:99 GMT"}, FLOOR, id="Expires nonsense"),
        # The server's clock is ten years ahead.
        ({"expires": "Sat, 06 Nov 2004 09:49:37 GMT", "date": "Sat, 06 Nov 2004 08:49:37 GMT"}, 3600),
        pytest.param({"expires": NOW, "date": "nonsense"}, FLOOR, id="Date nonsense"),
        # max-age counts, and not Expires.
        ({"cache-control": "max-age=3600", "expires": "Sun, 06 Nov 1994 08:59:37 GMT"}, 3600),
    ],
)
def test_lifetime(headers: dict[str, str], lifetime: float) -> None:
    snapshot = Snapshot(ORIGIN, ORIGIN.robots_url, CAME, status=200, headers=headers)
    assert TIMES.lifetime(snapshot) == lifetime


HOUR = 3600.0


@pytest.mark.parametrize(
    ("status", "value", "seconds"),
    [
        (503, "120", 120),
        (429, "120", 120),
        (503, " 120 ", 120),
        (503, "0", 0),
        (503, "3601", HOUR),
        (503, "9" * 5000, HOUR),
        (503, "Sun, 06 Nov 1994 08:59:37 GMT", 600),
        (503, "Sunday, 06-Nov-94 08:59:37 GMT", 600),
        (503, "Wed, 06 Nov 2194 07:49:37 GMT", HOUR),
        (503, "Sun, 06 Nov 1994 07:49:37 GMT", 0),
        (500, "120", 0),
        (200, "120", 0),
        (None, "120", 0),
        *(
            (503, nonsense, 0)
            for nonsense in ["", "soon", "-5", "1.5", "1e3", "٣٦", "120, 60", "12 h", "\x00", "²"]
        ),
        (503, "Thu, 99 Foo 2000 99:99:99 GMT", 0),
        (503, "Fri, 31 Dec 999999999999 23:59:59 GMT", 0),
    ],
)
def test_retry_after_is_read_as_seconds_or_date(status: int | None, value: str, seconds: float) -> None:
    assert stated_wait(status, {"retry-after": value}, CAME) == seconds
    snapshot = Snapshot(ORIGIN, ORIGIN.robots_url, CAME, status, headers={"retry-after": value}, failures=1)
    assert TIMES.until_next_try(snapshot) == max(TIMES.error_ttl, seconds)


def test_a_retry_after_date_is_relative_to_the_clock_of_the_server() -> None:
    headers = {"retry-after": "Sat, 06 Nov 2004 08:51:37 GMT", "date": "Sat, 06 Nov 2004 08:49:37 GMT"}
    assert stated_wait(503, headers, CAME) == 120


@pytest.mark.usefixtures("no_spread")
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Los_Angeles"])
def test_dates_without_a_time_zone_are_in_utc(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", zone)
        time.tzset()
        for date in ("Sun Nov  6 08:59:37 1994", "Sun, 06 Nov 1994 08:59:37"):
            assert stated_wait(503, {"retry-after": date}, CAME) == 600
            snapshot = Snapshot(ORIGIN, ORIGIN.robots_url, CAME, 200, headers={"expires": date})
            assert replace(TIMES, ttl_min=0).lifetime(snapshot) == 600
    time.tzset()


def test_the_longer_of_back_off_and_retry_after_applies() -> None:
    snapshot = Snapshot(ORIGIN, ORIGIN.robots_url, CAME, 503, headers={"retry-after": "90"}, failures=1)
    assert TIMES.until_next_try(snapshot) == 90
    assert TIMES.until_next_try(replace(snapshot, failures=2)) == 120


# What may stand in a header of times, whole or damaged.
PIECES = st.sampled_from(
    [NOW, "Sun, ", "06 Nov 1994", " 08:49:37", " GMT", " +9999", "-0000", "max-age=", "no-cache", "no-store"]
)
VALUES = st.lists(st.one_of(PIECES, st.integers().map(str), st.text(max_size=5)), max_size=6).map("".join)


@given(st.integers(100, 599), VALUES, VALUES, st.floats(0, 1e10))
def test_any_retry_after_header_gives_a_wait_of_at_most_an_hour(
    status: int, value: str, date: str, came: float
) -> None:
    headers = {"retry-after": value, "date": date}
    assert 0 <= stated_wait(status, headers, came) <= HOUR
    snapshot = Snapshot(ORIGIN, ORIGIN.robots_url, came, status, headers=headers, failures=1)
    assert TIMES.error_ttl <= TIMES.until_next_try(snapshot) <= HOUR
    if value.isascii() and value.isdigit() and status in (429, 503):
        assert stated_wait(status, headers, came) == min(int(value), HOUR)


@given(
    st.dictionaries(st.sampled_from(["cache-control", "age", "expires", "date"]), VALUES), st.floats(0, 1e10)
)
def test_any_headers_give_a_lifetime_between_the_limits(headers: dict[str, str], came: float) -> None:
    snapshot = Snapshot(ORIGIN, ORIGIN.robots_url, came, status=200, headers=headers)
    assert FLOOR <= TIMES.lifetime(snapshot) <= CEILING


def lifetime_of(number: int, **headers: str) -> float:
    origin = Origin("http", f"{number}.town.example", 80)
    return TIMES.lifetime(Snapshot(origin, origin.robots_url, CAME, status=200, headers=headers))


def test_lifetimes_are_spread_by_up_to_5_percent_and_each_origin_keeps_its_own() -> None:
    lifetimes = [lifetime_of(number) for number in range(2000)]
    assert lifetimes == [lifetime_of(number) for number in range(2000)]
    assert 0.95 * CEILING <= min(lifetimes) <= max(lifetimes) <= CEILING
    assert len({seconds // 60 for seconds in lifetimes}) >= 70  # of 72 minutes


def test_a_ttl_below_the_shortest_lifetime_applies() -> None:
    assert {lifetime_of(number, expires="0") for number in range(50)} == {FLOOR}
    assert replace(TIMES, ttl=60).lifetime(Snapshot(ORIGIN, "", CAME)) == 60


@pytest.mark.parametrize("change", [{"exception": OSError("x")}, {"received": 1.0}], ids=str)
def test_what_only_this_process_knows_makes_no_difference(change: dict[str, object]) -> None:
    """So a snapshot that comes from a store equals the one that was saved."""
    here = replace(LOST, **change)  # type: ignore[arg-type]
    assert here == LOST
    assert repr(here) == repr(LOST)


@pytest.mark.parametrize("value", ['"caf\xe9"', '"\u2028"', '"1\x1b"', '"1\r\nX: y"'])
def test_a_header_that_cannot_be_sent_back_as_it_came_makes_no_condition(value: str) -> None:
    date = "Thu, 30 Jun 1994 12:00:00 GMT"
    found = replace(FOUND, headers={"etag": value, "last-modified": date})
    assert found.conditions(found.url) == {"If-Modified-Since": date}
    assert replace(found, headers={"etag": value}).conditions(found.url) == {}
