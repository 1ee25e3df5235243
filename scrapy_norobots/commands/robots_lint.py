"""``scrapy robots-lint FILE|URL...``: what in robots.txt files is not as the standard wants it.

A line a finding, as compilers write it (``path:line: severity: text [kind]``), a hint below it where it can
be told what was meant, and a last line for each file that counts the findings and the rules without effect.
The exit status is 2 if a file could not be had, else 1 if any has an error, else 0.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Any

from scrapy import Request

from scrapy_norobots.commands.base import (
    BLUE,
    RED,
    YELLOW,
    InputError,
    RobotsCommand,
    coloured,
    display_name,
    read_input,
    to_json,
)
from scrapy_norobots.commands.progress import Progress
from scrapy_norobots.commands.spider import CommandError, Pool, run_spider
from scrapy_norobots.fetch import Fetcher
from scrapy_norobots.settings import Config
from scrapy_norobots.standard import Finding, RobotsTxt, Severity
from scrapy_norobots.standard.decision import printable
from scrapy_norobots.standard.findings import rules_of
from scrapy_norobots.standard.urls import split

if TYPE_CHECKING:
    from argparse import Namespace

    from scrapy.crawler import Crawler

    from scrapy_norobots.snapshot import Snapshot

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")

_COLOUR = {Severity.ERROR: RED, Severity.WARNING: YELLOW, Severity.INFO: BLUE}


class RobotsLint(RobotsCommand):
    """``scrapy robots-lint``."""

    def syntax(self) -> str:
        """Return its arguments."""
        return "[options] FILE|URL..."

    def short_desc(self) -> str:
        """Return what it does."""
        return "Say what in a robots.txt has no effect, and what was meant"

    def long_desc(self) -> str:
        """Return what it does, and how it ends."""
        return (
            "Read robots.txt files as the 1994 standard has it, and say what in them has no effect or is not "
            "in its form, and what was probably meant. A URL is downloaded as a crawl would; that of a site "
            "means its /robots.txt. '-' reads standard input. The exit status is 2 if a file could not be "
            "had, else 1 if one has an error, else 0."
        )

    def run(self, args: list[str], opts: Namespace) -> None:
        """Read each file and write what is found."""
        try:
            snapshots = self._download(args)
        except CommandError as exc:
            self.fail(str(exc))
            return
        lines: list[str] = []
        for arg in args:
            try:
                path, body = self._read(arg, snapshots)
            except InputError as exc:
                self.fail(str(exc))
                lines += [to_json({"path": exc.path, "problem": exc.problem})] if opts.json else []
                continue
            robots = RobotsTxt.parse(body, multivalue=self.config.multivalue)
            if any(finding.severity is Severity.ERROR for finding in robots.findings):
                self.exitcode = max(self.exitcode, 1)
            lines += [to_json(_facts(path, robots))] if opts.json else _lines(path, robots)
        self.answer(lines)

    def _read(self, arg: str, snapshots: dict[str, Snapshot]) -> tuple[str, bytes]:
        """Return where the text of an argument stands, and its bytes; raise `InputError` if there is none."""
        if not _URL.match(arg):
            try:
                return display_name(arg), read_input(arg, self.config.maxsize)
            except InputError as exc:
                if not isinstance(exc.__cause__, FileNotFoundError) or not _looks_like_site(arg):
                    raise
                raise InputError(exc.path, f"{exc.problem}; for a site, write http://{arg}") from None
        try:
            url = _robots_url(arg)
        except ValueError as exc:
            raise InputError(arg, exc) from None
        snapshot = snapshots.get(url)
        if snapshot is None:
            raise InputError(url, "the crawl was stopped before it was had")
        if snapshot.status is None:
            raise InputError(snapshot.url, f"could not be had ({snapshot.error})")
        if not 200 <= snapshot.status < 300:
            raise InputError(snapshot.url, f"answered {snapshot.status}")
        return snapshot.url, snapshot.body

    def _download(self, args: list[str]) -> dict[str, Snapshot]:
        """Download what of the arguments are URLs, once each."""
        urls: dict[str, None] = {}
        for arg in filter(_URL.match, args):
            try:
                urls[_robots_url(arg)] = None
            except ValueError:
                continue  # `_read` says so
        snapshots: dict[str, Snapshot] = {}
        progress = Progress(is_wanted=len(urls) > 1)

        def prepare(crawler: Crawler) -> Coroutine[Any, Any, None]:
            fetcher = Fetcher(crawler, Config.from_settings(crawler.settings))

            async def fetch(url: str) -> None:
                origin = split(url)[0]
                assert origin is not None  # `_robots_url` has seen to it
                snapshots[url] = await fetcher.fetch(origin, Request(url), url=url)
                progress.show(f"{len(snapshots)} of {len(urls)} downloaded", len(snapshots) / len(urls))

            async def fetch_all() -> None:
                downloads = Pool(crawler, fetch)
                for url in urls:
                    downloads.add(url)
                await downloads.join()
                progress.clear()

            return fetch_all()

        if urls:
            run_spider(self.crawler_process, prepare)
        return snapshots


def _looks_like_site(path: str) -> bool:
    """Whether a path begins like a host and not like the name of a file: ``docs.example.org/robots.txt``."""
    host = path.partition("/")[0]
    return ("." in host.strip(".") or ":" in host) and not host.endswith(".txt")


def _robots_url(url: str) -> str:
    """Return the URL to download, without credentials and fragment; a site's is that of its robots.txt.

    Raises `ValueError`, with words for the user, if there is no such URL.
    """
    origin, target = split(url)
    if origin is None:
        raise ValueError("only http and https URLs with a host can be downloaded")
    if target == "/":
        return origin.robots_url
    return Request(f"{origin}{target}").url


def _lines(path: str, robots: RobotsTxt) -> Iterator[str]:
    where = printable(path)
    for finding in robots.findings:
        severity = coloured(finding.severity.value, _COLOUR[finding.severity])
        yield f"{where}:{finding.line}: {severity}: {finding.message} [{finding.kind}]"
        if finding.hint:
            yield f"{where}:{finding.line}: {coloured('hint', BLUE)}: {finding.hint}"
    rules, idle = rules_of(robots.findings, robots.records)
    counts = Counter(finding.severity for finding in robots.findings)
    found = ", ".join(_counted(counts[severity], severity.value) for severity in Severity if counts[severity])
    effect = f"{len(idle)} of {_counted(len(rules), 'rule')} without effect" if rules else "no rules"
    yield f"{where}: {found or 'nothing found'}; {effect}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _facts(path: str, robots: RobotsTxt) -> dict[str, object]:
    rules, idle = rules_of(robots.findings, robots.records)
    return {
        "path": path,
        "findings": [_finding(finding) for finding in robots.findings],
        "rules": len(rules),
        "without_effect": idle,
    }


def _finding(finding: Finding) -> dict[str, object]:
    return {
        "line": finding.line,
        "severity": finding.severity.value,
        "kind": finding.kind,
        "clause": finding.clause,
        "message": finding.message,
        "hint": finding.hint,
        "text": finding.text,
    }
