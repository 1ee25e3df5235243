"""`Audit`: checks that evidence is whole, and makes every decision of a crawl again.

The lines of a run are read once, in their order, each in bounded memory. A record line leads to the next
record of the WARC file, a decision is made again by the answers before it, and a seal must have the digest of
the file so far. Each line must be, byte by byte, the one that this leads to. Whoever changes evidence can
compute all digests anew, unless the head of the run was kept elsewhere.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from scrapy_norobots.features.evidence import fields
from scrapy_norobots.features.evidence.answers import DamagedError, read_record
from scrapy_norobots.features.evidence.judging import Judging, MismatchError, Readings, UnjudgedError

# More bytes than the largest robots.txt has, if the settings do not say otherwise (NOROBOTS_MAXSIZE).
_BODY_MAX = 2 * 1024 * 1024

# How many bytes are read at a time to compute a digest.
_CHUNK = 64 * 1024

_decoded = json.JSONDecoder().raw_decode

# How many characters of a mistyped head may be wrong: of a head of another run, about 60 are.
_SLIPS = 8


class Problem(NamedTuple):
    """What does not agree, or, if not `is_readable`, what cannot be read; `place` is a file and a line."""

    place: str
    text: str
    is_readable: bool = True


class Audit:
    """Audits evidence files.

    `answers`, `verdicts`, `not_judged` and `cut_off` (files) count what has been read; `dry_run` counts the
    requests that a dry run has sent although they were not allowed. `has_allowed` is false if a crawl did not
    store its decisions to allow a request.
    """

    def __init__(
        self,
        files: Iterable[Path],
        readings: Readings,
        on_read: Callable[[int], object] = lambda _: None,
        *,
        heads: Collection[str] = (),
        body_max: int = _BODY_MAX,
    ) -> None:
        """`heads` are heads of runs that were kept elsewhere; `on_read` gets how many bytes were read."""
        self._files = sorted(files)
        self.readings = readings
        self.on_read = on_read
        self._heads = heads
        self.body_max = body_max
        self.answers = self.not_judged = self.cut_off = self.dry_run = 0
        self.has_allowed = True
        self.verdicts: Counter[str] = Counter()

    def problems(self) -> Iterator[Problem]:
        """Read all files, and yield what is wrong."""
        heads: dict[str, str] = {}  # the runs by their heads
        by_name: dict[str, Path] = {}
        for path in self._files:
            if by_name.setdefault(path.name, path) != path:
                text = "there are two files of this name; audit their folders apart"
                yield Problem(path.name, text, is_readable=False)
        suffixes = fields.DECISIONS_SUFFIX, fields.WARC_SUFFIX
        for run in sorted({name.removesuffix(suffixes[0]).removesuffix(suffixes[1]) for name in by_name}):
            decisions, warc = (by_name.get(run + suffix) for suffix in suffixes)
            if decisions is None or warc is None:
                yield Problem(run + suffixes[warc is None], "is missing", is_readable=False)
                continue
            try:
                with decisions.open("rb") as file, decisions.open("rb") as again, warc.open("rb") as answers:
                    lines = _Lines(file, again, self.on_read)
                    yield from _Run(self, run, lines, answers).problems()
                    heads[lines.digest()] = run
            except OSError as exc:
                yield Problem(run, f"cannot be read: {exc}", is_readable=False)
        for head in self._heads:
            if head not in heads:
                yield Problem(f"head {head}", _about_head(head, heads))


def _about_head(head: str, heads: Mapping[str, str]) -> str:
    """Return in words what is known about a head that no run has."""
    for other, run in heads.items():
        if sum(map(str.__ne__, head, other)) <= _SLIPS:
            return f"is mistyped: the head of {run} is {other}"
    return "is not the head of a run here: it is mistyped, of another crawl, or the evidence was changed"


class _Lines:
    """The lines of a decisions file, in bounded memory. `is_cut_off` says whether it ends inside a member."""

    def __init__(self, file: BinaryIO, again: BinaryIO, on_read: Callable[[int], object]) -> None:
        """`again` is the file once more, to compute its digest up to the place that a seal names."""
        self.name = Path(file.name).name
        self._file = file
        self._again = again
        self._on_read = on_read
        self._hash = sha256()
        self.is_cut_off = False

    def __iter__(self) -> Iterator[bytes]:
        """Yield the lines with their line feeds; raise `DamagedError` for what is not a line."""
        unpacked = gzip.GzipFile(mode="rb", fileobj=self)  # type: ignore[call-overload]  # it is only read
        try:
            while line := unpacked.readline(fields.LINE_MAX):
                if not line.endswith(b"\n"):
                    raise DamagedError(
                        f"has a line without an end, or of more than {fields.LINE_MAX:,} bytes"
                    )
                yield line
        except EOFError:
            self.is_cut_off = True
        except (OSError, zlib.error) as exc:
            raise DamagedError(f"is damaged near byte {self._file.tell():,} ({exc})") from exc

    def read(self, size: int, /) -> bytes:
        """Read bytes of the file as it is, for `gzip`."""
        data = self._file.read(size)
        self._on_read(len(data))
        return data

    def digest(self, size: int | None = None) -> str:
        """Return the SHA-256 of the first bytes of the file, of more at each call, or of the whole file."""
        end = os.fstat(self._again.fileno()).st_size if size is None else size
        while chunk := self._again.read(max(0, min(_CHUNK, end - self._again.tell()))):
            self._hash.update(chunk)
        return self._hash.hexdigest()


class _Run:
    """The audit of one run."""

    def __init__(self, audit: Audit, name: str, lines: _Lines, warc: BinaryIO) -> None:
        self._audit = audit
        self._name = name
        self._lines = lines
        self._warc = warc
        self._judging: Judging | None = None
        self._answers = self._lost = 0
        self._verdicts: Counter[str] = Counter()
        self._is_closed = False

    def problems(self) -> Iterator[Problem]:
        """Read the files of the run, and yield what is wrong."""
        try:
            for number, line in enumerate(self._lines, 1):
                yield from self._read_line(line, f"{self._lines.name}: line {number}")
            yield from self._ending()
        except DamagedError as exc:
            yield Problem(self._lines.name, str(exc), is_readable=False)
        finally:
            self._audit.answers += self._answers
            self._audit.verdicts += self._verdicts
            self._audit.cut_off += self._lines.is_cut_off
            if self._judging is not None:
                self._audit.not_judged += self._judging.not_judged
                self._judging.close()

    def _ending(self) -> Iterator[Problem]:
        """Yield what is wrong with the end of the run."""
        rest = os.fstat(self._warc.fileno()).st_size - self._warc.tell()
        unknown = f"{rest:,} bytes of {Path(self._warc.name).name} are after its last record that has a line"
        if not self._is_closed:
            text = f"ended without a closing line (killed?); its head is {self._lines.digest()}"
            yield Problem(self._name, f"{text}; {unknown}" if rest else text)
        elif rest or self._lines.is_cut_off:
            yield Problem(self._name, unknown if rest else "is cut off after its closing line")
        if self._lost:
            text = f"{self._lost:,} records were lost, because the disk was too slow"
            yield Problem(f"{self._name}: closing line", text)

    def _read_line(self, line: bytes, place: str) -> Iterator[Problem]:
        about = ""
        try:
            facts, _ = _decoded(line.decode())  # what may follow is in no line that is made again
            if self._is_closed:
                yield Problem(place, "follows the closing line")
            if "record" in facts:
                yield from (Problem(place, text) for text in self._record(line, facts))
            elif "bytes" in facts:
                self._seal(line, facts)
            else:
                about = f"{facts['url']}: "
                self._decision(line, facts)
        except MismatchError as exc:
            yield Problem(place, f"{about}{exc}", not isinstance(exc, UnjudgedError))
        except (LookupError, ValueError, TypeError, AttributeError, RecursionError, OverflowError) as exc:
            text = f"{place.removeprefix(self._lines.name + ': ')}: not a line of evidence"
            raise DamagedError(f"{text} ({type(exc).__name__}: {exc}); the rest was not read") from exc

    def _decision(self, line: bytes, facts: Mapping[str, Any]) -> None:
        verdict = facts["verdict"]
        if verdict not in fields.VERDICTS:
            raise ValueError(f"verdict is {verdict!r}")
        self._verdicts[verdict] += 1
        self._audit.dry_run += facts.get("dry_run") is True
        if self._judging is None:
            raise LookupError("the first line must be that of the crawl's settings")
        self._judging.check(line, facts)

    def _record(self, line: bytes, facts: Mapping[str, Any]) -> Iterator[str]:
        """Read the next record of the WARC file, and yield what is wrong with it."""
        place, length = f"{Path(self._warc.name).name}: byte {self._warc.tell():,}", facts["length"]
        # What cannot be compressed becomes a little larger.
        if type(length) is not int or not 0 < length <= 2 * (self._audit.body_max + fields.HEADERS_MAX):
            raise ValueError(f"length is {length!r}; if that is right, set NOROBOTS_MAXSIZE as in the crawl")
        member = self._warc.read(length)
        self._audit.on_read(len(member))
        changed = f"{place}: the record was changed or removed, or this line was changed"
        try:
            stored = read_record(member, self._audit.body_max)
        except DamagedError as exc:
            yield f"{changed}: {exc}"
            return
        if fields.record_line(stored.fields["WARC-Record-ID"], member) != line:
            yield changed
        self._answers += fields.ORIGIN in stored.fields
        if self._judging is None:
            yield from self._begin(stored.about.get(fields.SETTINGS, ""), stored.fields.get("WARC-Filename"))
        elif fields.ORIGIN in stored.fields:
            self._judging.add(stored)

    def _begin(self, text: str, name: str | None) -> Iterator[str]:
        """Read the settings of the crawl."""
        try:
            settings = fields.Settings.of(text)
            self._judging = Judging(settings, self._audit.readings)
        except (AttributeError, LookupError, TypeError, ValueError) as exc:
            raise DamagedError(f"its WARC file does not state the crawl's settings ({exc})") from exc
        self._audit.has_allowed &= settings.allowed
        if name != Path(self._warc.name).name:
            yield f"the WARC file was renamed: its name was {name!r}"

    def _seal(self, line: bytes, facts: Mapping[str, Any]) -> None:
        """Check a seal, or the closing line, which has the numbers of the run too."""
        size, lost = facts["bytes"], facts.get("lost", 0)
        if type(size) is not int or type(lost) is not int or lost < 0:
            raise ValueError(f"bytes is {size!r}, and lost is {lost!r}")
        again = fields.seal_line(size, self._lines.digest(size))
        if "closes" in facts:
            self._is_closed, self._lost = True, lost
            time = fields.date_of(fields.time_of(facts["time"]))
            again = fields.closing_line(self._name, time, self._verdicts, self._answers, lost, again)
        if again != line:
            raise MismatchError(f"is not the line that follows from what was read: {again.decode().strip()}")
