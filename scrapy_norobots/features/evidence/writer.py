"""`Writer`: a thread that writes evidence, so that the crawl never waits for a disk.

`put` appends to a queue. The thread empties it every half a second and flushes what it has written as
complete gzip members, so that a killed process leaves files that can be read, and loses at most what is
younger than a second. The queue is bounded by the memory that its records take. `is_behind` is true before
it is full. If the disk is too slow for the crawl, records that find no room are lost and counted. After the
first error nothing more is written. A run that was written to its end has a closing line.
"""

from __future__ import annotations

import gzip
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from itertools import count
from pathlib import Path

from scrapy_norobots.features.evidence import answers
from scrapy_norobots.features.evidence.chain import CLOSES, OPENS, Chain
from scrapy_norobots.features.evidence.decisions import DecisionLines, Made
from scrapy_norobots.features.evidence.fields import (
    ANSWERS_BEFORE,
    DECISIONS_SUFFIX,
    PREVIOUS_FILE,
    RUN,
    WARC_SUFFIX,
    date_of,
)
from scrapy_norobots.features.evidence.parts import Out, Part, Parts

# How often the queue is emptied, in seconds.
_PAUSE = 0.5

# A file of more bytes is not written to any more; the next one is begun.
FILE_MAX = 10**9

# How many bytes the records that wait may take; and about how many a decision takes without its URLs, or an
# answer without its body.
QUEUE_MAX = 64 * 1024 * 1024
DECISION_SIZE = 500
_ANSWER_SIZE = 2_000

# Lines of so many bytes are compressed together, if a flush brings that many. The digests in them cannot be
# compressed at all, so a higher level only takes longer.
_MEMBER = 256 * 1024
_LEVEL = 1


class Writer:
    """Writes the evidence of one crawl, a *run*, into a folder.

    `about` is what the `warcinfo` records say. `answers` and `decisions` count the records that are written,
    `lost` those that are not. `head` is the digest of the last line that is written. `error` is what ended
    the writing, if anything has. `taken` grows while it writes.
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
        self._objects = DecisionLines(dry_run=dry_run)
        self._lines: list[bytes] = []
        self._chain = Chain()
        self._about = about
        folder.mkdir(parents=True, exist_ok=True)
        for number in count(1):
            self._run = run if number == 1 else f"{run}-{number}"
            try:
                self._warc = Parts(folder, self._run, WARC_SUFFIX, file_max, self._begin_answers)
            except FileExistsError:
                continue
            break
        self._json = Parts(folder, self._run, DECISIONS_SUFFIX, file_max, self._begin_decisions)
        self.head = self._chain.head
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="norobots-evidence", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        """How many records were not written. After an error, and after the end, none that waits will be."""
        has_stopped = self.error is not None or self.has_ended
        return self._refused + self._unwritten + (len(self._queue) if has_stopped else 0)

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

    def end(self, longest: float) -> None:
        """Do the same, and wait until it has ended, but at most some seconds."""
        self.stop()
        if threading.current_thread() is not self._thread:  # garbage is collected in any thread
            self._thread.join(longest)

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
                if is_last and self.error is None:
                    self._close()
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
                self._lines.append(self._objects.line(record))
                size += len(self._lines[-1])
                if size >= _MEMBER:
                    self._write_lines()
                    size = 0
            else:
                self._write_answer(record)
        self._write_lines()

    def _begin_answers(self, file: Out, closed: list[Part]) -> None:
        more = {RUN: self._run}
        if closed:
            last = closed[-1]
            more |= {ANSWERS_BEFORE: str(self.answers), PREVIOUS_FILE: f"{last.name} sha256:{last.digest}"}
        answers.begin(file, file.path.name, {**self._about, **more})

    def _begin_decisions(self, file: Out, _: list[Part]) -> None:
        file.write(gzip.compress(self._chain.other({OPENS: file.path.name}), _LEVEL))

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
        file = self._json.file()  # a new one begins with a line of its own
        file.write(gzip.compress(b"".join(map(self._chain.decision, self._lines)), _LEVEL))
        self._json.flush()
        self.decisions += len(self._lines)
        self.head = self._chain.head
        self._lines.clear()

    def _close(self) -> None:
        """Write the closing line, and close the files."""
        self._warc.close()
        closing = {
            CLOSES: self._run,
            "time": date_of(time.time()),
            "decisions": self._objects.verdicts,
            "answers": self.answers,
            "lost": self.lost,
            "files": {
                name: {"size": size, "sha256": digest}
                for name, size, digest in (*self._warc.closed, *self._json.closed)
            },
        }
        self._json.last().write(gzip.compress(self._chain.other(closing), _LEVEL))
        self._json.close()
        self.head = self._chain.head

    def _fail(self, exc: Exception) -> None:
        self.error = self.error or exc
        self._unwritten += len(self._lines)
        self._lines.clear()
        self._warc.abandon()
        self._json.abandon()
        if isinstance(exc, FileNotFoundError):  # what was written is gone
            self._unwritten += self.answers + self.decisions
            self.answers = self.decisions = 0
        self._empty_queue()


def _size_of(record: answers.AnswerRecord | Made) -> int:
    """Return about how much memory a record takes until it is written, in bytes."""
    if isinstance(record, Made):
        size = DECISION_SIZE + sys.getsizeof(record.url)
        return size if record.requested is record.url else size + sys.getsizeof(record.requested)
    if isinstance(record, answers.Answer):
        response, judged = record.response, record.judged or b""
        size = _ANSWER_SIZE + 2 * len(response.url) + len(response.body)
        return size if judged is response.body else size + len(judged)
    return _ANSWER_SIZE + 2 * len(record.snapshot.url) + len(record.snapshot.body)
