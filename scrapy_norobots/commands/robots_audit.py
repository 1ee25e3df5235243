"""``scrapy robots-audit FOLDER...``: check whether the evidence of crawls supports every decision in it.

It reads the files that `NOROBOTS_EVIDENCE` writes, and makes each decision again from the stored robots.txt
files. Nothing is downloaded. The output has a line for each problem, and a last line with the numbers of
answers and decisions. The exit status is 2 if something cannot be read or judged, else 1 if something does
not agree, else 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import scrapy.robotstxt
from scrapy import Spider
from scrapy.robotstxt import RobotParser

from scrapy_norobots.commands.base import (
    GREEN,
    RED,
    YELLOW,
    InputError,
    RobotsCommand,
    coloured,
    to_json,
)
from scrapy_norobots.commands.progress import Progress
from scrapy_norobots.features.evidence.fields import DECISIONS_SUFFIX, OVERRIDDEN, WARC_SUFFIX
from scrapy_norobots.features.usage import UsageConfig
from scrapy_norobots.rules.parser import Reader, Rules, StrictRobotParser
from scrapy_norobots.standard.decision import printable

if TYPE_CHECKING:
    from argparse import Namespace

    from scrapy_norobots.features.evidence.audit import Audit, Problem

# How many problems are printed as text. JSON has all.
_SHOWN = 100


class RobotsAudit(RobotsCommand):
    """``scrapy robots-audit``."""

    arguments = "FOLDER..."
    summary = "Check every decision of a crawl by its evidence"
    description = (
        "Read the evidence of crawls with NOROBOTS_EVIDENCE from folders, make every decision again from the "
        "stored robots.txt files, and print what does not agree. The exit status is 2 if something cannot be "
        "read or judged, else 1 if something does not agree, else 0."
    )
    reads_stdin = False

    def run(self, args: list[str], opts: Namespace) -> None:
        """Audit the files of all folders together."""
        try:
            from scrapy_norobots.features.evidence.audit import Audit  # noqa: PLC0415  # an extra
        except ImportError as exc:
            self.fail(f"robots-audit needs warcio: pip install 'scrapy-norobots[evidence]' ({exc})")
            return
        try:
            # A folder may be named twice, or lie in another one.
            files = {file.resolve(): file for arg in args for file in _files(Path(arg))}.values()
            size = max(sum(file.stat().st_size for file in files), 1)
        except (InputError, OSError) as exc:
            self.fail(str(exc))
            return
        progress, read = Progress(), 0

        def show(more: int) -> None:
            nonlocal read
            read += more
            progress.show("", min(read / size, 1.0))

        audit = Audit(files, self._reader, show)
        lines = self._as_json(audit) if opts.json else self._as_text(audit)
        self.answer(_beside(progress, lines))

    def _problems(self, audit: Audit) -> Iterator[Problem]:
        for problem in audit.problems():
            self.exitcode = max(self.exitcode, 1 if problem.is_readable else 2)
            yield problem

    def _as_json(self, audit: Audit) -> Iterator[str]:
        problems = 0
        for problem in self._problems(audit):
            problems += 1
            yield to_json({"place": problem.place, "problem": problem.text, "readable": problem.is_readable})
        yield to_json(
            {
                "answers": audit.answers,
                "decisions": dict(audit.verdicts.most_common()),
                "not_judged": audit.verdicts[OVERRIDDEN],
                "dry_run": audit.dry_run,
                "cut_off": audit.cut_off,
                "problems": problems,
            }
        )

    def _as_text(self, audit: Audit) -> Iterator[str]:
        problems = 0
        for problem in self._problems(audit):
            problems += 1
            if problems <= _SHOWN:
                colour = RED if problem.is_readable else YELLOW
                yield f"{coloured(problem.place, colour)}: {printable(problem.text)}"
        if problems > _SHOWN:
            yield f"… and {problems - _SHOWN:,} more; --json prints all"
        verdicts = ", ".join(f"{count:,} {printable(name)}" for name, count in audit.verdicts.most_common())
        result = (
            coloured("all agree", GREEN) if not problems else coloured(_counted(problems, "problem"), RED)
        )
        not_judged = audit.verdicts[OVERRIDDEN]
        yield (
            f"{_counted(audit.answers, 'answer')}, {_counted(audit.verdicts.total(), 'decision')}"
            f"{f' ({verdicts})' if verdicts else ''}: {result}"
            f"{f', {not_judged:,} not judged' if not_judged else ''}"
            f"{f', {audit.dry_run:,} sent in a dry run although not allowed' if audit.dry_run else ''}"
        )
        if audit.cut_off:
            yield f"{_counted(audit.cut_off, 'file')} cut off in the middle; read up to there"

    def _reader(
        self,
        names: Sequence[str],
        *,
        is_strict: bool,
        multivalue: bool,
        also_robots: Sequence[str],
        purposes: Sequence[str] | None,
    ) -> Callable[[bytes], Rules]:
        """Return a reader for these parsers: the strict one, Scrapy's, or one that the settings name.

        A parser that only the evidence names is not imported: the evidence may come from somebody else.
        """
        ours = [StrictRobotParser, *self.config.also_obey, *filter(None, [self.config.parser])]
        scrapys = [one for one in vars(scrapy.robotstxt).values() if _is_parser(one)]
        known = {one.__name__: one for one in (*scrapys, *ours)}
        for name in names:
            if name not in known:
                raise LookupError(f"unknown parser {name!r}; set NOROBOTS_ALSO_OBEY to its import path")
        crawler = self.crawler_process.create_crawler(Spider)  # type: ignore[union-attr]  # it is not run
        first = None if is_strict else known[names[0]]
        try:
            also = [known[name] for name in names[1:]]
            statements = UsageConfig(purposes is not None, tuple(purposes or ())).reader()
            return Reader(
                crawler,
                first,
                also,
                multivalue=multivalue,
                also_robots=also_robots,
                statements=statements,
            ).read
        except ValueError as exc:
            raise LookupError(str(exc)) from exc


def _beside(progress: Progress, lines: Iterator[str]) -> Iterator[str]:
    """Yield lines, and hide the progress bar before each."""
    for line in lines:
        progress.make_way()
        yield line
    progress.clear()


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _is_parser(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, RobotParser) and value is not RobotParser


def _files(folder: Path) -> list[Path]:
    """Return the evidence files of a folder; raise `InputError` if there are none."""
    if not folder.is_dir():
        raise InputError(str(folder), "is not a folder")
    files = [file for file in folder.rglob("*") if file.name.endswith((WARC_SUFFIX, DECISIONS_SUFFIX))]
    if not files:
        raise InputError(str(folder), f"has no evidence: no file ends in {WARC_SUFFIX} or {DECISIONS_SUFFIX}")
    return files
