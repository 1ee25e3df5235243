"""The dates and digests by which decisions and answers refer to each other."""

from __future__ import annotations

import pytest

from scrapy_norobots.features.evidence.fields import date_of, digest_of


def test_dates_have_microseconds_always() -> None:
    assert date_of(0) == "1970-01-01T00:00:00.000000Z"
    assert date_of(1_700_000_000.25) == "2023-11-14T22:13:20.250000Z"
    assert len(date_of(253_402_300_799)) == len(date_of(0))


def test_times_of_two_downloads_have_two_dates() -> None:
    assert date_of(1_700_000_000.000001) != date_of(1_700_000_000)


def test_a_digest_is_that_of_other_tools() -> None:
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # FIPS 180-4
    assert digest_of(b"") == f"sha256:{empty}"


@pytest.mark.parametrize(("time", "date"), [(-1e300, "1970"), (1e300, "9999"), (float("inf"), "9999")])
def test_impossible_times_have_the_nearest_date(time: float, date: str) -> None:
    assert date_of(time).startswith(date)
