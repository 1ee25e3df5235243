"""``memory``: the memory of 200,000 origins with the default limit.

They pass through the cache as in a broad crawl, each with its own robots.txt, which is judged and prepared
like a download, and asked about one URL. Memory is that of the process, minus its memory before the first
origin.
"""

from __future__ import annotations

import gc
import os
import random
import time
from pathlib import Path

from benchmarks.files import a_file, page_urls
from benchmarks.peers import ROBOT
from benchmarks.report import progress, table
from scrapy_norobots.rules.access import Judge, OriginCache, StatusPolicy
from scrapy_norobots.rules.snapshot import Freshness, Snapshot
from scrapy_norobots.settings import DEFAULTS
from scrapy_norobots.standard import Origin, RobotsTxt

ORIGINS, STEP = 200_000, 25_000


def resident() -> int:
    """Return the memory of this process, in bytes (Linux)."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def fill(memory_max: int) -> list[list[str]]:
    """Put all origins into a cache with a limit of bytes, and return the rows of the table."""
    some = random.Random(1994)
    judge = Judge(StatusPolicy.of("koster1996"), Freshness(600, 86_400, 60, 7 * 86_400), RobotsTxt.parse)
    target = page_urls(1)[0].partition(".example")[2]

    cache = OriginCache(memory_max=memory_max)
    before = resident()
    rows = []
    for number in range(1, ORIGINS + 1):
        origin = Origin("http", f"{number}.town.example", 80)
        snapshot = Snapshot(origin, origin.robots_url, time.time(), 200, body=a_file(some))
        access = judge.judge(snapshot)
        access.prepare(ROBOT)
        cache.put(origin, access)
        access.forbids(origin, target, ROBOT)
        if number % STEP == 0:
            grown, kept = resident() - before, len(cache._entries)
            progress(f"{number:,} origins")
            rows.append(
                [
                    f"{number:,}",
                    f"{kept:,}",
                    f"{cache.size / 1e6:.1f} MB",
                    f"{grown / 1e6:.1f} MB",
                    f"{grown / kept / 1e3:.2f} kB",
                ]
            )
    return rows


def run(rounds: int) -> None:
    """Measure and print one table per round; later rounds reuse memory that earlier ones have freed."""
    memory_max = int(str(DEFAULTS["NOROBOTS_MEMORY_MAX"]))
    for _ in range(rounds):
        rows = fill(memory_max)
        columns = ["origins met", "kept", "by its own count", "resident memory, grown by", "an origin kept"]
        table(f"memory: at most {memory_max / 2**20:.0f} MiB", columns, rows)
