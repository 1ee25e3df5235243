"""``scrapy robots-lint FILE|URL...``: check robots.txt files against the 1994 standard.

The output has a line for each finding, in the form of compilers (``path:line: severity: text [kind]``), then
a hint if the intention of the author is clear. The last line of each file has the numbers of findings and of
rules without effect, and those that have none by RFC 9309. The exit status is 2 if a file could not be read
or downloaded, else 1 if a file has an error, else 0.
"""

from __future__ import annotations

import asyncio
import re
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_norobots.commands.base import (
    BLUE,
    RED,
    YELLOW,
    InputError,
    Progress,
    RobotsCommand,
    coloured,
    display_name,
    places,
    read_input,
    run_spider,
    to_json,
    write,
)
from scrapy_norobots.events import Events
from scrapy_norobots.features.report.counters import counted
from scrapy_norobots.features.usage.statements import malformed_statements
from scrapy_norobots.load.fetch import Fetcher
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.settings import Config
from scrapy_norobots.standard import RobotsTxt, Severity
from scrapy_norobots.standard.decision import printable
from scrapy_norobots.standard.findings import rules_of
from scrapy_norobots.standard.groups import rules_without_effect
from scrapy_norobots.standard.urls import split

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")

# How many lines are named that have no effect by RFC 9309.
_LINES_MAX = 10

_COLOUR = {Severity.ERROR.value: RED, Severity.WARNING.value: YELLOW, Severity.INFO.value: BLUE}


class RobotsLint(RobotsCommand):
    """``scrapy robots-lint``."""

    arguments = "FILE|URL..."
    summary = "Find lines without effect in a robots.txt, and suggest corrections"
    description = (
        "Check robots.txt files against the 1994 standard: report lines that have no effect or do not follow "
        "it, and suggest what was probably meant. A URL is downloaded as in a crawl; the URL of a site means "
        "its /robots.txt. '-' reads standard input. The exit status is 2 if a file could not be read or "
        "downloaded, else 1 if a file has an error, else 0."
    )

    def work(self, args: list[str], opts: Namespace) -> None:
        snapshots = self._download(args)
        lines: list[str] = []
        for arg in args:
            try:
                path, body = self._read(arg, snapshots)
            except InputError as exc:
                self.fail(str(exc))
                lines += [to_json({"path": exc.path, "problem": exc.problem})] if opts.json else []
                continue
            facts = _facts(path, body, multivalue=self.config.multivalue)
            if any(finding["severity"] == Severity.ERROR.value for finding in facts["findings"]):
                self.exitcode = max(self.exitcode, 1)
            lines += [to_json(facts)] if opts.json else _lines(facts)
        write(lines)

    def _read(self, arg: str, snapshots: dict[str, Snapshot]) -> tuple[str, bytes]:
        """Return the path or URL of an argument's file, and its bytes; raise `InputError` if that fails."""
        if not _URL.match(arg):
            return display_name(arg), read_input(arg, self.config.maxsize)
        try:
            url = _robots_url(arg)
        except ValueError as exc:
            raise InputError(arg, exc) from None
        snapshot = snapshots[url]
        if snapshot.status is None:
            raise InputError(snapshot.url, f"could not be downloaded ({snapshot.error})")
        if not 200 <= snapshot.status < 300:
            raise InputError(snapshot.url, f"answered {snapshot.status}")
        return snapshot.url, snapshot.body

    def _download(self, args: list[str]) -> dict[str, Snapshot]:
        """Download the URLs among the arguments, each once."""
        urls: dict[str, None] = {}
        for arg in filter(_URL.match, args):
            with suppress(ValueError):  # `_read` reports it
                urls[_robots_url(arg)] = None
        snapshots: dict[str, Snapshot] = {}
        progress = Progress(is_wanted=len(urls) > 1)

        async def fetch_all(crawler: Crawler) -> None:
            fetcher = Fetcher(crawler, Config.from_settings(crawler.settings), Events())
            free = places(crawler)

            async def fetch(url: str) -> None:
                origin = split(url)[0]
                assert origin is not None  # `_robots_url` has checked that
                async with free:
                    snapshots[url] = await fetcher.fetch(origin, Request(url), url=url)
                progress.show(f"{len(snapshots):,} of {len(urls):,} files downloaded")

            await asyncio.gather(*map(fetch, urls))

        if urls:
            run_spider(self.crawler_process, fetch_all)
            progress.clear()
        return snapshots


def _robots_url(url: str) -> str:
    """Return the URL to download, without credentials and fragment; for a site, that of its robots.txt.

    Raises `ValueError`, with a message for the user, if the URL is invalid or cannot be downloaded.
    """
    origin, target = split(url)
    if origin is None:
        raise ValueError("only http and https URLs with a host can be downloaded")
    if target == "/":
        return origin.robots_url
    return Request(f"{origin}{target}").url


def _facts(path: str, body: bytes, *, multivalue: bool) -> dict[str, Any]:
    """Return what is found in a file as data for JSON, from which its lines are made too."""
    robots = RobotsTxt.parse(body, multivalue=multivalue)
    findings = sorted((*robots.findings, *malformed_statements(body)), key=lambda found: found.line)
    rules, idle = rules_of(findings, robots.records)
    later, idle_later = rules_without_effect(body)
    keys = ("line", "severity", "kind", "clause", "message", "hint", "text")
    found = [
        {key: getattr(finding, key) for key in keys} | {"severity": finding.severity.value}
        for finding in findings
    ]
    by_rfc = {"rules": len(later), "without_effect": idle_later}
    return {"path": path, "findings": found, "rules": len(rules), "without_effect": idle, "rfc9309": by_rfc}


def _lines(facts: dict[str, Any]) -> Iterator[str]:
    where, rules, by_rfc = printable(facts["path"]), facts["rules"], facts["rfc9309"]
    for finding in facts["findings"]:
        severity = coloured(finding["severity"], _COLOUR[finding["severity"]])
        yield f"{where}:{finding['line']}: {severity}: {finding['message']} [{finding['kind']}]"
        if finding["hint"]:
            yield f"{where}:{finding['line']}: {coloured('hint', BLUE)}: {finding['hint']}"
    counts = Counter(finding["severity"] for finding in facts["findings"])
    found = ", ".join(counted(counts[severity], severity) for severity in _COLOUR if counts[severity])
    effect = f"{len(facts['without_effect'])} of {counted(rules, 'rule')} without effect"
    last = f"{where}: {found or 'no findings'}; {effect if rules else 'no rules'}"
    if idle := by_rfc["without_effect"]:
        lines = ", ".join(map(str, idle[:_LINES_MAX])) + (", …" if idle[_LINES_MAX:] else "")
        last += f"; by RFC 9309, {len(idle)} of {by_rfc['rules']} (line {lines})"
    yield last
