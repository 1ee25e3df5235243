"""How long a robots.txt counts: HTTP freshness, held between a floor and a ceiling.

The 1994 standard does not say how often a file is to be asked for. What the server says of its own answer
counts (RFC 9111, 4.2), but not for less than `NOROBOTS_TTL_MIN`, so that no server makes a crawler ask again
with each page, nor for more than `NOROBOTS_TTL`. What cannot be read counts as stale, as RFC 9111 advises.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from scrapy_norobots.snapshot import Snapshot

_MAX_AGE = re.compile(r"(?:^|[,\s])max-age\s*=\s*\"?([^,\s\"]*)", re.IGNORECASE)
# How far failures in a row, each doubling the time to the next try, can put it off, in seconds.
LONGEST_BACK_OFF = 3600.0

# How far the clocks of two machines that share a store may be apart, in seconds.
_MAX_CLOCK_SKEW = 300.0

_NO_CACHE = re.compile(r"(?:^|[,\s])(?:no-cache|no-store)(?:$|[,\s=])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Freshness:
    """The user's terms, in seconds.

    An answer counts for `ttl_min` to `ttl`; a temporary outcome for `error_ttl`; the last good copy, where
    a new one cannot be had, for `stale_ttl` after it was last confirmed.
    """

    ttl_min: float
    ttl: float
    error_ttl: float
    stale_ttl: float

    def lifetime(self, snapshot: Snapshot) -> float:
        """Return for how many seconds an answer counts from when it came."""
        stated = _stated_lifetime(snapshot)
        return self.ttl if stated is None else min(max(stated, self.ttl_min), self.ttl)

    def back_off(self, failures: int) -> float:
        """Return for how many seconds a temporary outcome counts: doubled with each failure in a row."""
        # The exponent is bounded too: 2.0 ** 1024 would overflow.
        doubled = self.error_ttl * 2.0 ** min(failures - 1, 64)
        return min(doubled, max(self.error_ttl, LONGEST_BACK_OFF))

    def until_next_try(self, snapshot: Snapshot) -> float:
        """Return for how many seconds a temporary outcome counts: the back-off, or what the site asks for."""
        stated = stated_wait(snapshot.status, snapshot.headers, snapshot.time)
        return max(self.back_off(snapshot.failures), stated)

    @staticmethod
    def remaining(lifetime: float, snapshot: Snapshot, now: float) -> float:
        """Return how much is left at `now`, seconds since the epoch, of a snapshot's lifetime."""
        return lifetime - max(now - snapshot.time, 0.0)

    @staticmethod
    def has_an_age(snapshot: Snapshot, now: float) -> bool:
        """Whether the age of a snapshot from a store can be told: not if a clock was wrong by far."""
        return snapshot.time - now <= _MAX_CLOCK_SKEW

    def kept_until(self, lifetime: float, snapshot: Snapshot) -> float:
        """Return when a snapshot cannot matter any more, in seconds since the epoch.

        It counts while it is fresh, then as a stale copy, and failures in a row are counted.
        """
        return snapshot.time + lifetime + max(self.stale_ttl, LONGEST_BACK_OFF)

    def may_stay(self, snapshot: Snapshot, now: float) -> bool:
        """Whether a copy that could not be refreshed may still count at `now`, seconds since the epoch.

        A clock that was put back makes it no older than new.
        """
        return now - snapshot.time <= self.stale_ttl


def stated_wait(status: int | None, headers: Mapping[str, str], received: float) -> float:
    """Return for how many seconds a 429 or 503 asks to be left alone, at most an hour; 0 if it does not.

    `Retry-After` is a number of seconds or a date (RFC 9110, 10.2.3; RFC 6585, 4). Anything else is ignored.
    `received` is when the answer came, in seconds since the epoch.
    """
    value = headers.get("retry-after", "").strip()
    if status not in (429, 503) or not value:
        return 0.0
    seconds = _seconds(value) or _span(value, headers, received)
    return min(max(seconds, 0.0), LONGEST_BACK_OFF)


def _stated_lifetime(snapshot: Snapshot) -> float | None:
    """Return the lifetime that an answer states, less the age it had when it came; None if it has none."""
    headers = snapshot.headers
    control = headers.get("cache-control", "")
    max_age = _MAX_AGE.search(control)
    if _NO_CACHE.search(control):
        return 0.0
    if max_age:
        return _seconds(max_age[1]) - _seconds(headers.get("age", "0"))
    if "expires" in headers:
        return _span(headers["expires"], headers, snapshot.time)
    return None


def _span(date: str, headers: Mapping[str, str], received: float) -> float:
    """Return how many seconds lie between an answer and a date in its headers; 0 if that is no date.

    An answer that expires at what is no date has expired (RFC 9111, 5.3).
    """
    try:
        # What counts is the server's own time span, however wrong either clock is.
        start = _epoch(headers["date"]) if "date" in headers else received
        return _epoch(date) - start
    except (ValueError, TypeError, OverflowError):
        return 0.0


def _epoch(date: str) -> float:
    return parsedate_to_datetime(date).timestamp()


def _seconds(text: str) -> float:
    """Read a number of seconds, at most 2^31; what is none, or negative, is 0 (RFC 9111, 1.2.2 and 4.2.1)."""
    return min(float(text), 2.0**31) if text.isascii() and text.isdigit() else 0.0
