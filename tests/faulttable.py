"""Makes docs/fault-table.md: ``python -m tests.faulttable > docs/fault-table.md`` (two minutes).

Each fault of the lab is crawled by itself, with this plugin and with Scrapy's own middleware, in one run and
under the same limits, so that stats and log lines can be told apart.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from tests.crawling import ADDON, run_crawl
from tests.sites.faults import FAULTS, Fault, FaultLab

LIMITS = {"NOROBOTS_TIMEOUT": 2, "NOROBOTS_MAXSIZE": 100_000, "RETRY_ENABLED": False}
BUILTIN = {
    "ROBOTSTXT_OBEY": True,
    "DOWNLOAD_TIMEOUT": LIMITS["NOROBOTS_TIMEOUT"],
    "DOWNLOAD_MAXSIZE": LIMITS["NOROBOTS_MAXSIZE"],
    "RETRY_ENABLED": False,
}
_TOLD_ELSEWHERE = ("robotstxt/request_count", "robotstxt/response_count", "robotstxt/forbidden")

HEAD = """\
# Fault table

Made by `python -m tests.faulttable`, which crawls the hosts of `tests/sites/faults.py`, each with a fault
of its own, and two pages at each: `/open`, and `/back/`, which a good robots.txt there would forbid. Both
middlewares were given the same limits ({timeout} s and {maxsize:,} bytes, no retries) and run with their
defaults otherwise, on Scrapy {scrapy} and Python {python}. Left alone, Scrapy's own waits 180 s and takes
1 GiB.

*rules*: `/back/` was dropped. *open*: neither was. *closed*: both were.

| robots.txt | outcome | Scrapy's own | what the log says | stats |
|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Row:
    """What became of the crawl of one fault."""

    fault: str
    outcome: str
    log: list[str]
    stats: list[str]


def outcome(pages: list[str], origin: str) -> str:
    """Say in a word which of the two pages of a host came."""
    came = {page.removeprefix(origin) for page in pages}
    return {
        (True, True): "open",
        (True, False): "rules",
        (False, False): "closed",
        (False, True): "upside down",
    }["/open" in came, "/back/" in came]


def crawl_one(lab: FaultLab, fault: Fault, settings: dict[str, Any]) -> Row:
    origin = lab.origin(fault)
    # Pages that a link led to: a start request that is dropped has a log line of its own.
    done = run_crawl(f"{origin}/open", f"{origin}/back/", settings=settings)
    seen = json.loads(done.stdout)
    lines = re.findall(r"\[scrapy_norobots[\w.]+\] (\w+: [\w ]+ at http.*)", done.stderr)
    stats = [
        f"`{name}`"
        for name in seen["stats"]
        if name.startswith(("robotstxt/", "norobots/")) and name not in _TOLD_ELSEWHERE
    ]
    return Row(fault.name, outcome(seen["pages"], origin), [tidy(line) for line in lines], sorted(stats))


def tidy(line: str) -> str:
    """Take out of a log line what is another number each time."""
    line = re.sub(r"http(s?)://(127\.0\.3\.\d+|a{64}\.example):\d+", r"http\1://HOST", line)
    line = re.sub(r"\(([A-Z]\w+)(: .*?)?\), and NOROBOTS", r"(\1…), and NOROBOTS", line)
    return f"`{line}`"


def rows() -> Iterator[tuple[Row, Row]]:
    """Crawl each fault with both middlewares."""
    ours = {**ADDON, **LIMITS}
    with FaultLab() as lab, ThreadPoolExecutor(max_workers=2) as pool:

        def both(fault: Fault) -> tuple[Row, Row]:
            return crawl_one(lab, fault, ours), crawl_one(lab, fault, BUILTIN)

        for number, pair in enumerate(pool.map(both, FAULTS), 1):
            print(f"\r{number} of {len(FAULTS)} faults", end="", file=sys.stderr, flush=True)
            yield pair
        print(file=sys.stderr)


def main() -> None:
    print(
        HEAD.format(
            timeout=LIMITS["NOROBOTS_TIMEOUT"],
            maxsize=LIMITS["NOROBOTS_MAXSIZE"],
            scrapy=version("scrapy"),
            python=sys.version.split()[0],
        ),
        end="",
    )
    for ours, builtin in rows():
        cells = [ours.fault, ours.outcome, builtin.outcome, "<br>".join(ours.log), "<br>".join(ours.stats)]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
