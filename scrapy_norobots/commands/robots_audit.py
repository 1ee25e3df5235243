"""``scrapy robots-audit FOLDER...``: check whether the evidence of crawls supports every decision in it.

It reads the files that `NOROBOTS_EVIDENCE` writes, and makes each decision again from the stored robots.txt
files. Nothing is downloaded. The output has a line for each problem, and a last line with the numbers of
answers and decisions. The exit status is 2 if something cannot be read or judged, or after Ctrl-C, else 1 if
something does not agree or is missing, else 0.
"""

from __future__ import annotations

import os
import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import scrapy.robotstxt
from scrapy import Spider
from scrapy.robotstxt import RobotParser

from scrapy_norobots.commands.base import (
    GREEN,
    RED,
    YELLOW,
    CommandError,
    InputError,
    Progress,
    RobotsCommand,
    coloured,
    to_json,
    write,
)
from scrapy_norobots.features.evidence.fields import DECISIONS_SUFFIX, WARC_SUFFIX, Settings, path_of
from scrapy_norobots.features.usage import UsageConfig
from scrapy_norobots.rules import parser as own_parsers
from scrapy_norobots.rules.parser import Reader, Rules
from scrapy_norobots.standard.decision import printable

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from scrapy_norobots.features.evidence.audit import Audit

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
            type=_head,
            help="a head that was kept elsewhere; a problem if no run has it; can be given several times",
        )

    def work(self, args: list[str], opts: Namespace) -> None:
        """Audit the files of all folders together."""
        try:
            from scrapy_norobots.features.evidence.audit import Audit  # noqa: PLC0415  # an extra
        except ImportError as exc:
            self.fail(f"robots-audit needs warcio: pip install 'scrapy-norobots[evidence]' ({exc})")
            return
        files = files_in(args)
        size = max(sum(file.stat().st_size for file in files if file.is_file()), 1)
        progress, read = Progress(), 0

        def show(more: int) -> None:
            nonlocal read
            read += more
            progress.show(f"{min(read / size, 1.0):.0%} read")

        audit = Audit(files, self._reading, show, heads=opts.head, body_max=self.config.maxsize)
        try:
            write(_beside(progress, self._lines(audit, as_json=opts.json)))
        except KeyboardInterrupt:
            raise CommandError("stopped: the rest was not checked") from None
        finally:
            progress.clear()

    def _lines(self, audit: Audit, *, as_json: bool) -> Iterator[str]:
        """Yield the lines of the output."""
        count = 0
        for count, (place, text, is_readable) in enumerate(audit.problems(), 1):
            self.exitcode = max(self.exitcode, 1 if is_readable else 2)
            if as_json:
                yield to_json({"place": place, "problem": text, "readable": is_readable})
            elif count <= _SHOWN:
                yield f"{coloured(printable(place), RED if is_readable else YELLOW)}: {printable(text)}"
        if as_json:
            yield to_json(
                {
                    "answers": audit.answers,
                    "decisions": dict(audit.verdicts.most_common()),
                    "not_judged": audit.not_judged,
                    "dry_run": audit.dry_run,
                    "allowed_stored": audit.has_allowed,
                    "problems": count,
                }
            )
            return
        if count > _SHOWN:
            yield f"… and {count - _SHOWN:,} more; --json prints all"
        verdicts = ", ".join(f"{number:,} {name}" for name, number in audit.verdicts.most_common())
        yield (
            f"{_number(audit.answers, 'answer')}, {_number(audit.verdicts.total(), 'decision')}"
            f"{f' ({verdicts})' if verdicts else ''}: "
            f"{coloured(_number(count, 'problem'), RED) if count else coloured('all agree', GREEN)}"
            f"{f', {audit.not_judged:,} not judged' if audit.not_judged else ''}"
            f"{'' if audit.has_allowed else ', allowed requests were not stored'}"
            f"{f', {audit.dry_run:,} sent in a dry run although not allowed' if audit.dry_run else ''}"
        )

    def _reading(self, settings: Settings) -> Callable[[bytes], Rules]:
        """Return the reading of a crawl, by our parsers, Scrapy's, or those that the settings name.

        A parser that only the evidence names is not imported: the evidence may come from somebody else.
        """
        named = [*self.config.also_obey, *filter(None, [self.config.parser])]
        others = (*vars(scrapy.robotstxt).values(), *vars(own_parsers).values())
        known = {path_of(one): one for one in (*filter(_is_parser, others), *named)}
        for path in settings.parsers:
            if path not in known:
                raise LookupError(f"unknown parser {path!r}; set NOROBOTS_ALSO_OBEY to it")
        crawler = self.crawler_process.create_crawler(Spider)  # type: ignore[union-attr]  # it is not run
        first, *also = [known[path] for path in settings.parsers]
        purposes = settings.purposes
        return Reader(
            crawler,
            first,
            also,
            multivalue=settings.multivalue,
            also_robots=settings.also_robots,
            statements=UsageConfig(purposes is not None, tuple(purposes or ())).reader(),
        ).read


def _head(text: str) -> str:
    if not _HEAD.fullmatch(text):
        raise ArgumentTypeError(f"{printable(text)}: expected 64 hexadecimal digits")
    return text.lower()


def _beside(progress: Progress, lines: Iterator[str]) -> Iterator[str]:
    """Yield lines, and hide the progress before each."""
    for line in lines:
        progress.clear()
        yield line


def _number(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _is_parser(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, RobotParser) and value is not RobotParser


def files_in(names: Iterable[str]) -> set[Path]:
    """Return the evidence files in folders and their subfolders, each once.

    Raises `InputError` for what is not a folder with evidence, for a folder that cannot be read, and for a
    link to a folder, which may lead anywhere.
    """
    found: set[Path] = set()

    def fail(exc: OSError) -> None:
        raise InputError(str(exc.filename), exc.strerror or exc)

    for name in names:
        count = 0
        for folder, subfolders, files in os.walk(name, onerror=fail):
            for one in subfolders:
                if (link := Path(folder, one)).is_symlink():
                    raise InputError(
                        str(link), "is a link to a folder, which is not followed; name that folder"
                    )
            ours = [one for one in files if one.endswith((WARC_SUFFIX, DECISIONS_SUFFIX))]
            found.update(Path(os.path.realpath(folder), one) for one in ours)
            count += len(ours)
        if not count:
            raise InputError(name, f"has no evidence: no file ends in {WARC_SUFFIX} or {DECISIONS_SUFFIX}")
    return found
