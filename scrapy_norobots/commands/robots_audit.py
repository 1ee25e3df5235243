"""``scrapy robots-audit FOLDER...``: check whether the evidence of crawls supports every decision in it.

Nothing is downloaded. The output has a line for each problem, and a last line with the numbers of robots.txt
answers and of decisions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy import Spider
from scrapy.robotstxt import ProtegoRobotParser, PythonRobotParser, RerpRobotParser, RobotParser
from scrapy.utils.python import global_object_name

from scrapy_norobots.commands.base import (
    GREEN,
    RED,
    YELLOW,
    CommandError,
    Progress,
    RobotsCommand,
    coloured,
    to_json,
    write,
)
from scrapy_norobots.features.evidence.fields import DECISIONS_SUFFIX, WARC_SUFFIX, Settings
from scrapy_norobots.features.report.counters import counted
from scrapy_norobots.features.usage import UsageConfig
from scrapy_norobots.rules.parser import Rfc9309RobotParser, Rules, StrictRobotParser, reader_of
from scrapy_norobots.standard.decision import printable

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from scrapy_norobots.features.evidence.audit import Audit

# Those that evidence may name, beside those of the settings.
_PARSERS: tuple[type[RobotParser], ...] = (
    StrictRobotParser, Rfc9309RobotParser, ProtegoRobotParser, PythonRobotParser, RerpRobotParser,
)  # fmt: skip


class RobotsAudit(RobotsCommand):
    """Check every decision of a crawl by its evidence.

    Reads the evidence of crawls with NOROBOTS_EVIDENCE from folders, makes every decision again from the
    stored robots.txt files, and prints what does not agree or is missing. The exit status is 2 if something
    cannot be read or judged, else 1 if something does not agree or is missing, else 0.
    """

    arguments = "FOLDER..."

    def add_options(self, parser: ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--head",
            metavar="HEX",
            action="append",
            default=[],
            type=str.lower,
            help="check that a run has this head, the digest at a log's end (can be given several times)",
        )

    def run(self, args: list[str], opts: Namespace) -> None:
        try:
            from scrapy_norobots.features.evidence.audit import Audit  # noqa: PLC0415  # an extra
        except ImportError as exc:
            raise CommandError(
                f"robots-audit needs warcio: pip install 'scrapy-norobots[evidence]' ({exc})"
            ) from exc
        progress = Progress()
        audit = Audit(files_in(args), self._reading, progress.show, opts.head, self.config.maxsize)
        try:
            write(self._lines(audit, progress, as_json=opts.json))
        finally:
            progress.clear()

    def _lines(self, audit: Audit, progress: Progress, *, as_json: bool) -> Iterator[str]:
        count = 0
        for place, text, is_readable in audit.problems():
            count += 1
            progress.clear()
            self.exitcode = max(self.exitcode, 1 if is_readable else 2)
            if as_json:
                yield to_json({"place": place, "problem": text, "readable": is_readable})
            else:
                yield f"{coloured(printable(place), RED if is_readable else YELLOW)}: {printable(text)}"
        progress.clear()
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
        verdicts = ", ".join(f"{number:,} {name}" for name, number in audit.verdicts.most_common())
        yield (
            f"{counted(audit.answers, 'answer')}, {counted(audit.verdicts.total(), 'decision')}"
            f"{f' ({verdicts})' if verdicts else ''}: "
            f"{coloured(counted(count, 'problem'), RED) if count else coloured('all agree', GREEN)}"
            f"{f', {audit.not_judged:,} not judged' if audit.not_judged else ''}"
            f"{'' if audit.has_allowed else ', allowed requests were not stored'}"
            f"{f', {audit.dry_run:,} sent in a dry run although not allowed' if audit.dry_run else ''}"
        )

    def _reading(self, settings: Settings) -> Callable[[bytes], Rules]:
        """Return the reading of a crawl, by our parsers, Scrapy's, or those that the settings name.

        A parser that only the evidence names is not imported: the evidence may come from somebody else.
        """
        named = (self.config.parser, *self.config.also_obey)
        known = {global_object_name(parser): parser for parser in (*_PARSERS, *named)}
        for path in settings.parsers:
            if path not in known:
                raise LookupError(f"unknown parser {path!r}; set NOROBOTS_ALSO_OBEY to it")
        crawler = self.crawler_process.create_crawler(Spider)  # type: ignore[union-attr]  # it is not run
        first, *also = [known[path] for path in settings.parsers]
        return reader_of(
            crawler,
            first,
            also,
            multivalue=settings.multivalue,
            also_robots=settings.also_robots,
            statements=UsageConfig(settings.purposes is not None, tuple(settings.purposes or ())).reader(),
        )


def files_in(names: Iterable[str]) -> set[Path]:
    """Return the evidence files in folders and their subfolders, each once.

    Raises `CommandError` for a folder that has none or cannot be read, and for a link, which leads anywhere.
    """
    found: set[Path] = set()

    def fail(exc: OSError) -> None:
        raise CommandError(str(exc.filename), exc.strerror or str(exc))

    for name in names:
        ours: set[Path] = set()
        for folder, subfolders, files in os.walk(name, onerror=fail):
            for link in filter(Path.is_symlink, (Path(folder, one) for one in subfolders)):
                raise CommandError(str(link), "is a link to a folder, which is not followed")
            there = Path(os.path.realpath(folder))
            ours.update(there / one for one in files if one.endswith((WARC_SUFFIX, DECISIONS_SUFFIX)))
        if not ours:
            raise CommandError(name, f"has no evidence: no file ends in {WARC_SUFFIX} or {DECISIONS_SUFFIX}")
        found |= ours
    return found
