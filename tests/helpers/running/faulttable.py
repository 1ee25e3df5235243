"""Generate docs/fault-table.md, in two minutes.

Run it as ``python -m tests.helpers.running.faulttable > docs/fault-table.md``. Each fault of the lab is
crawled separately, so that its stats and log lines are known: once with this plugin and once with Scrapy's
own middleware, with the same limits.
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

from tests.helpers.running.crawling import ADDON, run_crawl
from tests.helpers.sites.faults import FAULTS, Fault, FaultLab

LIMITS = {"NOROBOTS_TIMEOUT": 2, "NOROBOTS_MAXSIZE": 100_000, "RETRY_ENABLED": False}
BUILTIN = {
    "ROBOTSTXT_OBEY": True,
    "DOWNLOAD_TIMEOUT": LIMITS["NOROBOTS_TIMEOUT"],
    "DOWNLOAD_MAXSIZE": LIMITS["NOROBOTS_MAXSIZE"],
    "RETRY_ENABLED": False,
}
_TOLD_ELSEWHERE = ("robotstxt/request_count", "robotstxt/response_count", "robotstxt/forbidden")

HEAD = """\
# Fault table: what happens when robots.txt is wrong

This page shows what your crawl may fetch when a robots.txt has a fault, with this plugin and with Scrapy's
own robots.txt middleware. [When robots.txt cannot be downloaded](download-failures.md) explains the policy
behind it.

Two pages were requested from each host: `/open`, and `/back/`, which a good robots.txt of that host would
forbid.

- *rules*: `/back/` was dropped, and `/open` was fetched.
- *open*: both pages were fetched.
- *closed*: both pages were dropped, or could not be downloaded.

Both middlewares had the same limits (a timeout of {timeout} s, {maxsize:,} bytes, no retries), on Scrapy
{scrapy} and Python {python}. The plugin also had `NOROBOTS_RETRY_CLOSED = 0`, so that it dropped requests at
once. All other settings had their defaults. With its default limits, Scrapy's own middleware waits up to
180 s and accepts files of up to 1 GiB. The column "what the plugin logs" has only the lines about the
download, and not those about dropped requests or about [lines without
effect](log-lines.md#robotstxt-has-lines-without-effect). `HOST` replaces the real host. The last column names
the most important stats of each crawl that are not 0. `python -m tests.helpers.running.faulttable` generates
this page from the hosts in `tests/helpers/sites/faults.py`.

| robots.txt | this plugin | Scrapy's own | what the plugin logs | its stats |
|---|---|---|---|---|
"""


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
        f"`{name}`"
        for name, value in seen["stats"].items()
        if value and name.startswith(("robotstxt/", "norobots/")) and name not in _TOLD_ELSEWHERE
    ]
    return Row(fault.name, outcome(seen["pages"], origin), [tidy(line) for line in lines], sorted(stats))


def tidy(line: str) -> str:
    """Remove from a log line what differs in each run."""
    line = re.sub(r"http(s?)://(127\.0\.3\.\d+|a{64}\.example):\d+", r"http\1://HOST", line)
    line = re.sub(r"\(([A-Z]\w+)(: .*?)?\): requests", r"(\1…): requests", line)
    return f"`{line}`"


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
