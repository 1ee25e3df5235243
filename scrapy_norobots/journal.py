"""`Journal`: requests on disk while they wait, so that a job that is killed loses none.

Scrapy's own disk queue notes what it holds when a crawl ends, so a request there does not survive a SIGKILL;
one in this file does. The file is written in a thread of its own, and gone when a crawl has ended. Requests
are kept as Scrapy keeps them in `JOBDIR`; one that cannot be is logged as Scrapy does, and kept in memory
only.
"""

from __future__ import annotations

import logging
import pickle
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from scrapy.utils.request import request_from_dict

from scrapy_norobots import compat

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

_SCHEMA = "CREATE TABLE IF NOT EXISTS requests (key INTEGER PRIMARY KEY, request BLOB NOT NULL)"

# What pickling raises for what cannot be pickled.
_UNPICKLABLE = (pickle.PicklingError, AttributeError, TypeError, ValueError, RecursionError)


class Journal:
    """The requests that wait, in the file at `path`. An error of the disk is logged, and stops no crawl."""

    def __init__(self, path: Path, crawler: Crawler) -> None:
        assert crawler.stats is not None  # made before any middleware
        self._path = path
        self._crawler = crawler
        self._stats = crawler.stats
        self._logs_unserializable = crawler.settings.getbool("SCHEDULER_DEBUG")
        self._keys: dict[Request, int] = {}
        self._last_key = 0
        self._has_failed = False
        self._thread = ThreadPoolExecutor(1, "norobots-journal")
        self._connection: sqlite3.Connection | None = None

    def add(self, request: Request) -> None:
        """Keep a request."""
        try:
            data = pickle.dumps(request.to_dict(spider=self._crawler.spider), protocol=4)
        except _UNPICKLABLE as exc:
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
        self._submit(lambda db: db.execute("INSERT INTO requests VALUES (?, ?)", (key, data)))

    def remove(self, requests: Sequence[Request]) -> None:
        """Keep requests no longer."""
        keys = [(self._keys.pop(request),) for request in requests if request in self._keys]
        if keys:
            self._submit(lambda db: db.executemany("DELETE FROM requests WHERE key = ?", keys))

    async def recover(self) -> list[Request]:
        """Return what a killed process has left, in order, and forget it."""
        rows = await compat.in_thread(self._thread, self._take_all)
        requests = []
        for (data,) in rows:
            try:
                requests.append(request_from_dict(pickle.loads(data), spider=self._crawler.spider))  # noqa: S301  # as Scrapy does
            except Exception as exc:  # what pickling finds changed since then raises anything
                self._failed(exc)
        return requests

    async def close(self) -> None:
        """Remove the file, and end the thread."""
        try:
            await compat.in_thread(self._thread, self._end)
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

    # From here on everything runs in the thread.

    def _with_file(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        if self._connection is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # The thread is one; it is not always the one that Python thinks it is when it ends.
            db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            db.execute("PRAGMA journal_mode = WAL")
            # A killed process loses nothing; a machine that loses its power may, as with Scrapy's own files.
            db.execute("PRAGMA synchronous = OFF")
            db.execute(_SCHEMA)
            self._connection = db
        return work(self._connection)

    def _take_all(self) -> list[tuple[bytes]]:
        if not self._path.exists():
            return []
        try:
            rows = self._with_file(
                lambda db: db.execute("SELECT request FROM requests ORDER BY key").fetchall()
            )
            self._with_file(lambda db: db.execute("DELETE FROM requests"))
        except sqlite3.Error as exc:
            self._failed(exc)
            self._close_file()
            with suppress(OSError):
                self._path.replace(f"{self._path}.damaged")
            return []
        return rows

    def _end(self) -> None:
        self._close_file()
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                Path(f"{self._path}{suffix}").unlink()

    def _close_file(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
