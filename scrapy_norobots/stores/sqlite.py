"""`SqliteStore`: snapshots in one SQLite file, shared by the processes of one machine.

All work runs in a thread. A process that is killed loses nothing that was committed; after a power failure,
the file may be damaged. Only its owner can read it. Its size is limited; the entries that were saved first
are deleted first. A file that is damaged, or of another version, is renamed and never deleted. A file that is
not a database, or that of another program, is not used and not changed.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.standard import Origin
from scrapy_norobots.stores import LARGEST_FILE, Locked, NotAStoreError, entries

logger = logging.getLogger(__name__)

_APPLICATION_ID = 0x6E6F726F  # "noro"

_SCHEMA = (
    "entries (origin TEXT PRIMARY KEY, entry BLOB NOT NULL, until REAL NOT NULL)",
    "locks (origin TEXT PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL)",
)
# As SQLite keeps them; as bytes, because a damaged text may not be UTF-8.
_KEPT_SCHEMA = {f"CREATE TABLE {table}".encode() for table in _SCHEMA}
# Several processes may be creating the same file.
_CREATE = f"""
    BEGIN IMMEDIATE;
    {"".join(f"CREATE TABLE IF NOT EXISTS {table};" for table in _SCHEMA)}
    PRAGMA application_id = {_APPLICATION_ID};
    COMMIT;
"""

_USED_BYTES = """
    SELECT (page_count - freelist_count) * page_size
    FROM pragma_page_count, pragma_freelist_count, pragma_page_size
