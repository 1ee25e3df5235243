"""Snapshots: the stored facts of one download of a robots.txt; and `Freshness`: for how long they are valid.

The 1994 standard does not say how often to download the file. The freshness headers of the response apply
(RFC 9111, 4.2), but for at least `NOROBOTS_TTL_MIN`, so that no server can force a download for each page,
and for at most `NOROBOTS_TTL`. Invalid headers mean that the response is stale, as RFC 9111 advises.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timezone
from email.utils import parsedate_to_datetime
from urllib.request import parse_http_list
from zlib import crc32

from scrapy.exceptions import IgnoreRequest

from scrapy_norobots.standard import Origin

# The headers that make a later download conditional, and the headers of that download that repeat them.
_CONDITIONS = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}

# Each further failure doubles the time to the next try, up to so many seconds.
LONGEST_BACK_OFF = 3600.0

# By how much the lifetimes of origins differ at most, as a fraction.
_SPREAD = 0.05


class ClosingError(IgnoreRequest):
    """The crawl is closing, so a download was stopped. Says nothing about the site."""

    def __init__(self) -> None:
        super().__init__("the crawl is closing")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One download of an origin's robots.txt, including redirects.

    - `url` is the URL of the last hop.
    - `time` is when the download ended, or when a later 304 confirmed it, in seconds since the epoch.
      `received` is when this process received `body` from the site; 0 for a snapshot from a store.
    - `status` is the HTTP status of the response, `headers` a few of its headers with lower-case names, and
      `body` its decoded bytes.
    - If there was no usable response, `status` is None, `error` says why, and `exception` is the exception;
      stores do not keep `exception`.
    - `failures` is the number of failed downloads in a row, including this one. Further proxies that fail for
      the first time do not count.
    - `local_failure` is true if this process or its proxy failed, and not the site; stores do not keep it.
    - `proxy` is the proxy of the page request, if the download failed because of it; stores do not keep it.
    """

    origin: Origin
    url: str
    time: float
    status: int | None = None
    error: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    failures: int = 0
    local_failure: bool = False
    proxy: str = field(default="", compare=False, repr=False)
    exception: Exception | None = field(default=None, compare=False, repr=False)
    received: float = field(default=0.0, compare=False, repr=False)

    def conditions(self, url: str) -> dict[str, str]:
        """Return the headers for a download of `url` that make it conditional; none if this is another file.

        A value that is not ASCII text is left out: download handlers send it as other bytes, or refuse it.
        """
        found = (
            (name, self.headers.get(header, "")) for header, name in _CONDITIONS.items() if url == self.url
        )
        return {name: value for name, value in found if value and value.isascii() and value.isprintable()}


@dataclass(frozen=True, slots=True)
class Freshness:
    """The user's times, in seconds.

    A response is fresh for `ttl_min` to `ttl`; a temporary outcome is valid for `error_ttl` or longer; the
    last good copy stays in use for at most `stale_ttl` after it was last confirmed, if a refresh fails.
    """

    ttl_min: float
    ttl: float
    error_ttl: float
    stale_ttl: float

    def lifetime(self, snapshot: Snapshot) -> float:
        """Return for how many seconds a response is fresh, counted from its arrival.

        This is up to 5 % less than the response or `ttl` says, always the same for an origin, so that files
        that were downloaded together do not expire together.
        """
        stated = _stated_lifetime(snapshot)
        longest = self.ttl if stated is None else min(max(stated, self.ttl_min), self.ttl)
        share = crc32(str(snapshot.origin).encode()) / 2**32
        return max(longest * (1 - _SPREAD * share), min(longest, self.ttl_min))

    def until_next_try(self, snapshot: Snapshot) -> float:
        """Return the seconds to wait: `error_ttl`, doubled with each failure in a row, or Retry-After."""
        # The exponent is bounded too: 2.0 ** 1024 would overflow.
        doubled = self.error_ttl * 2.0 ** min(snapshot.failures - 1, 64)
        back_off = min(doubled, max(self.error_ttl, LONGEST_BACK_OFF))
        return max(back_off, stated_wait(snapshot.status, snapshot.headers, snapshot.time))


def stated_wait(status: int | None, headers: Mapping[str, str], received: float) -> float:
    """Return the wait that a 429 or 503 asks for, in seconds, at most an hour; 0 if it asks for none.

    `Retry-After` is a number of seconds or a date (RFC 9110, 10.2.3; RFC 6585, 4). Other values are ignored.
    `received` is the time of the response, in seconds since the epoch.
    """
    value = headers.get("retry-after", "").strip()
    if status not in (429, 503) or not value:
        return 0.0
    seconds = _seconds(value) or _span(value, headers, received)
    return min(max(seconds, 0.0), LONGEST_BACK_OFF)


def _stated_lifetime(snapshot: Snapshot) -> float | None:
    """Return the lifetime that a response states, minus its Age; None if it states none."""
    headers = snapshot.headers
    directives = (one.partition("=") for one in parse_http_list(headers.get("cache-control", "").lower()))
    control = {name.strip(): value.strip(' "') for name, _, value in directives}
    if "no-cache" in control or "no-store" in control:
        return 0.0
    age = _seconds(headers.get("age", "0"))
    if "max-age" in control:
        return _seconds(control["max-age"]) - age
    if "expires" in headers:
        return _span(headers["expires"], headers, snapshot.time) - age
    return None


def _span(date: str, headers: Mapping[str, str], received: float) -> float:
    """Return the seconds from a response to a date; 0 for an invalid one, such as "0" (RFC 9111, 5.3)."""
    try:
        # The difference of the server's own dates is right even if a clock is wrong.
        start = _epoch(headers["date"]) if "date" in headers else received
        return _epoch(date) - start
    except (ValueError, TypeError, OverflowError):
        return 0.0


def _epoch(date: str) -> float:
    when = parsedate_to_datetime(date)
    # A date without a time zone is in UTC (RFC 9110, 5.6.7).
    return (when if when.tzinfo else when.replace(tzinfo=timezone.utc)).timestamp()


def _seconds(text: str) -> float:
    """Return a number of seconds, at most 2^31; invalid or negative ones are 0 (RFC 9111, 1.2.2, 4.2.1)."""
    return min(float(text), 2.0**31) if text.isascii() and text.isdigit() else 0.0
