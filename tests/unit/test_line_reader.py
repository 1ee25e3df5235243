"""`LineReader`: what it remembers of lines changes nothing in what it reads."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_norobots.features.evidence import line_reader
from scrapy_norobots.features.evidence.line_reader import LineReader

START = '{"seq": 7, "prev": "%s", "time": "2026-11-23T02:00:23.026570Z", ' % (64 * "a")
END = '"verdict": "forbidden", "robot": "FooBot", "line": 2, "rule": "/back/", "dry_run": true'
LINE = f'{START}"url": "http://town.example/back/", {END}}}'


def read_alone(line: bytes) -> Any:
    """Return what a line is if nothing is remembered, or the type of the error."""
    return read(LineReader(), line)


def read(reader: LineReader, line: bytes) -> Any:
    try:
        return reader.read(line)[0]
    except ValueError:
        return ValueError


def reader_of(*known: str) -> LineReader:
    reader = LineReader()
    for line in known:
        reader.read(line.encode())
    return reader


def test_a_line_is_read_alike_the_first_time_and_later() -> None:
    reader = reader_of(LINE)
    other = LINE.replace("/back/", "/attic/", 1).replace('"seq": 7', '"seq": 8').replace("aaaa", "abcd")
    facts, end = reader.read(other.encode())
    assert list(facts.items()) == list(json.loads(other).items())
    assert (facts["url"], facts["seq"]) == ("http://town.example/attic/", 8)
    assert end == END == reader.read(LINE.encode())[1]
    assert reader.read(LINE.encode())[0] == json.loads(LINE)


@pytest.mark.parametrize(
    "line",
    [
        LINE.replace(START, '{"seq": 7, ' + START[1:]),
        LINE.replace('"rule"', '"url": "http://town.example/", "rule"'),
        LINE.replace('"rule"', '"robot": "BarBot", "rule"'),
        LINE.replace('"rule": "/back/"', '"rule": {"a": 1, "a": 2}'),
        LINE.replace("/back/", "/b\tack/", 1),
        LINE.replace("/back/", "/back\\/\\u00", 1),
        LINE.replace('"seq": 7', '"seq": 07'),
        LINE.replace('"seq": 7', f'"seq": {5000 * "7"}'),
        LINE + "}",
        LINE[:-1],
        LINE.replace(END, END + ","),
        LINE.replace(END, ""),
    ],
)
def test_what_is_no_line_is_never_one(line: str) -> None:
    reader = reader_of(LINE)
    for _ in range(3):
        assert read(reader, line.encode()) is ValueError


@given(data=st.data())
def test_a_changed_line_is_read_as_if_nothing_were_remembered(data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(LINE)))
    cut = data.draw(st.integers(0, 3))
    added = data.draw(st.text(st.sampled_from('",:{}\\ u0aé\x01'), max_size=4) | st.text(max_size=3))
    line = (LINE[:place] + added + LINE[place + cut :]).encode("utf-8", "surrogatepass")
    expected = read_alone(line)
    reader = reader_of(LINE)
    for _ in range(3):
        assert read(reader, line) == expected
    assert read(reader, LINE.encode()) == json.loads(LINE)


def test_only_as_many_ends_are_remembered_as_the_limit_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_reader, "_REMEMBERED", 3)
    reader = LineReader()
    for number in range(10):
        line = LINE.replace("FooBot", f"FooBot/{number}")
        assert reader.read(line.encode())[0] == json.loads(line)
        assert len(reader._first) <= 3
    long = LINE.replace("FooBot", 3_000 * "FooBot")
    assert reader.read(long.encode()) == (json.loads(long), "")
