"""``scrapy robots-lint FILE|URL...``: check robots.txt files against the 1994 standard.

The output has a line for each finding, in the form of compilers, then a hint if the intention of the author
is clear. The last line of each file has the numbers of findings and of rules without effect.
"""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import starmap
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_norobots.commands.base import (
    BLUE,
    RED,
    YELLOW,
    CommandError,
    Progress,
    RobotsCommand,
    coloured,
    display_name,
    places,
    read_input,
    run_spider,
    split_url,
    to_json,
    write,
)
from scrapy_norobots.events import Events
from scrapy_norobots.features.report.counters import counted
from scrapy_norobots.features.usage.statements import malformed_statements
from scrapy_norobots.load.fetch import Fetcher
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.settings import Config
from scrapy_norobots.standard import Origin, RobotsTxt, Severity
from scrapy_norobots.standard.decision import printable
from scrapy_norobots.standard.findings import rules_of
from scrapy_norobots.standard.groups import rules_without_effect

_COLOUR = {Severity.ERROR.value: RED, Severity.WARNING.value: YELLOW, Severity.INFO.value: BLUE}


class RobotsLint(RobotsCommand):
    """Find lines without effect in a robots.txt, and suggest corrections.

    Reports lines that have no effect by the 1994 standard or do not follow it, and suggests what was probably
    meant. A URL is downloaded as in a crawl; the URL of a site means its /robots.txt. '-' reads standard
    input. The exit status is 2 if a file could not be read or downloaded, else 1 if one has an error, else 0.
    """

    arguments = "FILE|URL..."

    def run(self, args: list[str], opts: Namespace) -> None:
        urls: dict[str, tuple[Origin, str]] = {}
        for url in (arg for arg in args if "://" in arg):
            with suppress(CommandError):  # `_read` raises it
                urls[url] = _robots_url(url)
        snapshots = self._download(urls.values()) if urls else {}
        lines: list[str] = []
        for arg in args:
            try:
                path, body = self._read(arg, snapshots.get(urls.get(arg)))
            except CommandError as exc:
                print(printable(str(exc)), file=sys.stderr)
                self.exitcode = 2
                lines += [to_json(dict(zip(("path", "problem"), exc.args, strict=True)))] if opts.json else []
                continue
            facts = _facts(path, body, multivalue=self.config.multivalue)
            if any(finding["severity"] == Severity.ERROR.value for finding in facts["findings"]):
                self.exitcode = max(self.exitcode, 1)
            lines += [to_json(facts)] if opts.json else _lines(facts)
        write(lines)

    def _read(self, path: str, snapshot: Snapshot | None) -> tuple[str, bytes]:
        """Return the name and the bytes of a file or of a download. Raises `CommandError` if it has none."""
        if snapshot is None:
            if "://" in path:
                split_url(path)  # which raises why it was not downloaded
            return display_name(path), read_input(path, self.config.maxsize)
        if snapshot.status is None:
            raise CommandError(snapshot.url, f"could not be downloaded ({snapshot.error})")
        if not 200 <= snapshot.status < 300:
            raise CommandError(snapshot.url, f"answered {snapshot.status}")
        return snapshot.url, snapshot.body

    def _download(self, urls: Iterable[tuple[Origin, str]]) -> dict[tuple[Origin, str] | None, Snapshot]:
        wanted = set(urls)
        snapshots: dict[tuple[Origin, str] | None, Snapshot] = {}
        progress = Progress(is_wanted=len(wanted) > 1)

        async def fetch_all(crawler: Crawler) -> None:
            fetcher = Fetcher(crawler, Config.from_settings(crawler.settings), Events())
            free = places(crawler)

            async def fetch(origin: Origin, url: str) -> None:
                async with free:
                    snapshots[origin, url] = await fetcher.fetch(origin, Request(url), url=url)
                progress.show(f"{len(snapshots):,} of {len(wanted):,} files downloaded")

            await asyncio.gather(*starmap(fetch, wanted))

        run_spider(self.crawler_process, fetch_all)
        progress.clear()
        return snapshots


def _robots_url(url: str) -> tuple[Origin, str]:
    """Return the origin of a URL, and what to download: for a site, its robots.txt."""
    origin, target = split_url(url)
    return origin, origin.robots_url if target == "/" else Request(f"{origin}{target}").url


def _facts(path: str, body: bytes, *, multivalue: bool) -> dict[str, Any]:
    """Return what is found in a file as data for JSON, from which its lines are made too."""
    robots = RobotsTxt.parse(body, multivalue=multivalue)
    findings = sorted((*robots.findings, *malformed_statements(body)), key=lambda found: found.line)
    rules, idle = rules_of(findings, robots.records)
    later, idle_later = rules_without_effect(body)
    keys = ("line", "severity", "kind", "clause", "message", "hint", "text")
    return {
        "path": path,
        "findings": [
            {key: getattr(finding, key) for key in keys} | {"severity": finding.severity.value}
            for finding in findings
        ],
        "rules": len(rules),
        "without_effect": idle,
        "rfc9309": {"rules": len(later), "without_effect": idle_later},
    }


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
        last += f"; by RFC 9309, {len(idle)} of {by_rfc['rules']}"
    yield last
