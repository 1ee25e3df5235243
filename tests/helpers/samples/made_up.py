"""Evidence of a made-up crawl of a few hosts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from scrapy.http import Response

from scrapy_norobots.features.evidence.answers import Answer
from scrapy_norobots.features.evidence.audit import Audit, Problem
from scrapy_norobots.features.evidence.decisions import Made
from scrapy_norobots.features.evidence.fields import AIOHTTP, MULTIVALUE, POLICY
from scrapy_norobots.features.evidence.writer import Writer
from scrapy_norobots.rules.access import Access, Judge, StatusPolicy
from scrapy_norobots.rules.freshness import Freshness
from scrapy_norobots.rules.parser import Rules
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.rules.spellings import knows_aiohttp
from scrapy_norobots.standard import Origin, RobotsTxt

TOWN = Origin("http", "town.example", 80)
FILE = b"User-agent: *\nDisallow: /back/\n"
TIME = 1_700_000_000.0
ABOUT = {
    POLICY: json.dumps(dict(StatusPolicy.of("koster1996").table)),
    MULTIVALUE: "False",
    AIOHTTP: str(knows_aiohttp()),
}
JUDGE = Judge(StatusPolicy.of("koster1996"), Freshness(600, 86_400, 60, 7 * 86_400), RobotsTxt.parse)


def strict(
    names: Sequence[str], *, is_strict: bool, multivalue: bool, **_: object
) -> Callable[[bytes], Rules]:
    """Stand for what the command knows of parsers."""
    if list(names) != ["StrictRobotParser"] or not is_strict:
        raise LookupError(f"unknown parser {names}")
    return lambda body: RobotsTxt.parse(body, multivalue=multivalue)


def end(writer: Writer) -> None:
    writer.stop()
    writer._thread.join()


def access(body: bytes = FILE, origin: Origin = TOWN, when: float = TIME) -> Access:
    return JUDGE.judge(Snapshot(origin, origin.robots_url, when, 200, body=body))


def answer(of: Access) -> Answer:
    snapshot = of.snapshot
    response = Response(snapshot.url, body=snapshot.body, headers={"Content-Type": "text/plain"})
    return Answer(snapshot.origin, response, snapshot.time, judged=snapshot.body)


def made(url: str, by: Access, when: float = TIME + 1) -> Made:
    decision = by.decide(url, "FooBot")
    return Made(when, url, b"FooBot", url, by, None if decision else decision)


def problems(folder: Path) -> list[Problem]:
    return list(Audit(folder.iterdir(), strict).problems())


def write(folder: Path, count: int = 3, padding: bytes = b"", **options: Any) -> Writer:
    """Write the evidence of a crawl of a few hosts."""
    writer = Writer(folder, "town-1", ABOUT, **options)
    for number in range(count):
        origin = TOWN._replace(host=f"{number % 200}.example")
        by = access(FILE + b"# %d\n" % number + padding, origin, TIME + number)
        writer.put(answer(by))
        for path in ("", "a", "back/", "%62ack/"):
            writer.put(made(f"{by.snapshot.origin}/{path}", by))
    end(writer)
    return writer
