"""Decisions that are made again; `test_forgery` has what does not agree."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.robotstxt import ProtegoRobotParser

from scrapy_norobots.features.evidence.answers import read_record
from scrapy_norobots.features.evidence.audit import Judging, MismatchError
from scrapy_norobots.features.evidence.fields import VERSIONS, Made, Settings, decision_line
from scrapy_norobots.rules.access import Access
from scrapy_norobots.rules.parser import AllRules, ForeignRules
from scrapy_norobots.standard import Decision, RobotsTxt, Verdict
from scrapy_norobots.standard.records import Rule
from tests.helpers.samples.made_up import BODY_MAX, JUDGE, SETTINGS, TOWN, access, answer, made


def judging(
    by: Access, settings: Settings = SETTINGS, read: Callable[[bytes], Any] = RobotsTxt.parse
) -> Judging:
    found = Judging(settings, replace(JUDGE, parse=read), VERSIONS)
    found.add(read_record(answer(by).packed(), BODY_MAX))
    return found


def check(found: Judging, record: Made) -> None:
    line = decision_line(record)
    found.check(line, json.loads(line))


class ByLine:
    """A reading that names lines, as the strict one does: rules of a parser with a name of its own."""

    size = 0

    def __init__(self, body: bytes) -> None:
        self._robots = RobotsTxt.parse(body)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._robots, name)

    def decide(self, url: str, robot: str | bytes, source: str | None = None) -> Decision:
        decision = self._robots.decide(url, robot, source)
        rule = Rule(7, "/back/*") if decision.rule else None
        return replace(decision, rule=rule, parser="OtherRobotParser")


def test_the_line_of_any_reading_is_recorded_and_checked() -> None:
    """Only what a decision says of itself counts, not which reading it is of, nor whether it is the first."""
    foreign = ForeignRules(ProtegoRobotParser(b"", None), b"")  # it allows all

    def read(body: bytes) -> Any:
        return AllRules([foreign, ByLine(body)])  # it answers the same questions

    by = replace(JUDGE, parse=read).judge(access().snapshot)
    found = judging(by, read=read)
    decision = by.decide(f"{TOWN}/back/", "FooBot")
    record = made(f"{TOWN}/back/", by)
    line = decision_line(record)
    facts = json.loads(line)
    assert decision.verdict is Verdict.FORBIDDEN
    assert (facts["line"], facts["rule"], facts["parser"]) == (7, "/back/*", "OtherRobotParser")
    check(found, record)
    other = line.replace(b'"line": 7', b'"line": 2')
    with pytest.raises(MismatchError, match=r"recorded with line 2; judged with line 7"):
        found.check(other, json.loads(other))
    found.close()


@pytest.mark.parametrize(
    ("url", "aiohttp", "problem"),
    [("wow%21;", True, "recorded with verdict 'allowed'"), ("wow;", False, ""), ("wow%21;", False, "")],
)
def test_a_crawl_is_audited_by_the_spellings_that_it_checked(
    monkeypatch: pytest.MonkeyPatch, url: str, aiohttp: bool, problem: str
) -> None:
    by = access(b"User-agent: *\nDisallow: /wow!\n")
    monkeypatch.setattr(
        "scrapy_norobots.rules.access._aiohttp_url", lambda: lambda _: SimpleNamespace(raw_path_qs="/wow!")
    )
    record = Made(by.snapshot.time, f"{TOWN}/{url}", b"FooBot", f"{TOWN}/{url}", by)
    found = judging(by, replace(SETTINGS, aiohttp=aiohttp))
    if problem:
        with pytest.raises(MismatchError, match=problem):
            check(found, record)
        monkeypatch.setattr("scrapy_norobots.rules.access._aiohttp_url", lambda: None)
        with pytest.raises(MismatchError, match="install aiohttp"):
            check(found, record)
    else:
        check(found, record)
    found.close()
