"""The audit of evidence that anybody may have changed, and of more than fits into memory."""

from __future__ import annotations

import gzip
import json
import random
import tracemalloc
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scrapy.http import Response

from scrapy_norobots.features.evidence import judging
from scrapy_norobots.features.evidence.answers import Answer, Copy
from scrapy_norobots.features.evidence.audit import Audit, Problem
from scrapy_norobots.features.evidence.decisions import Made
from scrapy_norobots.features.evidence.fields import AIOHTTP, MULTIVALUE, POLICY, date_of, digest_of
from scrapy_norobots.features.evidence.gzip_file import GzipFile
from scrapy_norobots.features.evidence.index import Index
from scrapy_norobots.features.evidence.runs import Settings
from scrapy_norobots.features.evidence.writer import Writer
from scrapy_norobots.rules import spellings
from scrapy_norobots.rules.access import StatusPolicy
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Reason, RobotsTxt
from scrapy_norobots.standard.urls import is_robots_txt, split
from tests.helpers.judges.evidence import seal, write_lines
from tests.helpers.samples.made_up import (
    ABOUT,
    BODY_MAX,
    FILE,
    JUDGE,
    TIME,
    TOWN,
    access,
    answer,
    end,
    made,
    problems,
    strict,
    write,
)
from tests.helpers.worlds import nasty


@cache
def crawled() -> Mapping[str, bytes]:
    """Return the files of a small crawl, by name."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        writer = Writer(folder, "town-1", ABOUT)
        by = access()
        writer.put(answer(by))
        writer.put(Copy(by.snapshot))
        failed = Snapshot(TOWN, TOWN.robots_url, TIME + 5, error="TimeoutError: \r\n\x00late")
        writer.put(Copy(failed, source=""))
        for path in ("", "a", "back/"):
            writer.put(made(f"{TOWN}/{path}", by))
        end(writer)
        return {path.name: path.read_bytes() for path in folder.iterdir()}


WARC, LINES = "town-1-00001.warc.gz", "town-1-00001.decisions.jsonl.gz"


@cache
def unpacked(name: str) -> list[bytes]:
    """Return the members of one of these files."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(crawled()[name])
        return [data for _, data in GzipFile(path).members(BODY_MAX)]


def problems_with(name: str, data: bytes) -> list[Problem]:
    """Return what is wrong with these files if one of them is changed."""
    with TemporaryDirectory() as folder:
        for file, content in {**crawled(), name: data}.items():
            (Path(folder) / file).write_bytes(content)
        return problems(Path(folder))


def lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(crawled()[LINES]).splitlines()]


