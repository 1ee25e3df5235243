"""`Audit`: checks that evidence is whole, and makes every decision of a crawl again.

The lines of a run are read once, in their order, each in bounded memory. A record line leads to the next
record of the WARC file, and a decision is made again by the answers before it: it names one by its origin and
time. This answer, judged as in the crawl, must lead to the same line, byte by byte. So each key of a decision
is checked except `time`, `requested`, and `robot` if it is a header; of `url`, what it leads to. Overridden
requests cannot be judged, nor can decisions whose URL or robot was too long and was cut.
"""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias

from scrapy_norobots.features.evidence import fields
from scrapy_norobots.features.evidence.answers import Stored, read_record
from scrapy_norobots.features.evidence.fields import Made, Settings, decision_line
from scrapy_norobots.question import Question
from scrapy_norobots.rules.access import Access, Judge, OriginCache, StatusPolicy
from scrapy_norobots.rules.parser import Rules
from scrapy_norobots.rules.snapshot import Freshness, Snapshot
from scrapy_norobots.standard import Decision, Origin, Reason, Verdict
from scrapy_norobots.standard.urls import split

# How much memory parsed files may take, in bytes.
_PARSED_MAX = 64 * 1024 * 1024

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

# Returns what reads files as the parsers of a crawl do. Raises `LookupError` if a parser cannot be used.
Readings: TypeAlias = Callable[[Settings], Callable[[bytes], Rules]]


