"""`Writer`: a thread that writes evidence, so that the crawl never waits for a disk.

`put` appends to a queue. The thread empties it every half a second and flushes what it has written as
complete gzip members, so that a killed process leaves files that can be read, and loses at most what is
younger than a second. The queue is bounded by the memory that its records take. `is_behind` is true before it
is full. If the disk is too slow for the crawl, records that find no room are lost and counted. After the first error nothing more is written.
"""

from __future__ import annotations

import gzip
import os
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import BinaryIO

from scrapy_norobots.features.evidence import answers
from scrapy_norobots.features.evidence.decisions import SIZE, DecisionLines, Made
from scrapy_norobots.features.evidence.fields import DECISIONS_SUFFIX, RUN, WARC_SUFFIX

# How often the queue is emptied, in seconds.
_PAUSE = 0.5

# A file of more bytes is not written to any more; the next one is begun.
FILE_MAX = 10**9

# How many bytes the records that wait may take.
QUEUE_MAX = 64 * 1024 * 1024

# Lines of so many bytes are compressed together, if a flush brings that many.
_MEMBER = 256 * 1024


class Writer:
    """Writes the evidence of one crawl, a *run*, into a folder.

    `about` is what the `warcinfo` records say. `answers` and `decisions` count the records that are written,
    `lost` those that are not; `error` is what ended the writing, if anything has. `taken` grows while it writes.
    """

    def __init__(
        self,
        folder: Path,
        run: str,
        about: Mapping[str, str],
        *,
        dry_run: bool = False,
        file_max: int = FILE_MAX,
        queue_max: int = QUEUE_MAX,
    ) -> None:
        """Open the files and start the thread; raise `OSError` if that cannot be done."""
        self.answers = self.decisions = 0
        self.error: Exception | None = None
        self._queue: deque[answers.AnswerRecord | Made] = deque()
        self._queue_max = queue_max
        # How many bytes were put in and taken out: each is changed by one thread only.
        self._put = self.taken = 0
        self._refused = self._unwritten = 0
        self._make_line = DecisionLines(dry_run=dry_run).line
        self._lines: list[bytes] = []
        folder.mkdir(parents=True, exist_ok=True)
        self._warc = _File(folder, run, WARC_SUFFIX, file_max, about)
        self._json = _File(folder, self._warc.run, DECISIONS_SUFFIX, file_max)
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="norobots-evidence", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        """How many records were not written."""
        return self._refused + self._unwritten

    @property
    def is_behind(self) -> bool:
        """Whether so much waits to be written that nothing avoidable should be added.

        The rest of the queue is for downloads that are running, and for decisions.
        """
        return self._put - self.taken > self._queue_max // 4

    def put(self, record: answers.AnswerRecord | Made) -> None:
        """Have a record written; it is lost if there is no room in the queue. Called by one thread only."""
        size = _size_of(record)
        if self._put - self.taken + size > self._queue_max and self._queue:
            self._refused += 1
            return
        self._put += size
        self._queue.append(record)

    def stop(self) -> None:
        """Have the thread write what is in the queue, close the files and end."""
        self._is_closing.set()

    @property
    def has_ended(self) -> bool:
        """Whether the thread has ended."""
        return not self._thread.is_alive()

    def _work(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._is_closing.wait(_PAUSE)
            try:
                self._empty_queue()
                if is_last:
                    self._warc.close()
                    self._json.close()
            except Exception as exc:  # a full disk; and a bug must not pass in silence either
                self._fail(exc)

    def _empty_queue(self) -> None:
        size = 0
        while self._queue:
            record = self._queue.popleft()
            self.taken += _size_of(record)
            if self.error is not None:
                self._unwritten += 1
            elif isinstance(record, Made):
                self._lines.append(self._make_line(record))
                size += len(self._lines[-1])
                if size >= _MEMBER:
                    self._write_lines()
                    size = 0
            else:
                self._write_answer(record)
        self._write_lines()

    def _write_answer(self, record: answers.AnswerRecord) -> None:
        try:
            record.write(answers.writer_of(self._warc.file()))
            self._warc.flush()
        except Exception:
            self._unwritten += 1
            raise
        self.answers += 1

    def _write_lines(self) -> None:
        """Write lines as a gzip member of their own."""
        if not self._lines:
            return
        self._json.file().write(gzip.compress(b"".join(self._lines), 6))
        self._json.flush()
        self.decisions += len(self._lines)
        self._lines.clear()

    def _fail(self, exc: Exception) -> None:
        self.error = self.error or exc
        self._unwritten += len(self._lines)
        self._lines.clear()
        self._warc.abandon()
        self._json.abandon()
        self._empty_queue()


def _size_of(record: answers.AnswerRecord | Made) -> int:
    """Return about how much memory a record takes until it is written, in bytes."""
    if isinstance(record, Made):
        return SIZE
    if isinstance(record, answers.Answer):
        body, judged = record.response.body, record.judged or b""
        return 2_000 + len(body) + (0 if judged is body else len(judged))
    return 2_000 + len(record.snapshot.body)


class _File:
    """A file of a run and those that follow it, numbered, each of about `file_max` bytes.

    With `about`, they are WARC files. `run` is the run's name, which the first of them has made sure that no
    other run has.
    """

    def __init__(
        self, folder: Path, run: str, suffix: str, file_max: int, about: Mapping[str, str] | None = None
    ) -> None:
        self._folder = folder
        self._suffix = suffix
        self._file_max = file_max
        self._about = about
        self._number = 0
        self.run = run
        for number in count(2):
            try:
                self._begin()
            except FileExistsError:
                self._number, self.run = 0, f"{run}-{number}"
            else:
                break

    def file(self) -> BinaryIO:
        """Return the file to write to; begin the next one if it is full."""
        if self._complete >= self._file_max:
            self._file.close()
            self._begin()
        return self._file

    def flush(self) -> None:
        """Hand what has been written to the system; it is complete then."""
        self._file.flush()
        self._complete = self._file.tell()

    def close(self) -> None:
        """Close it."""
        self._file.close()

    def abandon(self) -> None:
        """Close it after an error, without what was written in part."""
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            os.truncate(self._path, self._complete)

    def _begin(self) -> None:
        self._number += 1
        path = self._folder / f"{self.run}-{self._number:05}{self._suffix}"
        self._file = path.open("xb")
        self._path = path  # not before: a file that exists is not ours, and must not be truncated
        self._complete = 0
        if self._about is not None:
            answers.begin(self._file, self._path.name, {**self._about, RUN: self.run})
        self.flush()
