"""`Journal`: keep requests on disk while they wait, so that a job that is killed loses none.

Scrapy's own disk queue writes its index only when a crawl ends, so a request in it does not survive a
SIGKILL; a request in this file does. A thread of its own writes the file, and removes it when the crawl ends.
Requests are serialized as in Scrapy's `JOBDIR`, with a checksum each. One that cannot be serialized is logged
as Scrapy does, and kept in memory only.
"""

from __future__ import annotations

import logging
import pickle
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from scrapy.utils.request import request_from_dict

from scrapy_norobots import compat

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

# The size of the checksum before each request, in bytes. Without the checksum, a changed bit could turn a
# request into another one.
_DIGEST_SIZE = 16

_SCHEMA = "CREATE TABLE IF NOT EXISTS requests (key INTEGER PRIMARY KEY, request BLOB NOT NULL)"


class Journal:
    """The requests that wait, in the file at `path`. Disk errors are logged, and do not stop the crawl."""

    def __init__(self, path: Path, crawler: Crawler) -> None:
        assert crawler.stats is not None  # made before any middleware
        self._path = path
        self._crawler = crawler
        self._stats = crawler.stats
        self._logs_unserializable = crawler.settings.getbool("SCHEDULER_DEBUG")
        self._keys: dict[Request, int] = {}
        self._last_key = 0
        self._has_failed = False
        self._kept: set[Request] = set()
        self._thread = ThreadPoolExecutor(1, "norobots-journal")
        self._connection: sqlite3.Connection | None = None

    def add(self, request: Request) -> None:
        """Save a request."""
        try:
            data = pickle.dumps(request.to_dict(spider=self._crawler.spider), protocol=4)
        except Exception as exc:  # an object may raise anything
            self._stats.inc_value("norobots/retry/unserializable")
            if self._logs_unserializable:
                self._logs_unserializable = False
                logger.warning(
                    "Unable to serialize request: %(request)s - reason: %(reason)s - it waits in memory "
                    "only, and no more unserializable requests will be logged (stats being collected)",
                    {"request": request, "reason": exc},
                    exc_info=True,
                    extra={"spider": self._crawler.spider},
                )
            return
        self._last_key += 1
        self._keys[request] = key = self._last_key
        row = (key, _digest(data) + data)
        self._submit(lambda db: db.execute("INSERT OR REPLACE INTO requests VALUES (?, ?)", row))

    def keep(self, request: Request) -> None:
        """Save a request for the next run, even if this run ends normally."""
        self._kept.add(request)
        self.add(request)

    def remove(self, requests: Sequence[Request]) -> None:
        """Delete requests; those that were not saved are ignored."""
        keys = [(self._keys.pop(request),) for request in requests if request in self._keys]
        if keys:
            self._submit(lambda db: db.executemany("DELETE FROM requests WHERE key = ?", keys))

    async def recover(self) -> list[Request]:
        """Return the requests that a killed process left, in order, and delete them."""
        rows = await compat.in_thread(self._thread, self._take_all)
        requests = []
        error: Exception | None = None
        for (row,) in rows:
            try:
                requests.append(self._restore(row))
            except Exception as exc:  # classes may have changed since, which raises anything
                error = exc
        if error is not None:
            logger.error(
                "Requests that waited when this job was killed are lost, because they cannot be restored "
                "from %s: %d (%r)",
                self._path,
                len(rows) - len(requests),
                error,
                extra={"spider": self._crawler.spider},
            )
        return requests

    def _restore(self, row: bytes) -> Request:
        digest, data = row[:_DIGEST_SIZE], row[_DIGEST_SIZE:]
        if digest != _digest(data):
            raise ValueError("a checksum is wrong")
        return request_from_dict(pickle.loads(data), spider=self._crawler.spider)  # noqa: S301  # as Scrapy does

    async def close(self) -> None:
        """Delete the file, or all requests in it but those for the next run, and end the thread."""
        others = [(key,) for request, key in self._keys.items() if request not in self._kept]
        try:
            await compat.in_thread(self._thread, partial(self._end, others))
        finally:
            self._thread.shutdown(wait=False)

    def _submit(self, work: Callable[[sqlite3.Connection], object]) -> None:
        self._thread.submit(lambda: self._with_file(work)).add_done_callback(self._done)

    def _done(self, future: Future[object]) -> None:
        error = None if future.cancelled() else future.exception()
        if error is not None:
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        if not self._has_failed:
            self._has_failed = True
            logger.error(
                "Requests that wait for closed sites may be lost if this job is killed: %s: %r",
                self._path,
                error,
                extra={"spider": self._crawler.spider},
            )

    # Everything below runs in the thread.

    def _with_file(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        if self._connection is None:
            self._connection = self._connect()
        return work(self._connection)

    def _connect(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Only one thread uses it, but at exit Python may take another thread for it.
        db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            # A killed process loses nothing; a power failure may lose requests, as with Scrapy's own files.
            db.execute("PRAGMA synchronous = OFF")
            db.execute(_SCHEMA)
        except BaseException:
            db.close()
            raise
        return db

    def _take_all(self) -> list[tuple[bytes]]:
        if not self._path.exists():
            return []
        try:
            rows = self._with_file(
                lambda db: db.execute("SELECT CAST(request AS BLOB) FROM requests ORDER BY key").fetchall()
            )
        except (sqlite3.Error, UnicodeDecodeError) as exc:  # messages with damaged names cannot be decoded
            self._failed(exc)
            self._close_file()
            with suppress(OSError):
                self._path.replace(f"{self._path}.damaged")
            return []
        try:
            self._with_file(lambda db: db.execute("DELETE FROM requests"))
        except (sqlite3.Error, UnicodeDecodeError) as exc:
            self._failed(exc)  # the file is readable, and rows of this run replace the old ones
        return rows

    def _end(self, others: Sequence[tuple[int]]) -> None:
        if self._kept and others:
            try:
                self._with_file(lambda db: db.executemany("DELETE FROM requests WHERE key = ?", others))
            except sqlite3.Error as exc:
                self._failed(exc)  # the scheduler has these requests too, so none is lost
        self._close_file()
        if self._kept:
            return
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                Path(f"{self._path}{suffix}").unlink()

    def _close_file(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST_SIZE).digest()
