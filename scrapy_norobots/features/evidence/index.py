"""`Index`: which answer stands behind a decision, found in bounded memory however many answers there are.

It is a temporary SQLite database on disk: for an origin and the time of its robots.txt the outcome, and for
the digest of a body the place of a record that has it.
"""

from __future__ import annotations

import os
import sqlite3
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from scrapy_norobots.features.evidence.fields import HEADERS_MAX
from scrapy_norobots.features.evidence.files import GzipFile
from scrapy_norobots.features.evidence.records import read_record

_SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE outcomes (name BLOB PRIMARY KEY, status INTEGER, digest TEXT) WITHOUT ROWID;
CREATE TABLE targets (name BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE bodies (digest TEXT PRIMARY KEY, path BLOB, offset INTEGER, body BLOB) WITHOUT ROWID;
"""


# The size up to which a body is kept in the index, in bytes: reading a record again takes longer.
_SMALL = 64 * 1024


class Outcome(NamedTuple):
    """What a download of a robots.txt came to: a status (None: no answer), and the digest of its file."""

    status: int | None
    digest: str | None


class Index:
    """The outcomes, bodies and redirects of the WARC files of a run; bodies have at most `body_max` bytes."""

    def __init__(self, body_max: int) -> None:
        self._body_max = body_max
        self._database = sqlite3.connect("", isolation_level=None)  # a temporary file
        self._database.executescript(_SCHEMA)

    def add_outcome(self, origin: str, date: str, outcome: Outcome) -> None:
        """Add an outcome, in place of one of the same origin and time."""
        self._database.execute("REPLACE INTO outcomes VALUES (?, ?, ?)", (_name(origin, date), *outcome))

    def add_body(self, digest: str, body: bytes, path: Path, offset: int) -> None:
        """Add a body that has been checked, of the record at an offset in a file. A large one stays there."""
        row = (digest, os.fsencode(path), offset, body if len(body) <= _SMALL else None)
        self._database.execute("INSERT OR IGNORE INTO bodies VALUES (?, ?, ?, ?)", row)

    def outcome(self, origin: str, date: str) -> Outcome | None:
        """Return the outcome of an origin and a time, if there is one."""
        query = "SELECT status, digest FROM outcomes WHERE name = ?"
        row = self._database.execute(query, (_name(origin, date),)).fetchone()
        return None if row is None else Outcome(*row)

    def body(self, digest: str) -> bytes | None:
        """Read the body with a digest, if there is one."""
        query = "SELECT path, offset, body FROM bodies WHERE digest = ?"
        row = self._database.execute(query, (digest,)).fetchone()
        if row is None:
            return None
        path, offset, body = row
        if body is not None:
            return bytes(body)
        _, data = next(GzipFile(Path(os.fsdecode(path))).members(self._body_max + HEADERS_MAX, offset))
        return read_record(data, self._body_max).body

    def add_target(self, origin: str, url: str) -> None:
        """Add a URL that a redirect from the robots.txt of an origin leads to."""
        self._database.execute("INSERT OR IGNORE INTO targets VALUES (?)", (_name(origin, url),))

    def is_target(self, origin: str, url: str) -> bool:
        """Return whether such a redirect leads to a URL."""
        query = "SELECT 1 FROM targets WHERE name = ?"
        return self._database.execute(query, (_name(origin, url),)).fetchone() is not None

    def close(self) -> None:
        """Remove it."""
        self._database.close()


def _name(origin: str, other: str) -> bytes:
    return blake2b(f"{origin} {other}".encode("utf-8", "backslashreplace"), digest_size=16).digest()
