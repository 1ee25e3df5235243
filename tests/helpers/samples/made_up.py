"""Evidence of a made-up crawl of a few hosts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from scrapy.http import Response
from scrapy.utils.python import global_object_name

from scrapy_norobots.features.evidence.audit import Audit, Problem
from scrapy_norobots.features.evidence.fields import Answer, Made, Settings
from scrapy_norobots.features.evidence.writer import Writer
from scrapy_norobots.rules.access import Access, Judge, StatusPolicy
from scrapy_norobots.rules.parser import Rules, StrictRobotParser
from scrapy_norobots.rules.snapshot import Freshness, Snapshot
from scrapy_norobots.standard import Origin, RobotsTxt

TOWN = Origin("http", "town.example", 80)
FILE = b"User-agent: *\nDisallow: /back/\n"
TIME = 1_700_000_000.0
BODY_MAX = 2 * 1024 * 1024
SETTINGS = Settings(
    policy=dict(StatusPolicy.of("koster1996").table),
    parsers=[global_object_name(StrictRobotParser)],
)
JUDGE = Judge(StatusPolicy.of("koster1996"), Freshness(600, 86_400, 60, 7 * 86_400), RobotsTxt.parse)


def strict(settings: Settings) -> Callable[[bytes], Rules]:
    """Stand for what the command knows of parsers."""
    if list(settings.parsers) != [global_object_name(StrictRobotParser)]:
        raise LookupError(f"unknown parser {settings.parsers}")
    return partial(RobotsTxt.parse, multivalue=settings.multivalue)


def end(writer: Writer) -> None:
    writer.end(60)
    assert writer.has_ended


def access(body: bytes = FILE, origin: Origin = TOWN, when: float = TIME) -> Access:
    return JUDGE.judge(Snapshot(origin, origin.robots_url, when, 200, body=body))


def answer(of: Access) -> Answer:
    snapshot = of.snapshot
    response = Response(snapshot.url, body=snapshot.body, headers={"Content-Type": "text/plain"})
    return Answer(snapshot.origin, response, snapshot.time, judged=snapshot.body)


def made(url: str, by: Access, when: float = 0) -> Made:
    decision = by.decide(url, "FooBot")
    when = when or by.snapshot.time + 1
    return Made(when, url, b"FooBot", url, by, None if decision else decision)


def problems(folder: Path) -> list[Problem]:
    return list(Audit(folder.iterdir(), strict).problems())


def write(folder: Path, count: int = 3, padding: bytes = b"", **options: Any) -> Writer:
    """Write the evidence of a crawl of a few hosts."""
    writer = Writer(folder, "town-1", SETTINGS, **options)
    for number in range(count):
        origin = TOWN._replace(host=f"{number % 200}.example")
        by = access(FILE + b"# %d\n" % number + padding, origin, TIME + number)
        writer.put(answer(by))
        for path in ("", "a", "back/", "%62ack/"):
            writer.put(made(f"{by.snapshot.origin}/{path}", by))
    end(writer)
    return writer
