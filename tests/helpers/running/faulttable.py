"""Crawl each fault of the lab with both middlewares, in two minutes.

``python -m tests.helpers.running.faulttable`` writes `CSV`, and the sections of docs/fault-table.md. Each
fault is crawled separately, so that its stats and log lines are known: once with this plugin and once with
Scrapy's own middleware, with the same limits. Run it with the newest Scrapy.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tests.helpers.running.crawling import ADDON, run_crawl
from tests.helpers.running.processes import ROOT
from tests.helpers.sites.faults import FAULTS, Fault, FaultLab

LIMITS = {"NOROBOTS_TIMEOUT": 2, "NOROBOTS_MAXSIZE": 100_000, "RETRY_ENABLED": False}
BUILTIN = {
    "ROBOTSTXT_OBEY": True,
    "DOWNLOAD_TIMEOUT": LIMITS["NOROBOTS_TIMEOUT"],
    "DOWNLOAD_MAXSIZE": LIMITS["NOROBOTS_MAXSIZE"],
    "RETRY_ENABLED": False,
}
_TOLD_ELSEWHERE = ("robotstxt/request_count", "robotstxt/response_count", "robotstxt/forbidden")

CSV = ROOT / "tests" / "helpers" / "sites" / "faults.csv"
PAGE = ROOT / "docs" / "fault-table.md"
COLUMNS = ("robots.txt", "this plugin", "Scrapy's own", "log", "stats")
# The sections of the page, by what both do.
SECTIONS = {
    ("closed", "open"): "Scrapy crawls everything; this plugin crawls nothing",
    ("closed", "rules"): "Scrapy obeys an error page or half of a file; this plugin crawls nothing",
    ("rules", "open"): "Scrapy crawls everything; this plugin reads the rules",
    ("open", "rules"): "Scrapy obeys an error page; this plugin crawls everything",
}
_CODING = re.compile(r"^(not |incomplete |Content-Encoding says |)(gzip|raw deflate|deflate|br|zstd)\b")


@dataclass(frozen=True)
class Row:
    """The results of the crawl of one fault."""

    fault: str
    outcome: str
    log: list[str]
    stats: list[str]


def outcome(pages: list[str], origin: str) -> str:
    """Return in one word which of the two pages of a host were fetched."""
    came = {page.removeprefix(origin) for page in pages}
    return {
        (True, True): "open",
        (True, False): "rules",
        (False, False): "closed",
        (False, True): "upside down",
    }["/open" in came, "/back/" in came]


def crawl_one(lab: FaultLab, fault: Fault, settings: dict[str, Any]) -> Row:
    origin = lab.origin(fault)
    # Pages behind links, because a dropped start request logs a line of its own.
    done = run_crawl(f"{origin}/open", f"{origin}/back/", settings=settings)
    seen = json.loads(done.stdout)
    lines = re.findall(r"\[scrapy_norobots[\w.]+\] (\w+: http\S+ (?:answered|could not) .*)", done.stderr)
    stats = [
        name
        for name, value in seen["stats"].items()
        if value and name.startswith(("robotstxt/", "norobots/")) and name not in _TOLD_ELSEWHERE
    ]
    return Row(fault.name, outcome(seen["pages"], origin), [tidy(line) for line in lines], sorted(stats))


def tidy(line: str) -> str:
    """Remove from a log line what differs in each run."""
    line = re.sub(r"http(s?)://(127\.0\.3\.\d+|a{64}\.example):\d+", r"http\1://HOST", line)
    return re.sub(r"\(([A-Z]\w+)(: .*?)?\): requests", r"(\1…): requests", line)


def rows() -> Iterator[tuple[Row, Row]]:
    """Crawl each fault with both middlewares, and yield the results."""
    ours = {**ADDON, **LIMITS}
    with FaultLab() as lab, ThreadPoolExecutor(max_workers=2) as pool:

        def both(fault: Fault) -> tuple[Row, Row]:
            return crawl_one(lab, fault, ours), crawl_one(lab, fault, BUILTIN)

        for number, pair in enumerate(pool.map(both, FAULTS), 1):
            print(f"\r{number} of {len(FAULTS)} faults", end="", file=sys.stderr, flush=True)
            yield pair
        print(file=sys.stderr)


def sections(table: list[dict[str, str]]) -> str:
    """Return the sections of the page: the faults that both middlewares treat differently."""
    parts = []
    for outcomes, title in SECTIONS.items():
        names = [row[COLUMNS[0]] for row in table if (row[COLUMNS[1]], row[COLUMNS[2]]) == outcomes]
        parts.append(f"## {title}\n\n" + "".join(f"- {name}\n" for name in merged(names)))
    return "\n".join(parts)


def merged(names: list[str]) -> list[str]:
    """Merge the names that differ only in the compression."""
    codings: dict[str, list[str]] = {}
    for name in names:
        found = _CODING.match(name)
        codings.setdefault(_CODING.sub(r"\1{}", name), []).append(found[2] if found else "")
    return [name.replace("{}", " / ".join(found)) for name, found in codings.items()]


def read() -> list[dict[str, str]]:
    """Return the rows of the file."""
    with CSV.open(newline="") as file:
        return list(csv.DictReader(file))


def main() -> None:
    with CSV.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for ours, builtin in rows():
            outcomes = (ours.fault, ours.outcome, builtin.outcome)
            writer.writerow([*outcomes, "\n".join(ours.log), "\n".join(ours.stats)])
    before = PAGE.read_text().partition("## ")[0]
    PAGE.write_text(before + sections(read()))


if __name__ == "__main__":
    main()
