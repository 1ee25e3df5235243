"""`Audit`: checks that evidence is whole, and makes every decision of a crawl again.

The lines of a run are read once, in their order, each in bounded memory. A record line leads to the next
record of the WARC file, and a decision is made again by the answers before it: it names one by its origin and
time. The file of this answer, read by the parsers of the crawl, or its status, judged by the policy of the
crawl, must lead to the same line, byte by byte. So each key of a decision is checked except `time`, if it is
not before that of the answer, `robot` and `requested`. Overridden requests cannot be judged, nor can texts
that are cut. Whoever changes evidence can compute all digests anew, unless the head of the run was kept
elsewhere.
"""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias

from scrapy_norobots.features.evidence import fields
from scrapy_norobots.features.evidence.answers import DamagedError, Stored, read_record
from scrapy_norobots.features.evidence.fields import Made, Settings, decision_line
from scrapy_norobots.load.loader import OriginCache
from scrapy_norobots.rules.access import Access, Judge, StatusPolicy, forbidden, knows_aiohttp, spellings_of
from scrapy_norobots.rules.parser import Rules
from scrapy_norobots.rules.snapshot import Freshness, Snapshot
from scrapy_norobots.standard import Decision, Origin, Reason, Verdict
from scrapy_norobots.standard.urls import split

# More bytes than the largest robots.txt has, if the settings do not say otherwise (NOROBOTS_MAXSIZE).
_BODY_MAX = 2 * 1024 * 1024

# How much memory parsed files may take, and how many bytes are read at a time.
_PARSED_MAX = 64 * 1024 * 1024
_CHUNK = 64 * 1024

_NO_TIMES = Freshness(0, 0, 0, 0)  # freshness is not checked

