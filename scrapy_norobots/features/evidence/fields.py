"""The names and values by which the two kinds of evidence files refer to each other."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime, timezone
from functools import lru_cache

from scrapy_norobots.standard.urls import percent_encode

WARC_SUFFIX, DECISIONS_SUFFIX = ".warc.gz", ".decisions.jsonl.gz"

# Fields of WARC records beside the standard's: the origin whose robots.txt was requested, the digest of the
# body that was judged, and where a record came from if not from the network.
ORIGIN = "Norobots-Origin"
BODY_DIGEST = "Norobots-Body-Digest"
SOURCE, STORE = "Norobots-Source", "store"
# The URL that was requested, if the answer has another one; and what followed on an answer that decided
# nothing: a redirect, or a retry of the download.
REQUESTED = "Norobots-Requested-URI"
FOLLOWED_BY = "Norobots-Followed-By"
REDIRECT, RETRY = "redirect", "retry"

# Fields of the warcinfo record: the run, the settings that its decisions depend on, and who judged.
RUN = "isPartOf"
POLICY = "norobots-status-policy"
MULTIVALUE = "norobots-multivalue"
AIOHTTP = "norobots-aiohttp"  # whether the spellings that aiohttp sends are checked too
DRY_RUN = "norobots-dry-run"
PARSERS = "norobots-parsers"  # a JSON list of `judges.description`, in their order
PYTHON = "norobots-python"
ALSO_ROBOTS = "norobots-also-robots"  # a JSON list of the other names that must be allowed
PURPOSES = "norobots-purposes"  # what the crawl is for; null if statements about use are not read
ALLOWED = "norobots-evidence-allowed"  # whether decisions to allow a request are stored
ROBOT = "norobots-robot"  # ROBOTSTXT_USER_AGENT, a text; null if parsers get headers, in bytes
SETTINGS = (POLICY, MULTIVALUE, AIOHTTP, DRY_RUN, PARSERS, PYTHON, ALSO_ROBOTS, PURPOSES, ALLOWED, ROBOT)
# What readers of WARC files understand: "ignore" for a dry run, else "obey".
ROBOTS = "robots"
# And how many answers the files before this one have, and the digest of the last of these files.
ANSWERS_BEFORE = "norobots-answers-before"
PREVIOUS_FILE = "norobots-previous-file"

# Verdicts that `standard.Verdict` does not have.
UNREACHABLE, OVERRIDDEN = "unreachable", "overridden"

# The reason of an overridden decision.
OVERRIDE = "dont_obey_robotstxt"

_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)

# The last time that can be a date, in seconds since the epoch.
_LAST_TIME = 253_402_300_799.0

# Between the names of parsers that all allowed a request.
AND = ", "

# Longer texts in a line of decisions are shortened to their first characters, so that no line has more than
# LINE_MAX bytes: five of them, with up to 12 bytes a character in JSON.
TEXT_MAX, TEXT_KEPT = 256 * 1024, 1_000
LINE_MAX = 16 * 1024 * 1024

# More bytes than the headers of a record have, those of WARC and of HTTP; and how many the latter may have.
HEADERS_MAX, HTTP_HEADERS_MAX = 2 * 1024 * 1024, 1024 * 1024


def digest_of(body: bytes) -> str:
    """Return the digest of a body that was judged: ``sha256:`` and 64 hexadecimal digits."""
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def digest_of_text(text: str) -> str:
    """Return the digest of a text that is shortened, in UTF-8."""
    return digest_of(text.encode("utf-8", "surrogatepass"))


def shortened(text: str) -> str:
    """Return a text as evidence has it."""
    return text if len(text) <= TEXT_MAX else text[:TEXT_KEPT]


def uri_of(url: str) -> str:
    """Return a URL, or an origin, as the fields of a WARC record have it, even if no host has such a name."""
    return shortened(percent_encode(url))


def date_of(time: float) -> str:
    """Return seconds since the epoch as a date in UTC, to the microsecond (WARC 1.1, WARC-Date).

    Times before 1970 or after 9999, which only a damaged store has, become the nearest valid date.
    """
    seconds, micros = divmod(round(min(max(time, 0.0), _LAST_TIME) * 1_000_000), 1_000_000)
    return f"{_second(seconds)}.{micros:06}Z"


def check_date(date: str) -> None:
    """Raise `ValueError` if a text is not a date as `date_of` writes it."""
    if _DATE.fullmatch(date) is None:
        raise ValueError(f"time is {date!r}")
    datetime.fromisoformat(date[:-1])


def time_of(date: str) -> float:
    """Return the seconds since the epoch of a date in UTC, with or without a fraction; raise `ValueError`."""
    if not date.endswith("Z"):
        raise ValueError(f"time is {date!r}")
    return datetime.fromisoformat(date[:-1]).replace(tzinfo=timezone.utc).timestamp()


@lru_cache(maxsize=100)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()[:-6]