def problems_of(number: int, changes: Mapping[str, object]) -> list[Problem]:
    """Return what is wrong if one of these decisions is changed, by somebody who makes all else fit."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file, content in crawled().items():
            (folder / file).write_bytes(content)
        changed = lines()
        changed[number].update(changes)
        write_lines(folder / LINES, changed)
        seal(folder)
        return problems(folder)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
FIELDS = (
    "url",
    "verdict",
    "robot",
    "origin",
    "reason",
    "line",
    "rule",
    "robots_digest",
    "robots_time",
    "parser",
)


FUZZ = settings(max_examples=100)


@given(field=st.sampled_from([*FIELDS, "sent_as"]), value=JSON)
@FUZZ
def test_any_value_in_a_decision_is_a_problem_or_none(field: str, value: object) -> None:
    line = lines()[3]
    found = problems_of(3, {field: value})
    assert len(found) <= 1
    if field in ("line", "rule", "robots_digest") and value != line[field]:
        assert found


REASONS = [reason.name.lower() for reason in Reason]
URLS = [
    *(
        f"{TOWN}/{path}"
        for path in ("", "a", "back/", "%62ack/x", "a/../back/", "robots.txt", "%72obots.txt", "\xe9")
    ),
    *(
        "https://town.example/a",
        "http://other.example/",
        "mailto:me@town.example",
        "http://town.example:99999/",
    ),
    *("back/", "", "//town.example/a"),
]
# For each field of a decision, values that a crawl may write there.
LIKELY: Mapping[str, list[object]] = {
    "url": [*URLS],
    "verdict": ["allowed", "forbidden", "unreachable", "overridden"],
    "robot": ["FooBot", "", "*"],
    "origin": [None, str(TOWN), "https://town.example", "http://other.example"],
    "reason": [*REASONS, "dont_obey_robotstxt"],
    "line": [None, 1, 2, 3],
    "rule": [None, "/back/", "/"],
    "robots_digest": [None, digest_of(FILE), digest_of(b"")],
    "robots_time": [None, date_of(TIME), date_of(TIME + 5), date_of(TIME + 1)],
    "parser": [None, "StrictRobotParser", "StrictRobotParser, x", ""],
    "sent_as": [*URLS],
}
CHANGES = st.fixed_dictionaries(
    {}, optional={field: st.one_of(*[st.sampled_from(values)] * 9, JSON) for field, values in LIKELY.items()}
)


def is_right(facts: Mapping[str, Any]) -> bool:
    """Return whether a decision of the small crawl is right, by the file alone."""
    verdict = facts["verdict"]
    if verdict == "overridden":
        return True  # no evidence can prove it wrong
    try:
        origin, target = split(facts["url"])
    except ValueError:
        return bool(verdict == "unreachable")
    if target is None or (origin is not None and target == "/robots.txt"):
        return bool(verdict == "allowed")
    if facts["robots_time"] == date_of(TIME + 5):  # this download failed
        return bool(verdict == "unreachable" or is_robots_txt(target))
    is_allowed = RobotsTxt.parse(FILE).allowed(facts["url"], facts["robot"])
    return bool(origin == TOWN and verdict == ("allowed" if is_allowed else "forbidden"))


@given(number=st.integers(1, 3), changes=CHANGES)
@FUZZ
def test_a_wrong_decision_is_a_problem(number: int, changes: dict[str, object]) -> None:
    """However plausible it is."""
    found = problems_of(number, changes)
    assert found or is_right({**lines()[number], **changes})


@given(st.data())
@FUZZ
def test_any_change_of_the_files_is_a_problem_or_none(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([WARC, LINES]))
    members = [crawled()[name]]
    is_packed = data.draw(st.booleans())
    if not is_packed:
        members = list(unpacked(name))
    at = data.draw(st.integers(0, len(members) - 1))
    text = bytearray(members[at])
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        text[start : start + data.draw(st.integers(0, 20))] = data.draw(st.binary(max_size=20))
    members[at] = bytes(text)
    problems_with(name, b"".join(members if is_packed else map(gzip.compress, members)))


def nasty_files(count: int) -> Iterator[bytes]:
    for seed in range(count):
        some = random.Random(seed)
        body = nasty._encoded(some, nasty._text(some, ["*", "foobot"], ["/a", "/b/c", "/%7e", "/a/.."]))
        yield body.encode("utf-8", "surrogateescape") if isinstance(body, str) else body


def test_decisions_by_nasty_files_agree(tmp_path: Path) -> None:
    writer = Writer(tmp_path, "town-1", ABOUT)
    for number, body in enumerate(nasty_files(300)):
        by = access(body, TOWN._replace(host=f"{number}.example"))
        writer.put(answer(by))
        for path in ("/", "/a", "/b/c/d", "/~", "/%7E", "/a/../b/c", "/robots.txt", "/%72obots.txt"):
            writer.put(made(f"{by.snapshot.origin}{path}", by))
    end(writer)
    assert writer.decisions == 2_400
    assert problems(tmp_path) == []


def test_memory_is_bounded_however_many_decisions_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the parsed files and outcomes that are remembered; the rest is on disk."""
    monkeypatch.setattr(judging, "_PARSED_MAX", 200_000)
    monkeypatch.setattr(judging, "_OUTCOMES_MAX", 100)
    write(tmp_path, 1_000, padding=b"# " + b"x" * 20_000)
    audit = Audit(tmp_path.iterdir(), strict)
    tracemalloc.start()
    assert list(audit.problems()) == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert audit.verdicts.total() == 4_000
    assert peak < 6_000_000  # the files have 20 MB


