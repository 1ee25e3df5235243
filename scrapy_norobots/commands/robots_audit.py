"""``scrapy robots-audit FOLDER...``: check whether the evidence of crawls supports every decision in it.

It reads the files that `NOROBOTS_EVIDENCE` writes, and makes each decision again from the stored robots.txt
files. Nothing is downloaded. The output has a line for each problem, and a last line with the numbers of
answers and decisions. The exit status is 2 if something cannot be read or judged, or was not read because of
Ctrl-C, else 1 if something does not agree or is missing, else 0.
"""

from __future__ import annotations

import os
import re
import signal
import stat
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import scrapy.robotstxt
from scrapy import Spider
from scrapy.exceptions import UsageError
from scrapy.robotstxt import RobotParser

from scrapy_norobots.commands.base import (
    GREEN,
    RED,
    YELLOW,
    InputError,
    Progress,
    RobotsCommand,
    coloured,
    to_json,
    write,
)
from scrapy_norobots.features.evidence.fields import (
    DECISIONS_SUFFIX,
    WARC_SUFFIX,
    Settings,
    description,
    path_of,
)
from scrapy_norobots.features.usage import UsageConfig
from scrapy_norobots.rules import parser as own_parsers
from scrapy_norobots.rules.parser import Reader, Rules
from scrapy_norobots.standard.decision import printable

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from scrapy_norobots.features.evidence.audit import Audit, Problem

# How many problems are printed as text. JSON has all.
_SHOWN = 100

_HEAD = re.compile("[0-9a-fA-F]{64}")


