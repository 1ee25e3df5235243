"""Decisions that are made again; `test_forgery` has what does not agree."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from scrapy.robotstxt import ProtegoRobotParser

from scrapy_norobots.features.evidence import judging as judging_module
from scrapy_norobots.features.evidence.fields import date_of, digest_of
from scrapy_norobots.features.evidence.index import Index, Outcome
from scrapy_norobots.features.evidence.judging import Judging, MismatchError, Reading
from scrapy_norobots.features.evidence.runs import Settings
from scrapy_norobots.rules.parser import Rules
from scrapy_norobots.standard import RobotsTxt
from tests.helpers.samples.made_up import ABOUT, BODY_MAX, FILE, TIME, TOWN, strict

LINE: dict[str, Any] = {
    "seq": 1,
    "prev": 64 * "0",
    "time": date_of(TIME + 1),
    "url": f"{TOWN}/back/",
    "verdict": "forbidden",
    "robot": "FooBot",
    "origin": str(TOWN),
    "reason": "rule",
    "line": 2,
    "rule": "/back/",
    "robots_digest": digest_of(FILE),
    "robots_time": date_of(TIME),
    "parser": "StrictRobotParser",
}


@pytest.fixture
def index(tmp_path: Any) -> Iterator[Index]:
    with closing(Index(BODY_MAX)) as index:
        index.add_outcome(str(TOWN), date_of(TIME), Outcome(None, digest_of(FILE)))
        index.add_body(digest_of(FILE), FILE, tmp_path, 0)
        yield index


def test_a_right_decision_raises_nothing(index: Index) -> None:
    judging = Judging(Settings.of(ABOUT), index, strict)
    judging.check(dict(LINE))
    assert judging.not_judged == 0


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"url": f"{TOWN}/front/"}, "judged as allowed"),
        ({"url": "http://other.example/back/"}, "does not belong to the origin"),
        ({"url": "/back/"}, "does not belong to the origin"),
        ({"url": "data:,a"}, "does not belong to the origin"),
        ({"time": date_of(TIME - 1)}, "before its robots.txt was downloaded"),
    ],
)
def test_what_lines_do_not_share_is_checked_in_each(
    index: Index, changes: dict[str, Any], problem: str
) -> None:
    judging = Judging(Settings.of(ABOUT), index, strict)
    for _ in range(2):
        judging.check(LINE, "an end")
        with pytest.raises(MismatchError, match=problem):
            judging.check({**LINE, **changes}, "an end")


def test_a_claim_that_the_evidence_does_not_support_is_not_remembered(index: Index) -> None:
    judging = Judging(Settings.of(ABOUT), index, strict)
    for _ in range(2):
        with pytest.raises(MismatchError, match="the digest of its"):
            judging.check({**LINE, "robots_digest": digest_of(b"")}, "an end")
        with pytest.raises(MismatchError, match="marked as of a dry run"):
            judging.check({**LINE, "dry_run": True}, "another end")


def test_claims_keep_no_more_parsed_files_than_the_limit_says(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging_module, "_PARSED_MAX", 10_000)
    monkeypatch.setattr(judging_module, "_CLAIMS_MAX", 3)
    judging = Judging(Settings.of(ABOUT), index, strict)
    for number in range(20):
        town = TOWN._replace(host=f"{number}.town.example")
        index.add_outcome(str(town), date_of(TIME), Outcome(None, digest_of(FILE)))
        judging.check({**LINE, "url": f"{town}/back/", "origin": str(town)}, f"end {number}")
        judging.check(LINE, f"the town's end {number}")
        assert 0 < len(judging._claims) <= 3
        assert {id(claim.access) for claim in judging._claims.values()} <= set(
            map(id, judging._parsed.values())
        )


def test_one_reading_serves_all_decisions_of_a_run(index: Index) -> None:
    calls = 0

    def readings(*args: Any, **kwargs: Any) -> Reading:
        nonlocal calls
        calls += 1
        return strict(*args, **kwargs)

    judging = Judging(Settings.of(ABOUT), index, readings)
    for _ in range(5):
        judging.check(dict(LINE))
    assert calls == 1


def test_an_unknown_parser_cannot_judge_files_but_the_rest(index: Index) -> None:
    settings = Settings.of(ABOUT)._replace(parsers=("town.TownParser",))
    judging = Judging(settings, index, strict)
    with pytest.raises(LookupError, match="unknown parser"):
        judging.check({**LINE, "parser": "TownParser"})
    with pytest.raises(LookupError):
        judging.can_read(FILE)
    judging.check(
        {**LINE, "url": "data:,a", "verdict": "allowed", "reason": "not_web", "origin": None, "line": None,
         "rule": None, "robots_digest": None, "robots_time": None, "parser": None}
    )  # fmt: skip


def test_a_shortened_url_of_a_page_is_not_judged(index: Index) -> None:
    judging = Judging(Settings.of(ABOUT), index, strict)
    line = {**LINE, "url": f"{TOWN}/back/{1_000 * 'x'}"[:1_000], "shortened": {"url": digest_of(b"")}}
    judging.check(line)
    assert judging.not_judged == 1
    for name, value in (("robots_digest", None), ("origin", "http://shut.example"), ("parser", "Other")):
        with pytest.raises(MismatchError):
            judging.check({**line, name: value})


def test_another_version_is_named_beside_a_mismatch(index: Index) -> None:
    settings = Settings.of(ABOUT)._replace(python="CPython 3.9.1")
    with pytest.raises(MismatchError, match=r"judged as .* \(CPython 3.9.1 in the crawl, .* here\)"):
        Judging(settings, index, strict).check({**LINE, "line": 3})


def test_a_parser_that_fails_on_a_file_cannot_read_it(index: Index) -> None:
    def read(body: bytes) -> Rules:
        if body == b"bad":
            raise RuntimeError
        return RobotsTxt.parse(body)

    def readings(*_: Any, **__: Any) -> Reading:
        return Reading(read, (ProtegoRobotParser.__name__,))

    judging = Judging(Settings.of(ABOUT), index, readings)
    assert judging.can_read(FILE)
    assert not judging.can_read(b"bad")
