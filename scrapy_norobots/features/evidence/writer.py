"""`Writer`: a thread that writes evidence, so that no request waits for a disk.

`put` appends to a queue. The thread empties it every half a second and writes complete gzip members, so that
a killed process leaves files that can be read, and loses only what is younger than a second, unless the disk
is too slow. A record of the WARC file comes before its line, and its line before the decisions that depend on
it. Records that find no room in the queue are lost and counted. The first error ends the thread.
"""

from __future__ import annotations

import errno
import gzip
import os
import sys
import threading
from collections import deque
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from io import FileIO
from pathlib import Path

from scrapy_norobots.features.evidence import answers, fields

# How often the queue is emptied, in seconds.
_PAUSE = 0.5


class _File(FileIO):
    """A file that is being written. If a write fails, `complete` bytes stay."""

    complete = 0

    def append(self, data: bytes) -> None:
        """Write bytes; raise `FileNotFoundError` if the file is not in its folder any more."""
        while data:  # a disk that gets full takes a part first
            data = data[self.write(data) :]
        if not os.fstat(self.fileno()).st_nlink:
            raise FileNotFoundError(errno.ENOENT, "the file was removed", str(self.name))
        self.complete = self.tell()


class Writer:
    """Writes the evidence of one crawl, a *run*, into a folder.

    `answers` and `decisions` count the records that are written, and `lost` those that are not. `head` is the
    head of what is written. `error` is what ended the writing, if anything has.
    """

    def __init__(
        self, folder: Path, run: str, settings: fields.Settings, queue_max: int = 64 * 1024 * 1024
    ) -> None:
        """Open the files and start the thread; records that wait may take `queue_max` bytes."""
        self.error: Exception | None = None
        self._queue: deque[fields.Answer | fields.Made] = deque()
        self._queue_max = queue_max
        # How many bytes were put in and taken out: each is changed by one thread only.
        self._put = self._taken = 0
        self._refused = self._offered = 0
        # What is written next: records, and lines.
        self._members: list[bytes] = []
        self._lines = [fields.line_of({"opens": run, "settings": asdict(settings)})]
        # Of the file of lines as it is, and of the lines.
        self._digest, self._digest_of_lines = sha256(), sha256()
        folder = folder.absolute()  # the crawl may change the working directory
        folder.mkdir(parents=True, exist_ok=True)
        self._run = run
        # A file that is there is not ours, and must not be changed.
        self._json = _File(folder / (run + fields.DECISIONS_SUFFIX), "x")
        self._warc = _File(folder / (run + fields.WARC_SUFFIX), "x")
        self.answers = self.decisions = 0
        self._flush()
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="norobots-evidence", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        """How many records were not written. After an error, and after the end, none that waits will be."""
        if self.error is None and not self.has_ended:
            return self._refused
        return self._offered - self.answers - self.decisions

    def put(self, record: fields.Answer | fields.Made) -> None:
        """Have a record written; it is lost if there is no room in the queue. Called by one thread only."""
        size = _size_of(record)
        self._offered += 1
        is_full = self._queue and self._put - self._taken + size > self._queue_max
        if is_full or self.error is not None:
            self._refused += 1
        else:
            self._put += size
            self._queue.append(record)

    def end(self, longest: float) -> None:
        """Have the thread write what is in the queue and close the files; wait for that some seconds."""
        self._is_closing.set()
        if threading.current_thread() is not self._thread:  # garbage is collected in any thread
            self._thread.join(longest)

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def _work(self) -> None:
        try:
            while not self._is_closing.wait(_PAUSE):
                self._empty_queue()
            self._empty_queue()
            digest = self._digest_of_lines.hexdigest()
            self._lines.append(fields.closing_line(self._run, self._refused, digest))
            self._flush()
            self._warc.close()
            self._json.close()
        except Exception as exc:  # a full disk; and a bug must not pass in silence either
            self.error = exc
            self._queue.clear()
            for file in (self._warc, self._json):
                with suppress(OSError, ValueError), file:  # a ValueError if it is closed, and thus whole
                    file.truncate(file.complete)
            if isinstance(exc, FileNotFoundError):  # what was written is gone
                self.answers = self.decisions = 0

    def _empty_queue(self) -> None:
        while self._queue:
            record = self._queue.popleft()
            self._taken += _size_of(record)
            if isinstance(record, fields.Made):
                self._lines.append(fields.decision_line(record))
            else:
                self._members.append(answers.packed(record))
                self._lines.append(fields.record_line(self._members[-1]))
        self._flush()

    def _flush(self) -> None:
        """Write the records, and then the lines, as a gzip member of their own."""
        if self.error is not None:  # the crawl has not waited, and has logged the head
            raise self.error
        if not self._lines:
            return
        self._warc.append(b"".join(self._members))
        lines = b"".join(self._lines)
        member = gzip.compress(lines, 1)  # a higher level takes longer, and saves little
        self._json.append(member)
        self._digest.update(member)
        self._digest_of_lines.update(lines)
        self.head = self._digest.hexdigest()
        self.answers += len(self._members)
        self.decisions += sum(line.startswith(b'{"time"') for line in self._lines)
        self._members.clear()
        self._lines.clear()


def _size_of(record: fields.Answer | fields.Made) -> int:
    """Return about how much memory a record takes until it is written, in bytes."""
    if isinstance(record, fields.Made):
        return 500 + sys.getsizeof(record.url) + sys.getsizeof(record.requested)
    response = record.response
    return 2_000 + 2 * len(response.url) + len(response.body) + len(record.judged or b"")