"""

# How long to wait while another process writes, in seconds.
_BUSY_TIMEOUT = 4.0

# How many entries are listed at a time.
_PAGE = 100

# How many entries a save deletes at most, if the file is far over a limit that was lowered.
_DELETED_MAX = 1000

# How every SQLite database begins.
_MAGIC = b"SQLite format 3\x00"

_OPENING = threading.Lock()

_T = TypeVar("_T")


class SqliteStore:
    """Snapshots in the file at `path`, of about `max_bytes` at most. Missing directories are created.

    An entry with a robots.txt of more than `maxsize` bytes is a miss. With `must_exist`, no file is created
    or renamed; the methods raise `OSError` or `NotAStoreError` if `path` is not a store that can be read.
    """

    def __init__(
        self, path: str, max_bytes: int, maxsize: int = LARGEST_FILE, *, must_exist: bool = False
    ) -> None:
        self._path = Path(path).absolute()  # the crawl may change the working directory
        self._max_bytes = max_bytes
        self._maxsize = maxsize
        self._must_exist = must_exist
        self._owner = uuid4().hex
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="norobots-sqlite")
        self._connection: sqlite3.Connection | None = None
        self._inode = 0

    async def load(self, origin: Origin) -> tuple[Snapshot, ...]:
        return await self._run(lambda db: self._load(db, origin))

    async def lock(self, origin: Origin, seconds: float) -> Locked:
        # A lock that expires more than a day ahead was acquired with a wrong clock.
        statement = """
            INSERT INTO locks VALUES (:origin, :owner, :now + :seconds) ON CONFLICT (origin)
            DO UPDATE SET owner = :owner, until = :now + :seconds
            WHERE until <= :now OR until > :now + :seconds + 86400 OR owner = :owner
        """

        def lock(db: sqlite3.Connection) -> Locked:
            values = {"origin": str(origin), "owner": self._owner, "now": time.time(), "seconds": seconds}
            return Locked(db.execute(statement, values).rowcount > 0, self._load(db, origin))

        return await self._run(lock)

    async def save(self, snapshots: Sequence[Snapshot], until: float) -> None:
        origin = snapshots[0].origin

        def save(db: sqlite3.Connection) -> None:
            entry = entries.encode(snapshots)
            with db:
                db.execute("BEGIN IMMEDIATE")
                db.execute("REPLACE INTO entries VALUES (?, ?, ?)", (str(origin), entry, until))
                self._make_room(db)
                self._unlock(db, origin)

        await self._run(save)

    async def unlock(self, origin: Origin) -> None:
        await self._run(lambda db: self._unlock(db, origin))

    async def items(self) -> AsyncIterator[tuple[Origin, tuple[Snapshot, ...]]]:
        """Yield each origin and its snapshots, sorted by the text of the origin."""
        # As bytes, because another program may have stored texts that are not UTF-8.
        statement = """
            SELECT CAST(origin AS BLOB), CAST(entry AS BLOB) FROM entries
            WHERE origin > CAST(? AS TEXT) AND typeof(origin) = 'text' AND until > ? ORDER BY origin LIMIT ?
        """
        last = b""

        def read(db: sqlite3.Connection) -> list[tuple[bytes, bytes]]:
            page = db.execute(statement, (last, time.time(), _PAGE)).fetchall()
            if page and page[-1][0] <= last:  # it would never end
                raise sqlite3.DatabaseError("its entries are not in order")
            return page

        while page := await self._run(read):
            for key, entry in page:
                origin = entries.origin_of(key.decode("utf-8", "replace"))
                if origin is not None:
                    yield origin, entries.decode(entry, origin, self._maxsize)
            last = page[-1][0]

    async def delete(self, origin: Origin) -> bool:
        return await self._run(
            lambda db: db.execute("DELETE FROM entries WHERE origin = ?", (str(origin),)).rowcount > 0
        )

    async def close(self) -> None:
        self._thread.submit(self._close_file)
        self._thread.shutdown(wait=False)

    async def _run(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        return await compat.in_thread(self._thread, lambda: self._with_file(work))

    # All methods below run in the store's thread.

    def _load(self, db: sqlite3.Connection, origin: Origin) -> tuple[Snapshot, ...]:
        # Another program may have stored a value of any type.
        statement = "SELECT CAST(entry AS BLOB) FROM entries WHERE origin = ? AND until > ?"
        row = db.execute(statement, (str(origin), time.time())).fetchone()
        return entries.decode(row[0], origin, self._maxsize) if row else ()

    def _unlock(self, db: sqlite3.Connection, origin: Origin) -> None:
        db.execute("DELETE FROM locks WHERE origin = ? AND owner = ?", (str(origin), self._owner))

    def _with_file(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Do some work with the file, which is opened again after an error."""
        for _ in range(3):
            if not self._is_in_place():
                self._close_file()  # another process has moved or deleted it
            try:
                if self._connection is None:
                    self._connection = self._open()
                    self._prepare(self._connection)
                return work(self._connection)
            except Exception as exc:
                is_in_place = self._is_in_place()
                self._close_file()
                if not self._is_of_damage(exc):
                    raise
                if is_in_place:
                    self._move_aside(exc)
        raise NotAStoreError(f"{self._path} cannot be used")

    def _open(self) -> sqlite3.Connection:
        if self._path.is_dir():
            raise IsADirectoryError(f"{self._path} is a directory")
        # To close a file ends all locks that the process has on it. So create the file only if it does not
        # exist, and let no other thread of the process open it meanwhile.
        with _OPENING:
            if not self._must_exist:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with suppress(FileExistsError):
                    # SQLite gives its own files beside it the same permissions.
                    self._path.touch(0o600, exist_ok=False)
            file = self._path.stat()
            if file.st_size == 1:  # SQLite takes such a file for an empty one
                raise NotAStoreError(f"{self._path} is not a SQLite database")
            self._inode = file.st_ino
            return sqlite3.connect(
                f"{self._path.as_uri()}?mode=rw",  # a file that it cannot write is opened for reading
                timeout=_BUSY_TIMEOUT,
                isolation_level=None,
                check_same_thread=False,
                uri=True,
            )

    def _prepare(self, db: sqlite3.Connection) -> None:
        db.execute("PRAGMA synchronous = OFF")  # what a power failure damages is downloaded again
        schema = {sql for (sql,) in db.execute("SELECT CAST(sql AS BLOB) FROM sqlite_master")}
        if schema.issuperset(_KEPT_SCHEMA):
            return
        if schema and db.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
            raise NotAStoreError(f"{self._path} is the database of another program")
        if schema:  # SQLite accepts most changes of a schema
            raise sqlite3.DatabaseError("its schema is not that of this version")
        if self._must_exist:
            raise NotAStoreError(f"{self._path} is not a store: it is empty")
        db.executescript(_CREATE)

    def _is_of_damage(self, exc: Exception) -> bool:
        """Return whether an error is that of a damaged file, and not that of the call, the disk or a lock."""
        if isinstance(exc, sqlite3.OperationalError):  # here, of a format that the header names
            can_write = os.access(self._path, os.W_OK) and os.access(self._path.parent, os.W_OK)
            return "file format" in str(exc) or ("readonly" in str(exc) and can_write)
        # Other subclasses are errors of the call. A name in a damaged file may be one that cannot be decoded.
        return type(exc) in (sqlite3.DatabaseError, UnicodeDecodeError)

    def _move_aside(self, exc: Exception) -> None:
        """Rename the file, which is damaged; raise `NotAStoreError` if it may belong to the user."""
        # Reading ends the locks that this process has on it, so only a file that SQLite cannot use is read.
        with suppress(FileNotFoundError), self._path.open("rb") as file:
            if file.read(len(_MAGIC)) not in (_MAGIC, bytes(len(_MAGIC)), b""):  # zeros: of a power failure
                raise NotAStoreError(f"{self._path} is not a SQLite database")
        if self._must_exist:
            raise NotAStoreError(f"{self._path} is damaged ({exc})")
        aside = self._path.with_name(f"{self._path.name}.{time.strftime('%Y%m%d-%H%M%S')}-{uuid4().hex[:6]}")
        # Rename the journal first: it must not be applied to a new database.
        for suffix in ("-journal", ""):
            with suppress(FileNotFoundError):
                Path(f"{self._path}{suffix}").rename(f"{aside}{suffix}")
        logger.warning(
            "%s is damaged (%s): it was renamed to %s, and a new file replaces it", self._path, exc, aside
        )

    def _is_in_place(self) -> bool:
        try:
            return self._path.stat().st_ino == self._inode
        except FileNotFoundError:
            return False

    def _close_file(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _make_room(self, db: sqlite3.Connection) -> None:
        # A row that is replaced is the last one, so the order is that of the saves, with any clock.
        for _ in range(_DELETED_MAX):
            if db.execute(_USED_BYTES).fetchone()[0] <= self._max_bytes:
                return
            db.execute("DELETE FROM entries WHERE rowid = (SELECT min(rowid) FROM entries)")
