"""The names and values by which the two kinds of evidence files refer to each other."""

from __future__ import annotations

import hashlib
from datetime import datetime, timezone

WARC_SUFFIX, DECISIONS_SUFFIX = ".warc.gz", ".decisions.jsonl.gz"

# Fields of WARC records beside the standard's: the origin whose robots.txt was requested, the digest of the
# body that was judged, and where a record came from if not from the network.
ORIGIN = "Norobots-Origin"
BODY_DIGEST = "Norobots-Body-Digest"
SOURCE = "Norobots-Source"

# Fields of the warcinfo record: the run, and the settings that its decisions depend on.
RUN = "isPartOf"
POLICY = "norobots-status-policy"
MULTIVALUE = "norobots-multivalue"
AIOHTTP = "norobots-aiohttp"  # whether the spellings that aiohttp sends are checked too
ALSO_ROBOTS = "norobots-also-robots"  # the other names that must be allowed; missing in older evidence
PURPOSES = (
    "norobots-purposes"  # what the crawl is for; null, or missing, if statements about use were not read
)

# Verdicts that `standard.Verdict` does not have.
UNREACHABLE, OVERRIDDEN = "unreachable", "overridden"

# The reason of an overridden decision.
OVERRIDE = "dont_obey_robotstxt"

# The last time that can be a date, in seconds since the epoch.
_LAST_TIME = 253_402_300_799.0

# Between the names of parsers that all allowed a request.
AND = ", "


def digest_of(body: bytes) -> str:
    """Return the digest of a body that was judged: ``sha256:`` and 64 hexadecimal digits."""
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def date_of(time: float) -> str:
    """Return seconds since the epoch as a date in UTC, to the microsecond (WARC 1.1, WARC-Date).

    Times before 1970 or after 9999, which only a damaged store has, become the nearest valid date.
    """
    date = datetime.fromtimestamp(min(max(time, 0.0), _LAST_TIME), timezone.utc)
    return date.isoformat(timespec="microseconds")[:-6] + "Z"