# The answers of a run are in a temporary file, however many there are.
_SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE answers (
    origin TEXT, date TEXT, status TEXT, digest TEXT, PRIMARY KEY (origin, date)
) WITHOUT ROWID;
CREATE TABLE bodies (digest TEXT PRIMARY KEY, body BLOB);
"""
_FIND = (
    "SELECT status, body FROM answers LEFT JOIN bodies USING (digest) "
    "WHERE origin = ? AND date = ? AND (answers.digest IS NULL OR body IS NOT NULL)"
)

# Returns what reads files as the parsers of a crawl do. Raises `LookupError` if a parser is unknown or cannot
# be used.
Readings: TypeAlias = Callable[[Settings], Callable[[bytes], Rules]]


class MismatchError(Exception):
    """A decision is not what the evidence supports."""


class Problem(NamedTuple):
    """What does not agree, or, if not `is_readable`, what cannot be read; `place` is a file and a line."""

    place: str
    text: str
    is_readable: bool = True


class Audit:
    """Audits evidence files.

    `answers`, `verdicts` and `not_judged` count what has been read; `dry_run` counts the requests that a dry
    run has sent although they were not allowed. `has_allowed` is false if a crawl did not store its decisions
    to allow a request.
    """

    def __init__(
        self,
        files: Iterable[Path],
        readings: Readings,
        on_read: Callable[[int], object] = bool,
        *,
        heads: Collection[str] = (),
        body_max: int = _BODY_MAX,
    ) -> None:
        """`on_read` is called with numbers of bytes read; `heads` are heads of runs kept elsewhere."""
        self._files = files
        self.readings = readings
        self.on_read = on_read
        self._heads = heads
        self.body_max = body_max
        self.answers = self.not_judged = self.dry_run = 0
        self.has_allowed = True
        self.verdicts: Counter[str] = Counter()

    def problems(self) -> Iterator[Problem]:
        """Read all files, and yield what is wrong."""
        found = set()
        suffixes = fields.DECISIONS_SUFFIX, fields.WARC_SUFFIX
        for run in sorted(
            {str(one).removesuffix(suffixes[0]).removesuffix(suffixes[1]) for one in self._files}
        ):
            decisions, warc = paths = [Path(run + suffix) for suffix in suffixes]
            if missing := [path.name for path in paths if not path.is_file()]:
                yield from (Problem(name, "is missing, or not a file", is_readable=False) for name in missing)
                continue
            try:
                with decisions.open("rb") as file, warc.open("rb") as answers:
                    lines = _Lines(file, self.on_read)
                    yield from _Run(self, Path(run).name, lines, answers).problems()
                    found.add(lines.head())
            except OSError as exc:
                yield Problem(run, f"cannot be read: {exc}", is_readable=False)
        for head in self._heads:
            if head not in found:
                text = "it is mistyped, of another crawl, or the evidence was changed"
                yield Problem(f"head {head}", f"is not the head of a run here: {text}")


class _Lines:
    """The lines of a decisions file, in bounded memory. `is_cut_off` says whether it ends inside a member."""

    def __init__(self, file: BinaryIO, on_read: Callable[[int], object]) -> None:
        self.name = Path(file.name).name
        self._file = file
        self._on_read = on_read
        self._head = sha256()
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
        self._head.update(data)
        self._on_read(len(data))
        return data

    def head(self) -> str:
        """Return the SHA-256 of the whole file, read to its end."""
        while self.read(_CHUNK):
            pass
        return self._head.hexdigest()


class _Run:
    """The audit of one run."""

    def __init__(self, audit: Audit, name: str, lines: _Lines, warc: BinaryIO) -> None:
        self._audit = audit
        self._name = name
        self._lines = lines
        self._digest = sha256()  # of the lines so far
        self._warc = warc
        self._judging: Judging | None = None
        self._is_closed = False

    def problems(self) -> Iterator[Problem]:
        """Read the files of the run, and yield what is wrong."""
        try:
            for number, line in enumerate(self._lines, 1):
                yield from self._read_line(line, f"{self._lines.name}: line {number}")
                self._digest.update(line)
            yield from self._ending()
        except DamagedError as exc:
            yield Problem(self._lines.name, str(exc), is_readable=False)
        finally:
            if self._judging is not None:
                self._judging.close()

    def _ending(self) -> Iterator[Problem]:
        """Yield what is wrong with the end of the run."""
        if not self._is_closed:
            text = f"ended without a closing line (killed?); its head is {self._lines.head()}"
            yield Problem(self._name, text)
        elif self._lines.is_cut_off:
            yield Problem(self._name, "is cut off after its closing line")
        if rest := os.fstat(self._warc.fileno()).st_size - self._warc.tell():
            text = f"{rest:,} bytes are after its last record that has a line"
            yield Problem(Path(self._warc.name).name, text)

    def _read_line(self, line: bytes, place: str) -> Iterator[Problem]:
        about = ""
        try:
            facts = json.loads(line)
            if self._is_closed:
                yield Problem(place, "follows the closing line")
            if "record" in facts:
                yield from (Problem(place, text) for text in self._record(line, facts))
            elif "closes" in facts:
                yield from (Problem(place, text) for text in self._close(line, facts))
            else:
                about = f"{facts['url']}: "
                self._decision(line, facts)
        except MismatchError as exc:
            yield Problem(place, f"{about}{exc}")
        except (LookupError, ValueError, TypeError, AttributeError, RecursionError, OverflowError) as exc:
            text = f"{place.removeprefix(self._lines.name + ': ')}: not a line of evidence"
            raise DamagedError(f"{text} ({type(exc).__name__}: {exc}); the rest was not read") from exc

    def _decision(self, line: bytes, facts: Mapping[str, Any]) -> None:
        verdict = facts["verdict"]
        if verdict not in fields.VERDICTS:
            raise ValueError(f"verdict is {verdict!r}")
        self._audit.verdicts[verdict] += 1
        if self._judging is None:
            raise LookupError("the first line must be that of the crawl's settings")
        self._audit.dry_run += self._judging.settings.dry_run and verdict in ("forbidden", fields.UNREACHABLE)
        self._audit.not_judged += self._judging.check(line, facts)

    def _record(self, line: bytes, facts: Mapping[str, Any]) -> Iterator[str]:
        """Read the next record of the WARC file, and yield what is wrong with it."""
        place, length = f"{Path(self._warc.name).name}: byte {self._warc.tell():,}", facts["length"]
        # What cannot be compressed becomes a little larger.
        if type(length) is not int or not 0 < length <= 2 * (self._audit.body_max + fields.HEADERS_MAX):
            raise ValueError(f"length is {length!r}; if that is right, set NOROBOTS_MAXSIZE as in the crawl")
        member = self._warc.read(length)
        self._audit.on_read(length)
        if fields.record_line(member) != line:
            yield f"{place}: the record was changed or removed, or this line was changed"
        try:
            stored = read_record(member, self._audit.body_max)
        except DamagedError as exc:
            yield f"{place}: {exc}"
            return
        self._audit.answers += fields.ORIGIN in stored.fields
        if self._judging is None:
            yield from self._begin(stored)
        elif fields.ORIGIN in stored.fields:
            self._judging.add(stored)

    def _begin(self, stored: Stored) -> Iterator[str]:
        """Read the settings of the crawl."""
        try:
            settings = Settings(**json.loads(stored.about.get(fields.SETTINGS, "")))
            policy = StatusPolicy.of(settings.policy)
            versions = dict(settings.versions)
            read = self._audit.readings(settings)
        except (AttributeError, LookupError, TypeError, ValueError) as exc:
            raise DamagedError(f"cannot be judged by the settings in its WARC file: {exc}") from exc
        self._judging = Judging(settings, Judge(policy, _NO_TIMES, read), versions)
        self._audit.has_allowed &= settings.allowed
        name = stored.fields.get("WARC-Filename")
        if name != Path(self._warc.name).name:
            yield f"the WARC file was renamed: its name was {name!r}"

    def _close(self, line: bytes, facts: Mapping[str, Any]) -> Iterator[str]:
        """Check the closing line."""
        self._is_closed, lost = True, int(facts["lost"])
        again = fields.closing_line(self._name, lost, self._digest.hexdigest())
        if again != line:
            yield f"is not the line that follows from what was read: {again.decode().strip()}"
        if lost:
            yield f"{lost:,} records were lost, because the disk was too slow"


class Judging:
    """Judges the decisions of a run by its settings and its answers."""

    def __init__(self, settings: Settings, judge: Judge, versions: Mapping[str, str]) -> None:
        self.settings = settings
        self._judge = judge
        here = fields.VERSIONS
        different = [
            f"{name} {versions.get(name)} in the crawl, {here.get(name)} here"
            for name in {**here, **versions}
            if versions.get(name) != here.get(name)
        ]
        self._versions = f" ({'; '.join(different)})" if different else ""
        self._accesses = OriginCache(memory_max=_PARSED_MAX)
        self._answers = sqlite3.connect("", isolation_level=None)
        self._answers.executescript(_SCHEMA)

    def close(self) -> None:
        """Forget the answers."""
        self._answers.close()

    def add(self, stored: Stored) -> None:
        """Add an answer. What a parser of the crawl has failed on comes again, as an error."""
        digest, status = stored.fields.get(fields.BODY_DIGEST), stored.status
        if stored.body is not None:
            self._answers.execute("INSERT OR IGNORE INTO bodies VALUES (?, ?)", (digest, stored.body))
        # After a file that was not read, such as one that was cut off, an error follows.
        is_unread = digest is None and status is not None and 200 <= status < 300
        if not is_unread and fields.FOLLOWED_BY not in stored.fields:
            origin, date = stored.fields[fields.ORIGIN], stored.fields["WARC-Date"]
            # A 304 renews a file. SQLite has no numbers as large as a status may be.
            number = 200 if stored.fields["WARC-Type"] == "revisit" else status
            row = origin, date, None if number is None else str(number), digest
            self._answers.execute("REPLACE INTO answers VALUES (?, ?, ?, ?)", row)

    def check(self, line: bytes, facts: Mapping[str, Any]) -> bool:
        """Return whether nothing confirms a decision; raise `MismatchError` if it is not what follows.

        Raises `ValueError`, `TypeError` or `KeyError` if the line has no decision.
        """
        if facts["verdict"] == Verdict.ALLOWED.value and not self.settings.allowed:
            raise MismatchError("allowed, but the crawl did not store allowed requests")
        if max(len(facts["url"]), len(facts["robot"])) >= fields.TEXT_MAX:
            return True
        again = decision_line(self._made_again(facts))
        if again != line:
            raise MismatchError(_difference(facts, json.loads(again)) + self._versions)
        return bool(facts["verdict"] == fields.OVERRIDDEN)

    def _made_again(self, facts: Mapping[str, Any]) -> Made:
        url, when, robot = facts["url"], facts["robots_time"], facts["robot"]
        if self.settings.robot is None:  # parsers get the header, in bytes
            robot = robot.encode("utf-8", "surrogateescape")
        made = Made(fields.time_of(facts["time"]), url, robot, facts.get("requested", url))
        if facts["verdict"] == fields.OVERRIDDEN:
            return made
        try:
            origin, target = split(url)
        except ValueError:
            return made._replace(decision=Decision(Verdict.FORBIDDEN, url, "", Reason.BAD_URL))
        if origin is None or target is None:
            return made._replace(exemption=Reason.NOT_WEB)
        if when is None:
            if target != "/robots.txt":
                raise MismatchError(f"{facts['verdict']} ({facts['reason']}), but it needs a robots.txt")
            return made._replace(exemption=Reason.ROBOTS_TXT)
        access = self._accesses.latest(origin)
        if access is None or access.snapshot.time != fields.time_of(when):
            access = self._access(origin, when, facts["verdict"])
        decision = forbidden(access, url, origin, target, robot, self._spellings(target))
        return made._replace(access=access, decision=decision)

    def _access(self, origin: Origin, when: str, verdict: str) -> Access:
        """Return what may be fetched by the answer of an origin and a time."""
        time = fields.time_of(when)
        found = self._answers.execute(_FIND, (fields.uri_of(str(origin)), when)).fetchone()
        if found is None:
            raise MismatchError(f"{verdict}, but no answer for {origin} at {when} is stored")
        status, body = found
        number = None if status is None else int(status)
        snapshot = Snapshot(origin, origin.robots_url, time, number, body=body or b"")
        access = self._judge.judge(snapshot)
        self._accesses.put(origin, access)
        return access

    def _spellings(self, target: str) -> Iterator[str]:
        """Yield the spellings of a target that the crawl checked."""
        yield target
        others = spellings_of(target)[1:]
        if others and self.settings.aiohttp and not knows_aiohttp():
            raise MismatchError("cannot be judged: the crawl checked what aiohttp sends; install aiohttp")
        yield from others if self.settings.aiohttp else others[:3]


def _difference(stated: Mapping[str, Any], judged: Mapping[str, Any]) -> str:
    """Return in words in what a line differs from the one that the evidence leads to."""
    keys = [key for key in {**judged, **stated} if repr(stated.get(key)) != repr(judged.get(key))]
    one, other = (", ".join(f"{key} {facts.get(key)!r}" for key in keys) for facts in (stated, judged))
    return f"recorded with {one}; judged with {other}" if keys else "its keys are in another order"
