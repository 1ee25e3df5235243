"""`Audit`: checks that evidence is whole, and makes every decision of a crawl again.

Each run is read on its own. Its WARC files come first: each record must have the digests that it states, and
a URL that its origin or a stored redirect leads to. Then come the lines of its decisions: each must be the
next one of the chain, and what `Judging` makes of it again. At last the closing line must agree with all
files of the run. What was never written, or was written anew as a whole, cannot be noticed, unless the head
of the run was kept elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from scrapy_norobots.features.evidence import fields
from scrapy_norobots.features.evidence.chain import CLOSES, OPENS, ChainReader
from scrapy_norobots.features.evidence.decisions import origin_of
from scrapy_norobots.features.evidence.gzip_file import DamagedError, GzipFile
from scrapy_norobots.features.evidence.index import Index, Outcome
from scrapy_norobots.features.evidence.judging import Judging, MismatchError, Readings
from scrapy_norobots.features.evidence.line_reader import LineReader, check_closing_line, check_opening_line
from scrapy_norobots.features.evidence.runs import RunFiles, Settings, runs_of
from scrapy_norobots.features.evidence.warc import Stored, as_requested, read_record

# By how much a clock may be set back during a crawl, in seconds: NTP makes no larger step by itself.
_STEP_MAX = 1_000

# More bytes than the largest robots.txt has, if the settings do not say otherwise (NOROBOTS_MAXSIZE).
_BODY_MAX = 2 * 1024 * 1024


_ORIGIN, _POLICY = (f"\n{name.lower()}:".encode() for name in (fields.ORIGIN, fields.POLICY))


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
        """`heads` are heads of runs that were kept elsewhere."""
        self._files = list(files)
        self._readings = readings
        self._on_read = on_read
        self._heads = heads
        self.body_max = body_max
        self.answers = self.not_judged = self.cut_off = self.dry_run = 0
        self.has_allowed = True
        self.verdicts: Counter[str] = Counter()

    def problems(self) -> Iterator[Problem]:
        """Read all files, and yield what is wrong."""
        runs, others = runs_of(self._files)
        found = set()
        for path in others:
            if path.name.endswith(fields.DECISIONS_SUFFIX) or self._is_ours(path):
                yield Problem(path.name, "its name is not that of a file of evidence", is_readable=False)
        for files in runs:
            if files.decisions or any(map(self._is_ours, files.answers.values())):
                run = _Run(self, files)
                with closing(run.index):
                    yield from run.problems()
                found.add(run.chain.head)
        if not self.answers and not self.verdicts:
            yield Problem("evidence", "no answer and no decision is stored", is_readable=False)
        for head in self._heads:
            if head not in found:
                yield Problem(f"head {head}", "no run ends with it: the evidence of its crawl was changed")

    def _is_ours(self, path: Path) -> bool:
        """Return whether a WARC file has a record of this package. A damaged one may be ours."""
        begin, is_empty = b"", True
        try:
            for _, data, is_last in GzipFile(path).chunks():
                if len(begin) < fields.HEADERS_MAX:
                    begin += data
                if is_last:
                    head, _, block = begin.lower().partition(b"\r\n\r\n")
                    is_info = b"\nwarc-type: warcinfo" in head and _POLICY in b"\n" + block
                    if is_info or _ORIGIN in head:
                        return True
                    begin, is_empty = b"", False
        except DamagedError:
            return True
        return is_empty

    def open(self, path: Path) -> GzipFile:
        """Return a file that is read, with its progress."""
        return GzipFile(path, self._on_read)

    def judging(self, settings: Settings, index: Index) -> Judging:
        """Return what makes the decisions of a run again."""
        return Judging(settings, index, self._readings)


class _Run:
    """The audit of one run."""

    def __init__(self, audit: Audit, files: RunFiles) -> None:
        self._audit = audit
        self._files = files
        self.index = Index(audit.body_max)
        self.chain = ChainReader()
        self._lines = LineReader()
        self._settings: Settings | None = None
        self._judging: Judging | None = None
        self._answers = 0
        self._verdicts: Counter[str] = Counter()
        self._closing: Mapping[str, Any] | None = None
        self._read: dict[str, tuple[int, str]] = {}  # sizes and digests of files, by name
        # The places of files that were not read, by origin, until the record of an error explains why.
        self._unread: dict[str, str] = {}
        # When the crawl began at the earliest, and the last time in its records.
        self._earliest = self._latest = ""

    def problems(self) -> Iterator[Problem]:
        """Read the files of the run, and yield what is wrong."""
        files = self._files
        for path in files.repeated:
            yield Problem(
                path.name, "there are two files of this name; audit their folders apart", is_readable=False
            )
        for name in files.missing():
            yield Problem(name, "is missing")
        for parts, read in ((files.answers, self._read_answers), (files.decisions, self._read_decisions)):
            for number in sorted(parts):
                path = parts[number]
                file = self._audit.open(path)
                try:
                    yield from read(path, file, number)
                except DamagedError as exc:
                    yield Problem(path.name, str(exc), is_readable=False)
                self._audit.cut_off += file.is_cut_off
                self._read[path.name] = file.size, file.digest
        for place in self._unread.values():
            yield Problem(place, f"has neither a {fields.BODY_DIGEST} nor an error that explains this")
        if not files.decisions:
            yield Problem(files.name, "its decisions are missing: no file ends in " + fields.DECISIONS_SUFFIX)
        elif self._closing is None:
            yield Problem(files.name, "ended without a closing line (killed?)")
        else:
            yield from self._check_closing(self._closing)
        if self._judging is not None:
            self._audit.not_judged += self._judging.not_judged

    # Answers

    def _read_answers(self, path: Path, file: GzipFile, number: int) -> Iterator[Problem]:
        is_first = True
        for offset, data in file.members(self._audit.body_max + fields.HEADERS_MAX):
            stored = read_record(data, self._audit.body_max)
            place = f"{path.name}: byte {offset}"
            if stored.problem:
                yield Problem(place, f"{stored.url or stored.kind}: {stored.problem}")
            if stored.record_id and not self.index.add_id(stored.record_id):
                yield Problem(place, "has the WARC-Record-ID of another record")
            if stored.kind == "warcinfo":
                yield from self._add_settings(path, stored, number, is_first=is_first)
            elif is_first:
                yield Problem(path.name, "does not begin with a warcinfo record", is_readable=False)
            is_first = False
            if stored.origin:
                self._answers += 1
                self._audit.answers += 1
                if not stored.problem:
                    found = self._add(stored, offset, path)
                    yield from (Problem(place, f"{stored.url}: {text}") for text in found)
            elif stored.kind != "warcinfo":
                yield Problem(place, f"{stored.url or stored.kind}: it has no {fields.ORIGIN}")

    def _add_settings(self, path: Path, stored: Stored, number: int, *, is_first: bool) -> Iterator[Problem]:
        about = stored.about
        try:
            settings, began = Settings.of(about), fields.time_of(stored.date)
        except ValueError:
            text = "its warcinfo record does not state the crawl's settings"
            yield Problem(path.name, text, is_readable=False)
            return
        if not is_first:
            yield Problem(path.name, "has a second warcinfo record")
        if stored.url != path.name:
            yield Problem(path.name, f"is of the file {stored.url!r} (warcinfo)")
        robots = "ignore" if settings.dry_run else "obey"
        if about.get(fields.ROBOTS, robots) != robots:
            yield Problem(path.name, f"contradicts its {fields.DRY_RUN}: robots is {about[fields.ROBOTS]!r}")
        if about.get(fields.RUN) != self._files.name:
            yield Problem(path.name, f"is of the run {about.get(fields.RUN)!r} (warcinfo)")
        if self._settings is None:
            self._settings = settings
            self._judging = self._audit.judging(settings, self.index)
            self._earliest = fields.date_of(began - _STEP_MAX)
            self._audit.has_allowed &= settings.has_allowed
        elif settings != self._settings:
            yield Problem(path.name, "states other settings than the first file of its run (warcinfo)")
        before = self._files.answers.get(number - 1)
        if is_first and before is not None:
            expected = f"{before.name} sha256:{self._read[before.name][1]}", str(self._answers)
            if (about.get(fields.PREVIOUS_FILE), about.get(fields.ANSWERS_BEFORE)) != expected:
                yield Problem(path.name, f"does not follow on {before.name}, which was changed (warcinfo)")

    def _add(self, stored: Stored, offset: int, path: Path) -> Iterator[str]:
        """Add an answer to the index, and yield what is wrong with its place among the others."""
        origin, date = stored.origin, stored.date
        if stored.leads_to:
            self.index.add_target(origin, stored.leads_to)
        yield from self._misplaced_answer(stored)
        if stored.body is not None and stored.digest is not None:
            self.index.add_body(stored.digest, stored.body, path, offset)
            self.index.add_file(origin, stored.url, date, stored.digest)
        if stored.kind == "metadata":
            self._unread.pop(origin, None)
        if stored.is_unread:
            self._unread[origin] = f"{path.name}: byte {offset}"
        if stored.is_unread or stored.followed_by:
            return
        # A revisit has the digest of the file that it renews, and a file is one whatever its 2xx status.
        outcome = Outcome(None if stored.digest is not None else stored.status, stored.digest)
        known = self.index.outcome(origin, date)
        if known is None or known == outcome:
            self.index.add_outcome(origin, date, outcome)
        elif stored.kind == "metadata" and known.digest is not None and self._cannot_be_read(known.digest):
            self.index.add_outcome(origin, date, outcome)  # a parser of the crawl has failed on the file
        else:
            yield f"contradicts another record of {origin} at {date}"

    def _misplaced_answer(self, stored: Stored) -> Iterator[str]:
        """Yield what is wrong with the URL, the date or the file of an answer."""
        origin, url, date, digest = stored.origin, stored.requested, stored.date, stored.digest
        if not stored.source:  # neither the redirects that led to a copy from a store nor its clock are known
            # A download handler may change the URL, but not lead to another site.
            is_moved = stored.url != url and origin_of(stored.url) != origin_of(url)
            for one in (url, stored.url) if is_moved else (url,):
                if not self._leads_there(origin, one):
                    yield f"its origin is {origin}, and no stored redirect leads from there to {one}"
            if date < self._earliest:
                yield f"its WARC-Date {date} is before the crawl began"
            self._latest = max(self._latest, date)
        if digest and stored.kind == "revisit" and not self.index.is_file(origin, *stored.renews, digest):
            named = " of ".join(stored.renews)
            yield f"no record of {origin} before it has the file that it renews ({named})"

    def _leads_there(self, origin: str, url: str) -> bool:
        return url == f"{origin}/robots.txt" or self.index.is_target(origin, as_requested(url))

    def _cannot_be_read(self, digest: str) -> bool:
        body = self.index.body(digest)
        if body is None or self._judging is None:
            return False
        try:
            return not self._judging.can_read(body)
        except LookupError:
            return True  # each decision by this parser is a problem

    # Decisions

    def _read_decisions(self, path: Path, file: GzipFile, _: int) -> Iterator[Problem]:
        if self._judging is None:
            text = "no warcinfo record states the settings of its crawl"
            yield Problem(path.name, text, is_readable=False)
        row = 0
        for row, line in enumerate(file.lines(), 1):
            for text, is_readable in self._read_line(line, path.name if row == 1 else None):
                yield Problem(f"{path.name}: line {row}", text, is_readable)
        if file.is_cut_off and self._closing is not None:
            yield Problem(path.name, "has something after its closing line")
        if not row and not file.is_cut_off:
            yield Problem(path.name, "has no opening line")

    def _read_line(self, line: bytes, name: str | None) -> Iterator[tuple[str, bool]]:
        """Yield what is wrong with a line, and whether it can be read.

        `name` is that of the file that begins with the line; None if no file does.
        """
        try:
            facts, end = self._lines.read(line)
            problem = self.chain.problem(line, facts)
            if problem:
                yield problem, True
            elif self._closing is not None:
                yield "follows the closing line", True
            if facts.get(OPENS) != name:
                what = (
                    "an opening line within a file" if name is None else "not the opening line of this file"
                )
                yield f"is {what}", True
            if CLOSES in facts:
                self._closing = facts
            elif OPENS in facts:
                check_opening_line(facts)
            else:
                self._add_decision(facts, end)
        except MismatchError as exc:
            yield f"{facts['url']}: {exc}", True
        except LookupError as exc:
            yield f"cannot be judged: {exc}", False
        except (ValueError, TypeError, AttributeError, RecursionError) as exc:
            yield f"not a decision ({type(exc).__name__}: {exc})", False

    def _add_decision(self, facts: Mapping[str, Any], end: str) -> None:
        verdict = str(facts.get("verdict"))
        self._verdicts[verdict] += 1
        self._audit.verdicts[verdict] += 1
        self._audit.dry_run += facts.get("dry_run") is True
        if self._judging is not None:
            self._judging.check(facts, end)
            when = facts["time"]
            self._latest = max(self._latest, when)
            if when < self._earliest:
                raise MismatchError(f"made at {when}, before the crawl began")

    # The end

    def _check_closing(self, facts: Mapping[str, Any]) -> Iterator[Problem]:
        """Compare the closing line with what was read."""
        place = f"{self._files.name}: closing line"
        try:
            check_closing_line(facts)
        except (TypeError, ValueError) as exc:
            yield Problem(place, f"is damaged ({type(exc).__name__}: {exc})", is_readable=False)
            return
        sums = {name: (one["size"], one["sha256"]) for name, one in facts["files"].items()}
        closes, decisions, answers, lost = (facts[name] for name in (CLOSES, "decisions", "answers", "lost"))
        if self._latest > fields.date_of(fields.time_of(facts["time"]) + _STEP_MAX):
            yield Problem(place, f"was written at {facts['time']}, before what is of {self._latest}")
        if closes != self._files.name:
            yield Problem(place, f"is of the run {closes!r}")
        if decisions != self._verdicts:
            yield Problem(
                place, f"counts the decisions {_counts(decisions)}; there are {_counts(self._verdicts)}"
            )
        if answers != self._answers:
            yield Problem(place, f"counts {answers!r} answers; there are {self._answers}")
        if lost:
            yield Problem(place, f"{lost!r} records were lost, because the disk was too slow")
        yield from self._check_sums(sums)

    def _check_sums(self, sums: Mapping[str, tuple[int, str]]) -> Iterator[Problem]:
        """Compare the sizes and digests of files with those that were read."""
        last = self._files.decisions[max(self._files.decisions)].name
        for name in sorted({*sums, *self._read} - {last}):
            if name not in self._read:
                yield Problem(name, "is missing (closing line)")
            elif name not in sums:
                yield Problem(name, "is not in the closing line of its run")
            elif sums[name] != self._read[name]:
                yield Problem(name, "was changed: its size or digest is not that in the closing line")


def _counts(verdicts: Mapping[Any, Any]) -> str:
    return ", ".join(f"{name}: {count}" for name, count in sorted(verdicts.items(), key=str)) or "none"
