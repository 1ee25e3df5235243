"""``check``: ``scrapy robots-check`` with a million URLs of 1,000 origins.

It uses a file, a store, and the robots.txt files of the sites. The URLs of all origins are mixed.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.command import Measured, measure
from benchmarks.crawl import serving
from benchmarks.report import progress, table
from benchmarks.server import ROBOTS
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Origin
from scrapy_norobots.stores.opening import open_store

URLS = 1_000_000
ORIGINS = 1_000


def check(folder: Path, urls: Path, *options: str) -> Measured:
    """Run the command with a file of URLs on its standard input."""
    command = [sys.executable, "-m", "scrapy", "robots-check", *options, "-"]
    with urls.open() as stdin, Path(os.devnull).open("w") as stdout:
        return measure(command, stdin=stdin, stdout=stdout, cwd=folder)


def write_urls(folder: Path, port: int) -> tuple[Path, Path]:
    """Write all URLs to a file, and one of each origin to another."""
    some = random.Random(1994)
    hosts = [f"127.1.{number // 250}.{number % 250 + 1}" for number in range(ORIGINS)]
    many, few = folder / "many", folder / "few"
    few.write_text("".join(f"http://{host}:{port}/\n" for host in hosts))
    with many.open("w") as file:
        for number in range(URLS):
            place = some.choice(("back", "garden", "garden/nest"))
            file.write(f"http://{some.choice(hosts)}:{port}/{place}/page-{number}.html\n")
    return many, few


async def fill(value: str, urls: Path) -> None:
    """Save the answers of the sites in a store."""
    store = open_store(value, 2**30)
    for url in urls.read_text().split():
        origin = Origin.of(url)
        assert origin is not None
        snapshot = Snapshot(origin, origin.robots_url, time.time(), 200, body=ROBOTS)
        await store.save((snapshot,), time.time() + 86_400)
    await store.close()


def run(rounds: int) -> None:
    """Measure and print the table."""
    with tempfile.TemporaryDirectory() as name, serving() as port:
        folder = Path(name)
        many, few = write_urls(folder, port)
        (folder / "robots.txt").write_bytes(ROBOTS)
        asyncio.run(fill(f"sqlite:///{folder}/robots.sqlite", few))
        ways = {
            "`--file`": ("--file", "robots.txt"),
            "`--store`, SQLite": ("--store", "sqlite:///robots.sqlite"),
            "the sites": (),
            "the sites, `--json`": ("--json",),
        }
        seen: dict[str, list[tuple[Measured, Measured]]] = {way: [] for way in ways}
        for number in range(1, rounds + 1):
            for way, options in ways.items():
                progress(f"round {number} of {rounds}: {way}")
                seen[way].append((check(folder, many, *options), check(folder, few, *options)))
    rows = []
    for way, runs in seen.items():
        rows.append(
            [
                way,
                f"{median(URLS / many.seconds for many, _ in runs):,.0f}",
                f"{median((many.cpu - few.cpu) / (URLS - ORIGINS) for many, few in runs) * 1e6:.1f} µs",
                f"{median(many.peak for many, _ in runs) / 1e6:.0f} MB",
                f"{median(few.peak for _, few in runs) / 1e6:.0f} MB",
            ]
        )
    title = f"check: {URLS:,} URLs of {ORIGINS:,} origins; medians of {rounds} rounds"
    columns = ["", "URLs a second", "processor time a URL", "peak memory", f"with {ORIGINS:,} URLs"]
    table(title, columns, rows)