class RobotsAudit(RobotsCommand):
    """``scrapy robots-audit``."""

    arguments = "FOLDER..."
    summary = "Check every decision of a crawl by its evidence"
    description = (
        "Read the evidence of crawls with NOROBOTS_EVIDENCE from folders, make every decision again from the "
        "stored robots.txt files, and print what does not agree or is missing. The exit status is 2 if "
        "something cannot be read or judged, else 1 if something does not agree or is missing, else 0."
    )
    reads_stdin = False

    def add_options(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        super().add_options(parser)
        parser.add_argument(
            "--head",
            metavar="HEX",
            action="append",
            default=[],
            help="head of a run that was kept elsewhere, which must be there; can be given several times",
        )

    def process_options(self, args: list[str], opts: Namespace) -> None:
        """Read settings and options. Raises `UsageError` if one is invalid."""
        super().process_options(args, opts)
        for head in opts.head:
            if not _HEAD.fullmatch(head):
                raise UsageError(f"--head {printable(head)}: expected 64 hexadecimal digits")

    def work(self, args: list[str], opts: Namespace) -> None:
        """Audit the files of all folders together."""
        try:
            from scrapy_norobots.features.evidence.audit import Audit, Problem  # noqa: PLC0415  # an extra
        except ImportError as exc:
            self.fail(f"robots-audit needs warcio: pip install 'scrapy-norobots[evidence]' ({exc})")
            return
        for name in args:
            _check_folder(name)
        files, unread = files_in(map(Path, args))
        self._unread = [Problem(place, text, is_readable=False) for place, text in unread]
        size = max(sum(file.stat().st_size for file in files), 1)
        progress, read, is_stopped, is_urgent = Progress(), 0, False, False

        def stop(*_: object) -> None:
            nonlocal is_stopped, is_urgent
            is_stopped, is_urgent = True, is_stopped
            if is_urgent:
                raise KeyboardInterrupt

        def show(more: int) -> None:
            nonlocal read
            if is_stopped:  # here, and not in the middle of a line of the output
                raise KeyboardInterrupt
            read += more
            progress.show(f"{min(read / size, 1.0):.0%} read")

        heads = {head.lower() for head in opts.head}
        audit = Audit(files, self._reading, show, heads=heads, body_max=self.config.maxsize)
        self._count = 0
        lines, last = (
            (self._as_json, self._json_summary) if opts.json else (self._as_text, self._text_summary)
        )
        before = signal.signal(signal.SIGINT, stop)
        try:
            write(_beside(progress, lines(audit)))
            is_stopped = False  # all was checked
        except KeyboardInterrupt:
            progress.clear()
            self.exitcode = 2
            if is_urgent:  # perhaps in the middle of a line of the output
                return
        finally:
            signal.signal(signal.SIGINT, before)
        write(last(audit, is_stopped=is_stopped))

    def _problems(self, audit: Audit) -> Iterator[Problem]:
        for problem in chain(self._unread, audit.problems()):
            self._count += 1
            self.exitcode = max(self.exitcode, 1 if problem.is_readable else 2)
            yield problem

    def _as_json(self, audit: Audit) -> Iterator[str]:
        for problem in self._problems(audit):
            yield to_json({"place": problem.place, "problem": problem.text, "readable": problem.is_readable})

    def _json_summary(self, audit: Audit, *, is_stopped: bool) -> Iterator[str]:
        yield to_json(
            {
                "answers": audit.answers,
                "decisions": dict(audit.verdicts.most_common()),
                "not_judged": audit.not_judged,
                "dry_run": audit.dry_run,
                "allowed_stored": audit.has_allowed,
                "cut_off": audit.cut_off,
                "problems": self._count,
                "stopped": is_stopped,
            }
        )

    def _as_text(self, audit: Audit) -> Iterator[str]:
        for problem in self._problems(audit):
            if self._count <= _SHOWN:
                colour = RED if problem.is_readable else YELLOW
                yield f"{coloured(printable(problem.place), colour)}: {printable(problem.text)}"

    def _text_summary(self, audit: Audit, *, is_stopped: bool) -> Iterator[str]:
        if self._count > _SHOWN:
            yield f"… and {self._count - _SHOWN:,} more; --json prints all"
        verdicts = ", ".join(f"{count:,} {printable(name)}" for name, count in audit.verdicts.most_common())
        result = coloured(_number(self._count, "problem"), RED)
        if not self._count:
            result = coloured("no problem so far", YELLOW) if is_stopped else coloured("all agree", GREEN)
        yield (
            f"{_number(audit.answers, 'answer')}, {_number(audit.verdicts.total(), 'decision')}"
            f"{f' ({verdicts})' if verdicts else ''}: {result}"
            f"{f', {audit.not_judged:,} not judged' if audit.not_judged else ''}"
            f"{'' if audit.has_allowed else ', allowed requests were not stored'}"
            f"{f', {audit.dry_run:,} sent in a dry run although not allowed' if audit.dry_run else ''}"
        )
        if audit.cut_off:
            yield f"{_number(audit.cut_off, 'file')} cut off in the middle; read up to there"
        if is_stopped:
            yield "stopped by Ctrl-C: the rest was not checked"

    def _reading(self, settings: Settings) -> tuple[Callable[[bytes], Rules], list[str]]:
        """Return the reading of a crawl, by our parsers, Scrapy's, or those that the settings name.

        A parser that only the evidence names is not imported: the evidence may come from somebody else.
        """
        named = [*self.config.also_obey, *filter(None, [self.config.parser])]
        others = (*vars(scrapy.robotstxt).values(), *vars(own_parsers).values())
        known = {path_of(one): one for one in (*filter(_is_parser, others), *named)}
        for path in settings.paths:
            if path not in known:
                raise LookupError(f"unknown parser {path!r}; set NOROBOTS_ALSO_OBEY to it")
        crawler = self.crawler_process.create_crawler(Spider)  # type: ignore[union-attr]  # it is not run
        first, *also = [known[path] for path in settings.paths]
        purposes = settings.purposes
        try:
            reader = Reader(
                crawler,
                first,
                also,
                multivalue=settings.multivalue,
                also_robots=settings.also_robots,
                statements=UsageConfig(purposes is not None, tuple(purposes or ())).reader(),
            )
        except ValueError as exc:
            raise LookupError(str(exc)) from exc
        return reader.read, [description(one) for one in (first, *also)]


def _beside(progress: Progress, lines: Iterator[str]) -> Iterator[str]:
    """Yield lines, and hide the progress bar before each."""
    for line in lines:
        progress.clear()
        yield line
    progress.clear()


def _number(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _is_parser(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, RobotParser) and value is not RobotParser


def _check_folder(name: str) -> None:
    """Raise `InputError` if a name is not that of a folder with evidence."""
    try:
        is_folder = "\0" not in name and Path(name).is_dir()
    except OSError as exc:  # for example, a folder above may not be read
        raise InputError(name, exc.strerror or exc) from exc
    if not is_folder:
        raise InputError(name, "is not a folder")
    if not any(files_in([Path(name)])):
        raise InputError(name, f"has no evidence: no file ends in {WARC_SUFFIX} or {DECISIONS_SUFFIX}")


def files_in(folders: Iterable[Path]) -> tuple[list[Path], list[tuple[str, str]]]:
    """Return the evidence files in folders and their subfolders, each once, and what could not be read.

    A symbolic link to a folder is not followed, since it may lead anywhere. It is a problem, unless its
    folder is read anyway.
    """
    found: dict[str, Path] = {}  # by the real path, as a file may be reached on several ways
    errors: list[OSError] = []
    links: list[Path] = []
    seen: set[str] = set()
    for folder in folders:
        for name, subfolders, names in os.walk(folder, onerror=errors.append):
            place = Path(name)
            seen.add(os.path.realpath(place))
            links += [path for one in subfolders if (path := place / one).is_symlink()]
            for one in names:
                if one.endswith((WARC_SUFFIX, DECISIONS_SUFFIX)):
                    found.setdefault(os.path.realpath(place / one), place / one)
    text = "is a link to a folder, which is not followed; name that folder too"
    problems = [(str(one), text) for one in links if os.path.realpath(one) not in seen]
    files = []
    for path in found.values():
        try:
            # Neither a link that leads nowhere, nor a pipe, which would have to be waited for.
            if stat.S_ISREG(path.stat().st_mode):
                files.append(path)
            else:
                problems.append((str(path), "is not a file"))
        except OSError as exc:
            errors.append(exc)
    return files, problems + [(str(exc.filename), exc.strerror or str(exc)) for exc in errors]