def line_of(url: str, folder: Path, aiohttp: str) -> list[Problem]:
    """Return the problems with an allowed page whose file forbids the spelling that aiohttp sends."""
    by = access(b"User-agent: *\nDisallow: /wow!\n")
    writer = Writer(folder, "town-1", {**ABOUT, AIOHTTP: aiohttp})
    writer.put(answer(by))
    writer.put(Made(TIME, url, b"FooBot", url, by))
    end(writer)
    return problems(folder)


def test_a_crawl_is_audited_by_the_spellings_that_it_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spellings, "_aiohttp_url", lambda: lambda _: SimpleNamespace(raw_path_qs="/wow!"))
    assert "recorded as allowed" in line_of(f"{TOWN}/wow%21;", tmp_path / "with", "True")[0].text
    assert line_of(f"{TOWN}/wow;", tmp_path / "without", "False") == []
    monkeypatch.setattr(spellings, "_aiohttp_url", lambda: None)
    (problem,) = line_of(f"{TOWN}/wow;", tmp_path / "missing", "True")
    assert not problem.is_readable
    assert "aiohttp" in problem.text


def test_a_crawl_without_aiohttp_is_audited_by_the_spellings_of_other_handlers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spellings, "_aiohttp_url", lambda: lambda _: SimpleNamespace(raw_path_qs="/wow!"))
    settings_ = Settings.of({**ABOUT, AIOHTTP: "False"})
    with closing(Index(BODY_MAX)) as index:
        judged = judging.Judging(settings_, index, strict)
        checked = set(judged._spellings("/x/../wow%21;"))
    assert checked == {"/x/../wow%21;", "/x/../wow%21", "/wow%21;"}


def test_each_crawl_is_audited_by_its_own_settings(tmp_path: Path) -> None:
    crawls = (("koster1996", False), ("koster1996", True), ("allow", True))
    for number, (preset, multivalue) in enumerate(crawls, 1):
        policy = StatusPolicy.of(preset)
        judge = replace(JUDGE, policy=policy, parse=partial(RobotsTxt.parse, multivalue=multivalue))
        about = {**ABOUT, POLICY: json.dumps(dict(policy.table)), MULTIVALUE: str(multivalue)}
        writer = Writer(tmp_path, f"town-{number}", about)
        for status, host in ((200, "file.example"), (503, "shut.example")):
            origin = TOWN._replace(host=host)
            snapshot = Snapshot(
                origin, origin.robots_url, TIME, status, body=b"User-agent: *\nDisallow: /a /b\n"
            )
            by = judge.judge(snapshot)
            response = Response(snapshot.url, status, body=snapshot.body)
            writer.put(Answer(origin, response, TIME, judged=snapshot.body if status == 200 else None))
            writer.put(made(f"{origin}/b", by))
        end(writer)
    audit = Audit(tmp_path.iterdir(), strict)
    assert list(audit.problems()) == []
    assert audit.verdicts == {"allowed": 2, "forbidden": 2, "unreachable": 2}


@pytest.mark.parametrize("policy", ["{}", '{"4xx": "allow"}', "7", "koster1996"])
def test_a_crawl_without_a_whole_policy_is_a_problem(policy: str, tmp_path: Path) -> None:
    writer = Writer(tmp_path, "town-1", {**ABOUT, POLICY: policy})
    writer.put(answer(access()))
    end(writer)
    problem = problems(tmp_path)[0]
    assert problem.text == "its warcinfo record does not state the crawl's settings"
    assert not problem.is_readable
