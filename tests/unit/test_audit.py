"""The audit of evidence that anybody may have changed, and of more than fits into memory."""

from __future__ import annotations

import gzip
import json
import random
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_norobots.features.evidence import audit as audit_module
from scrapy_norobots.features.evidence.audit import Audit, Problem
from scrapy_norobots.features.evidence.fields import Answer, Made, date_of, digest_of
from scrapy_norobots.features.evidence.writer import Writer
from scrapy_norobots.rules import access as access_module
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Reason, RobotsTxt
from scrapy_norobots.standard.urls import is_robots_txt, split
from tests.helpers.judges.evidence import in_order, seal
from tests.helpers.samples.made_up import (
    FILE,
    SETTINGS,
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
        writer = Writer(folder, "town-1", SETTINGS)
        by = access()
        writer.put(answer(by))
        writer.put(Answer.of(by.snapshot, "store"))
        failed = Snapshot(TOWN, TOWN.robots_url, TIME + 5, error="TimeoutError: \r\n\x00late")
        writer.put(Answer.of(failed))
        for path in ("", "a", "back/"):
            writer.put(made(f"{TOWN}/{path}", by))
        end(writer)
        return {path.name: path.read_bytes() for path in folder.iterdir()}


WARC, LINES = "town-1.warc.gz", "town-1.decisions.jsonl.gz"


def problems_with(name: str, data: bytes, *, is_sealed: bool = False) -> list[Problem]:
    """Return what is wrong with these files if one is changed, and perhaps all else is made to fit."""
    with TemporaryDirectory() as folder:
        for file, content in {**crawled(), name: data}.items():
            (Path(folder) / file).write_bytes(content)
        if is_sealed:
            seal(Path(folder))
        return problems(Path(folder))


def decided() -> list[dict[str, Any]]:
    return [
        one
        for line in gzip.decompress(crawled()[LINES]).splitlines()
        if "verdict" in (one := json.loads(line))
    ]


def problems_of(number: int, changes: Mapping[str, object]) -> list[Problem]:
    """Return what is wrong if one of these decisions is changed, by somebody who makes all else fit."""
    old = json.dumps(decided()[number]).encode()
    new = json.dumps(in_order({**decided()[number], **changes})).encode()
    return problems_with(
        LINES, gzip.compress(gzip.decompress(crawled()[LINES]).replace(old, new)), is_sealed=True
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


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


@given(number=st.integers(0, 2), changes=CHANGES)
def test_a_wrong_decision_is_a_problem(number: int, changes: dict[str, object]) -> None:
    """However plausible it is."""
    found = problems_of(number, changes)
    assert found or is_right({**decided()[number], **changes})


@given(st.data())
def test_any_change_of_the_files_is_a_problem_or_none(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([WARC, LINES]))
    is_packed = data.draw(st.booleans())
    text = bytearray(crawled()[name] if is_packed else gzip.decompress(crawled()[name]))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        text[start : start + data.draw(st.integers(0, 20))] = data.draw(st.binary(max_size=20))
    problems_with(name, bytes(text) if is_packed else gzip.compress(bytes(text)))


def test_decisions_by_nasty_files_agree(tmp_path: Path) -> None:
    writer = Writer(tmp_path, "town-1", SETTINGS)
    for number in range(300):
        body = nasty.body(random.Random(number), ["*", "foobot"], ["/a", "/b/c", "/%7e", "/a/.."])
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
    monkeypatch.setattr(audit_module, "_PARSED_MAX", 200_000)
    write(tmp_path, 200, padding=b"# " + b"x" * 100_000)
    audit = Audit(tmp_path.iterdir(), strict)
    tracemalloc.start()
    assert list(audit.problems()) == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert audit.verdicts.total() == 800
    assert peak < 12_000_000  # the files have 20 MB


def test_a_full_disk_is_a_problem_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers are in a temporary file, which has no room here."""
    schema = audit_module._SCHEMA + "PRAGMA max_page_count = 4;"
    monkeypatch.setattr(audit_module, "_SCHEMA", schema)
    write(tmp_path, 3, padding=b"# " + b"x" * 100_000)
    (problem,) = problems(tmp_path)
    assert problem.place == str(tmp_path / "town-1")
    assert "database or disk is full" in problem.text
    assert not problem.is_readable


BOMBS: Mapping[str, Callable[[], bytes]] = {
    "empty lines": lambda: 5_000_000 * b"\n",
    "empty objects": lambda: 5_000_000 * b"{}\n",
    "a line": lambda: bytes(300_000_000),
    "deep lists": lambda: 1_000 * (100_000 * b"[" + b"\n"),
    "long numbers": lambda: 1_000 * (b'{"bytes": ' + 100_000 * b"9" + b"}\n"),
    "verdicts": lambda: b"".join(b'{"verdict": "%d", "url": ""}\n' % number for number in range(100_000)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_lines_that_cannot_be_read_take_little_time_and_memory(name: str) -> None:
    bomb = gzip.compress(BOMBS[name](), 1)
    tracemalloc.start()
    found = problems_with(LINES, crawled()[LINES] + bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found
    assert len(found) <= 300
    assert peak < 30_000_000


def test_a_file_that_is_cut_off_anywhere_is_read_up_to_there() -> None:
    data = crawled()[LINES]
    for size in range(0, len(data), 7):
        found = problems_with(LINES, data[:size])
        assert found, size
    assert problems_with(LINES, data[:-1])[0].text == "is cut off after its closing line"


def test_what_aiohttp_sends_is_judged_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by = access(b"User-agent: *\nDisallow: /wow!\n")
    monkeypatch.setattr(access_module, "_aiohttp_url", lambda: lambda _: SimpleNamespace(raw_path_qs="/wow!"))
    writer = Writer(tmp_path, "town-1", replace(SETTINGS, versions={"yarl": "0.1"}))
    writer.put(answer(by))
    writer.put(Made(TIME + 1, f"{TOWN}/wow%21;", b"FooBot", f"{TOWN}/wow%21;", by))
    end(writer)
    [problem] = problems(tmp_path)
    assert "verdict 'forbidden'" in problem.text
    assert "yarl 0.1 in the crawl" in problem.text
    monkeypatch.setattr(access_module, "_aiohttp_url", lambda: None)
    assert problems(tmp_path) == []