class DamagedError(Exception):
    """A file cannot be read."""


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
    run has sent although they were not allowed. `has_allowed` is false if a crawl did not store what it
    allowed.
    """

    def __init__(
        self,
        files: Iterable[Path],
        readings: Readings,
        on_read: Callable[[str], object] = bool,
        heads: Collection[str] = (),
        body_max: int = 2 * 1024 * 1024,
    ) -> None:
        """`on_read` is called for each line, with how much was read; `heads` were kept elsewhere."""
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
        runs = {str(one).removesuffix(suffixes[0]).removesuffix(suffixes[1]) for one in self._files}
        for run in sorted(runs):
            paths = [Path(run + suffix) for suffix in suffixes]
            if missing := [path.name for path in paths if not path.is_file()]:
                yield from (Problem(name, "is missing, or not a file", is_readable=False) for name in missing)
                continue
            try:
                with paths[0].open("rb") as lines, paths[1].open("rb") as warc:
                    yield from _Run(self, Path(run).name, lines, warc).problems()
                found.add(_head_of(paths[0]))
            except OSError as exc:
                yield Problem(run, f"cannot be read: {exc}", is_readable=False)
            except sqlite3.Error as exc:
                text = f"the temporary database failed ({exc}); SQLITE_TMPDIR can name another folder for it"
                yield Problem(run, f"was not read to its end: {text}", is_readable=False)
        for head in self._heads:
            if head not in found:
                text = "it is mistyped, of another crawl, or the evidence was changed"
                yield Problem(f"head {head}", f"is not the head of a run here: {text}")


class _Run:
    """The audit of one run: its file of lines is read in order, and leads through its WARC file."""

    def __init__(self, audit: Audit, name: str, file: BinaryIO, warc: BinaryIO) -> None:
        self._audit = audit
        self._name = name
        self._file = file
        self._warc = warc
        self._digest = sha256()  # of the lines so far
        self._settings: Settings | None = None
        self._is_closed = False
        self._accesses = OriginCache(memory_max=_PARSED_MAX)
        self._database = sqlite3.connect("", isolation_level=None)

    def problems(self) -> Iterator[Problem]:
        lines, warc = self._name + fields.DECISIONS_SUFFIX, self._name + fields.WARC_SUFFIX
        try:
            with closing(self._database):
                self._database.executescript(_SCHEMA)
                for number, line in enumerate(self._lines(), 1):
                    if problem := self._read_line(line, number):
                        yield Problem(f"{lines}: line {number}", problem)
                    self._digest.update(line)
        except EOFError:
            if self._is_closed:
                yield Problem(self._name, "is cut off after its closing line")
        except DamagedError as exc:
            yield Problem(lines, str(exc), is_readable=False)
            return
        if not self._is_closed:
            head = _head_of(Path(self._file.name))
            yield Problem(self._name, f"ended without a closing line (killed?); its head is {head}")
        if rest := os.fstat(self._warc.fileno()).st_size - self._warc.tell():
            yield Problem(warc, f"{rest:,} bytes are after its last record that has a line")

    def _lines(self) -> Iterator[bytes]:
        """Yield the lines with their line feeds; raise `EOFError` if the file ends inside a member."""
        unpacked = gzip.GzipFile(mode="rb", fileobj=self._file)
        size = os.fstat(self._file.fileno()).st_size
        try:
            while line := unpacked.readline(fields.LINE_MAX):
                if self._is_closed:
                    raise DamagedError("has a line that follows the closing line")
                if not line.endswith(b"\n"):
                    raise DamagedError(f"has a line that does not end within {fields.LINE_MAX:,} bytes")
                self._audit.on_read(f"{self._name}: {self._file.tell() / size:.0%} read")
                yield line
        except (OSError, zlib.error) as exc:
            raise DamagedError(f"is damaged near byte {self._file.tell():,} ({exc})") from exc

    def _read_line(self, line: bytes, number: int) -> str:
        about = ""
        try:
            facts = json.loads(line)
            if "opens" in facts or self._settings is None:
                self._open(facts)
            elif "record" in facts:
                self._record(line, facts)
            elif "closes" in facts:
                self._close(line, facts)
            else:
                about = f"{facts['url']}: "
                self._decision(line, facts, self._settings)
        except MismatchError as exc:
            return f"{about}{exc}"
        except (LookupError, ValueError, TypeError, AttributeError, RecursionError, OverflowError) as exc:
            text = f"line {number}: not a line of evidence ({type(exc).__name__}: {exc})"
            raise DamagedError(f"{text}; the rest was not read") from exc
        return ""

    def _open(self, facts: Mapping[str, Any]) -> None:
        if self._settings is not None or "opens" not in facts:
            raise LookupError("the settings of the crawl must be in the first line, and only there")
        try:
            self._settings = settings = Settings(**facts["settings"])
            # The table of the crawl is complete. This preset has no key that it could lack.
            policy = StatusPolicy.of({"preset": "allow", **settings.policy})
            self._judge = Judge(policy, Freshness(0, 0, 0, 0), self._audit.readings(settings))
            here, there = fields.VERSIONS, settings.versions
            self._versions = "; ".join(
                f"{name} {there.get(name)} in the crawl, {here.get(name)} here"
                for name in {**here, **there}
                if there.get(name) != here.get(name)
            )
        except (AttributeError, LookupError, TypeError, ValueError) as exc:
            raise DamagedError(f"cannot be judged by the settings in its first line: {exc}") from exc
        self._audit.has_allowed &= settings.allowed
        if facts["opens"] != self._name:
            raise MismatchError(f"the run was renamed: its name was {facts['opens']!r}")

    def _record(self, line: bytes, facts: Mapping[str, Any]) -> None:
        place, length = f"byte {self._warc.tell():,} of the WARC file", facts["length"]
        # What cannot be compressed becomes a little larger.
        if type(length) is not int or not 0 < length <= 2 * (self._audit.body_max + fields.HEADERS_MAX):
            raise ValueError(f"length is {length!r}; if that is right, set NOROBOTS_MAXSIZE as in the crawl")
        member = self._warc.read(length)
        is_same = fields.record_line(member) == line
        problem = "" if is_same else "the record was changed or removed, or this line was changed"
        try:
            stored = read_record(member, self._audit.body_max)
        except Exception as exc:  # warcio may raise anything
            problem = problem or f"its record cannot be read: {exc or type(exc).__name__}"
        else:
            self._add(stored)
        if problem:
            raise MismatchError(f"{place}: {problem}")

    def _add(self, stored: Stored) -> None:
        """Add an answer. What a parser of the crawl has failed on comes again, as an error."""
        origin, date = stored.fields[fields.ORIGIN], stored.fields["WARC-Date"]
        digest, status = stored.fields.get(fields.BODY_DIGEST), stored.status
        self._audit.answers += 1
        if stored.body is not None:
            self._database.execute("INSERT OR IGNORE INTO bodies VALUES (?, ?)", (digest, stored.body))
        # After a file that was not read, such as one that was cut off, an error follows.
        is_unread = digest is None and status is not None and 200 <= status < 300
        if not is_unread and stored.fields.get(fields.NOTE) != fields.REDIRECT:
            # A 304 renews a file. SQLite has no numbers as large as a status may be.
            number = 200 if stored.fields["WARC-Type"] == "revisit" else status
            row = origin, date, None if number is None else str(number), digest
            self._database.execute("REPLACE INTO answers VALUES (?, ?, ?, ?)", row)

    def _close(self, line: bytes, facts: Mapping[str, Any]) -> None:
        self._is_closed, lost = True, int(facts["lost"])
        again = fields.closing_line(self._name, lost, self._digest.hexdigest())
        if again != line:
            raise MismatchError(f"is not the line that follows from what was read: {again.decode().strip()}")
        if lost:
            raise MismatchError(f"{lost:,} records were lost, because the disk was too slow")

    def _decision(self, line: bytes, facts: Mapping[str, Any], settings: Settings) -> None:
        """Raise `MismatchError` if a decision is not what follows from the answers before it."""
        audit, verdict = self._audit, facts["verdict"]
        if verdict not in fields.VERDICTS:
            raise ValueError(f"verdict is {verdict!r}")
        audit.verdicts[verdict] += 1
        audit.dry_run += settings.dry_run and verdict in ("forbidden", fields.UNREACHABLE)
        if verdict == Verdict.ALLOWED.value and not settings.allowed:
            raise MismatchError("allowed, but the crawl did not store allowed requests")
        is_cut = max(len(facts["url"]), len(facts["robot"])) >= fields.TEXT_MAX
        if not is_cut and (again := decision_line(self._made_again(facts, settings))) != line:
            versions = f" ({self._versions})" if self._versions else ""
            raise MismatchError(_difference(facts, json.loads(again)) + versions)
        audit.not_judged += is_cut or verdict == fields.OVERRIDDEN

    def _made_again(self, facts: Mapping[str, Any], settings: Settings) -> Made:
        url, when, robot = facts["url"], facts["robots_time"], settings.robot
        if robot is None:  # parsers get the header, in bytes
            robot = facts["robot"].encode("utf-8", "surrogateescape")
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
        return made._replace(
            access=access, decision=Question(url, origin, target, robot).forbidden_by(access)
        )

    def _access(self, origin: Origin, when: str, verdict: str) -> Access:
        """Return what may be fetched by the answer of an origin and a time."""
        time = fields.time_of(when)
        found = self._database.execute(_FIND, (fields.uri_of(str(origin)), when)).fetchone()
        if found is None:
            raise MismatchError(f"{verdict}, but no answer for {origin} at {when} is stored")
        status = None if found[0] is None else int(found[0])
        access = self._judge.judge(Snapshot(origin, origin.robots_url, time, status, body=found[1] or b""))
        self._accesses.put(origin, access)
        return access


def _head_of(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while data := file.read(64 * 1024):
            digest.update(data)
    return digest.hexdigest()


def _difference(stated: Mapping[str, Any], judged: Mapping[str, Any]) -> str:
    """Return in words in what a line differs from the one that the evidence leads to."""
    keys = [key for key in {**judged, **stated} if repr(stated.get(key)) != repr(judged.get(key))]
    one, other = (", ".join(f"{key} {facts.get(key)!r}" for key in keys) for facts in (stated, judged))
    return f"recorded with {one}; judged with {other}" if keys else "its keys are in another order"
