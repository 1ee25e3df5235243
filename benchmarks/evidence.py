"""``evidence``: what evidence costs a crawl, and how fast it is audited.

200 hosts of 25 pages, with and without `NOROBOTS_EVIDENCE`, both at the same moment: the speed of a machine
may change more from one crawl to the next than evidence costs. Then the decisions of a made-up crawl of
10,000 hosts, 1,000,000 of them, are written and audited.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from scrapy.http import Response
from scrapy.utils.python import global_object_name

from benchmarks import command
from benchmarks.crawl import Measured, measure, serving
from benchmarks.report import progress, table, with_ratio
from scrapy_norobots.features.evidence import fields
from scrapy_norobots.features.evidence.fields import Answer, Made
from scrapy_norobots.features.evidence.writer import Writer
from scrapy_norobots.rules.access import Judge, StatusPolicy
from scrapy_norobots.rules.parser import StrictRobotParser
from scrapy_norobots.rules.snapshot import Freshness, Snapshot
from scrapy_norobots.standard import Origin, RobotsTxt

HOSTS, PAGES = 200, 25
SETTINGS = {"CONCURRENT_REQUESTS": 16, "CONCURRENT_REQUESTS_PER_DOMAIN": 16}
AUDITED_HOSTS = 10_000
# Set EVIDENCE_DECISIONS to audit more, or fewer.
DECISIONS = int(os.environ.get("EVIDENCE_DECISIONS", "1000000"))
ROBOTS = b"User-agent: *\nDisallow: /back/\nDisallow: /attic/\n"


def run(rounds: int) -> None:
    """Measure and print the tables."""
    pages = HOSTS * PAGES
    seen: dict[str, list[Measured]] = {"without": [], "with": []}
    sizes: list[int] = []
    with serving() as port:
        urls = [f"http://127.1.0.{host + 1}:{port}/{page}" for page in range(PAGES) for host in range(HOSTS)]
        for number in range(1, rounds + 1):
            progress(f"round {number} of {rounds}")
            with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(len(seen)) as threads:
                crawls = {
                    kind: threads.submit(measure, "norobots", urls, {**SETTINGS, "NOROBOTS_EVIDENCE": place})
                    for kind, place in (("without", ""), ("with", folder))
                }
                for kind, crawl in crawls.items():
                    seen[kind].append(crawl.result())
                sizes.append(_size(Path(folder), ".jsonl.gz"))
    base = [one.cpu / pages * 1e6 for one in seen["without"]]
    rows = [
        [
            kind,
            with_ratio([one.cpu / pages * 1e6 for one in all_measured], base, "µs"),
            f"{min(one.peak for one in all_measured) / 1e6:.1f} MB",
        ]
        for kind, all_measured in seen.items()
    ]
    table(
        f"evidence: medians of {rounds} rounds; {median(sizes) / pages:.0f} bytes a decision",
        ["evidence", "processor time a page", "peak memory"],
        rows,
    )
    audit()


def _size(folder: Path, suffix: str) -> int:
    return sum(path.stat().st_size for path in folder.iterdir() if path.name.endswith(suffix))


def audit() -> None:
    """Write many decisions, audit them in a process of its own, and print what that took."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        progress(f"{DECISIONS:,} decisions are written")
        start = time.process_time()
        write(folder)
        written = time.process_time() - start
        progress("and audited")
        done = command.measure([sys.executable, "-m", "scrapy", "robots-audit", "--json", name])
        summary = json.loads(done.output)
        assert not summary["problems"], summary
        table(
            f"evidence: an audit of {sum(summary['decisions'].values()):,} decisions",
            [
                "hosts",
                "written, processor time",
                "bytes a decision",
                "audited, processor time",
                "peak memory",
            ],
            [
                [
                    f"{AUDITED_HOSTS:,}",
                    f"{written / DECISIONS * 1e6:.1f} µs a decision",
                    f"{_size(folder, '.jsonl.gz') / DECISIONS:.0f}",
                    f"{done.cpu / DECISIONS * 1e6:.1f} µs a decision",
                    f"{done.peak / 1e6:.0f} MB",
                ]
            ],
        )


def write(folder: Path) -> None:
    """Write the evidence of a crawl that asks all hosts in turn."""
    policy = StatusPolicy.of("koster1996")
    judge = Judge(policy, Freshness(600, 86_400, 60, 7 * 86_400), RobotsTxt.parse)
    settings = fields.Settings(
        policy=dict(policy.table),
        parsers=[global_object_name(StrictRobotParser)],
    )
    writer = Writer(folder, "town-1", settings, queue_max=2**40)
    now = time.time()
    accesses = []
    for number in range(AUDITED_HOSTS):
        origin = Origin("http", f"{number}.town.example", 80)
        body = ROBOTS + b"# %d\n" % number
        snapshot = Snapshot(origin, origin.robots_url, now, 200, body=body)
        accesses.append(judge.judge(snapshot))
        writer.put(Answer(origin, Response(snapshot.url, body=body), now, judged=body))
    robot = b"FooBot/1.0 (+http://foo.example/bot)"
    for number in range(DECISIONS):
        access = accesses[number % AUDITED_HOSTS]
        place = ("catalogue", "books", "back")[number % 3]
        url = f"{access.snapshot.origin}/{place}/{number}.html"
        decision = access.decide(url, robot) if place == "back" else None
        writer.put(Made(now + number / DECISIONS, url, robot, url, access, decision))
        if number % 50_000 == 0:
            while writer._queue:
                time.sleep(0.05)
    writer.end(3600)
    assert not writer.lost
