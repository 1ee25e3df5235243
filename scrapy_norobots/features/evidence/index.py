"""`Index`: which answer stands behind a decision, found in bounded memory however many answers there are.

It is a temporary SQLite database on disk: for an origin and the time of its robots.txt the outcome, and for
the digest of a body the place of a record that has it. It also has marks of what other records may refer to.
"""

from __future__ import annotations

import os
import sqlite3
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from scrapy_norobots.features.evidence.fields import HEADERS_MAX
from scrapy_norobots.features.evidence.gzip_file import GzipFile
from scrapy_norobots.features.evidence.warc import read_record

_SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE outcomes (name BLOB PRIMARY KEY, status INTEGER, digest TEXT) WITHOUT ROWID;
CREATE TABLE marks (name BLOB PRIMARY KEY) WITHOUT ROWID;
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
        self._mark("target", origin, url)

    def is_target(self, origin: str, url: str) -> bool:
        """Return whether such a redirect leads to a URL."""
        return self._is_marked("target", origin, url)

    def add_file(self, origin: str, url: str, date: str, digest: str) -> None:
        """Add the file of an origin that a record of a URL and a date has."""
        self._mark("file", origin, url, date, digest)

    def is_file(self, origin: str, url: str, date: str, digest: str) -> bool:
        """Return whether there is such a record."""
        return self._is_marked("file", origin, url, date, digest)

    def add_id(self, record_id: str) -> bool:
        """Add the identifier of a record; return whether it is a new one."""
        return self._mark("id", record_id)

    def _mark(self, *texts: str) -> bool:
        return self._database.execute("INSERT OR IGNORE INTO marks VALUES (?)", (_name(*texts),)).rowcount > 0

    def _is_marked(self, *texts: str) -> bool:
        query = "SELECT 1 FROM marks WHERE name = ?"
        return self._database.execute(query, (_name(*texts),)).fetchone() is not None

    def close(self) -> None:
        """Remove it."""
        self._database.close()


def _name(*texts: str) -> bytes:
    return blake2b(" ".join(texts).encode("utf-8", "backslashreplace"), digest_size=16).digest()
