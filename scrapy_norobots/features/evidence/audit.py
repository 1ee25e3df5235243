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
from scrapy_norobots.features.evidence.files import DamagedError, GzipFile
from scrapy_norobots.features.evidence.index import Index, Outcome
from scrapy_norobots.features.evidence.judging import Judging, MismatchError, Readings
from scrapy_norobots.features.evidence.lines import LineReader
from scrapy_norobots.features.evidence.records import Stored, as_requested, read_record
from scrapy_norobots.features.evidence.runs import RunFiles, Settings, runs_of

# More bytes than the largest robots.txt has, if the settings do not say otherwise (NOROBOTS_MAXSIZE).
_BODY_MAX = 2 * 1024 * 1024


class Problem(NamedTuple):
    """What does not agree, or, if not `is_readable`, what cannot be read; `place` is a file and a line."""

    place: str
    text: str
    is_readable: bool = True


class Audit:
    """Audits evidence files.

    `answers`, `verdicts`, `not_judged` and `cut_off` (files) count what has been read; `dry_run` counts the
    requests that a dry run has sent although they were not allowed.
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
        for head in self._heads:
            if head not in found:
                yield Problem(f"head {head}", "no run ends with it: the evidence of its crawl was changed")

    def _is_ours(self, path: Path) -> bool:
        """Return whether a WARC file begins as those of this package do. A damaged one may be ours."""
        try:
            _, data = next(GzipFile(path).members(fields.HEADERS_MAX), (0, b""))
            return not data or bool(read_record(data, 0).about)
        except DamagedError:
            return True

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
            if stored.kind == "warcinfo":
                yield from self._add_settings(path, stored.about, number, is_first=is_first)
            elif is_first:
                yield Problem(path.name, "does not begin with a warcinfo record", is_readable=False)
            is_first = False
            if stored.origin:  # a record of another tool may stand beside ours
                self._answers += 1
                self._audit.answers += 1
                if not stored.problem:
                    yield from (
                        Problem(place, f"{stored.url}: {text}") for text in self._add(stored, offset, path)
                    )

    def _add_settings(
        self, path: Path, about: Mapping[str, str], number: int, *, is_first: bool
    ) -> Iterator[Problem]:
        try:
            settings = Settings.of(about)
        except ValueError:
            text = "its warcinfo record does not state the crawl's settings"
            yield Problem(path.name, text, is_readable=False)
            return
        if not is_first:
            yield Problem(path.name, "has a second warcinfo record")
        if about.get(fields.RUN) != self._files.name:
            yield Problem(path.name, f"is of the run {about.get(fields.RUN)!r} (warcinfo)")
        if self._settings is None:
            self._settings = settings
            self._judging = self._audit.judging(settings, self.index)
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
        # The redirects that led to a copy from a store are not known here.
        requested = stored.requested
        if not stored.source and not self._leads_there(origin, requested):
            yield f"its origin is {origin}, and no stored redirect leads from there to {requested}"
        if stored.body is not None and stored.digest is not None:
            self.index.add_body(stored.digest, stored.body, path, offset)
        if not stored.is_outcome:
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
            elif OPENS not in facts:
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

    # The end

    def _check_closing(self, facts: Mapping[str, Any]) -> Iterator[Problem]:
        """Compare the closing line with what was read."""
        place = f"{self._files.name}: closing line"
        try:
            lost, stated = facts["lost"], dict(facts["files"])
            sums = {name: (one["size"], one["sha256"]) for name, one in stated.items()}
            closes, decisions, answers = facts[CLOSES], dict(facts["decisions"]), facts["answers"]
        except (KeyError, TypeError, ValueError) as exc:
            yield Problem(place, f"is damaged ({type(exc).__name__}: {exc})", is_readable=False)
            return
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
