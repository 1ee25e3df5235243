"""`read_urls`: any lines, in any pieces; addresses of URLs. `test_stream` in `crawls` runs the command."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request

from scrapy_norobots.commands import stream
from scrapy_norobots.commands.stream import _PLAIN, LINE_MAX, Answerer, LongLine, address, read_urls
from scrapy_norobots.rules.access import Judge, StatusPolicy
from scrapy_norobots.rules.snapshot import Freshness, Snapshot
from scrapy_norobots.standard import Origin, RobotsTxt


@contextmanager
def stdin(monkeypatch: pytest.MonkeyPatch, *pieces: bytes) -> Iterator[None]:
    """Let a thread write pieces to standard input, and close it."""
    reading, writing = os.pipe()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(fileno=lambda: reading))

    def write() -> None:
        for piece in pieces:
            os.write(writing, piece)
        os.close(writing)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        writer.join()
        os.close(reading)


def read(monkeypatch: pytest.MonkeyPatch, *pieces: bytes) -> list[str]:
    async def work() -> list[str]:
        return [url async for batch in read_urls(["-"]) for url in batch]

    with stdin(monkeypatch, *pieces):
        return asyncio.run(work())


def test_line_without_an_end_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    piece = b"x" * LINE_MAX
    tracemalloc.start()
    try:
        (url,) = read(monkeypatch, *[piece] * 500)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(url, LongLine)
    assert peak < 20 * LINE_MAX


PIECES = st.sampled_from(
    [
        b"\xef\xbb\xbf",
        b"\xef",
        b"\xbb\xbf",
        b"\n",
        b"\n\n",
        b"\r\n",
        b" ",
        b"\t",
        b"\0",
        b"\xa0",
        b"x" * 30,
        b"-",
    ]
)


@given(st.lists(st.one_of(PIECES, st.binary(min_size=1, max_size=20))))
def test_any_lines_in_any_pieces_are_read(pieces: list[bytes]) -> None:
    """No URL is lost, whatever is around it: each line that is not blank gives one."""
    lines = b"".join(pieces).removeprefix(b"\xef\xbb\xbf").split(b"\n")
    expected = [line for line in lines if len(line) > 20 or line.decode("utf-8", "surrogateescape").strip()]
    with patch.object(stream, "LINE_MAX", 20), pytest.MonkeyPatch.context() as monkeypatch:
        urls = read(monkeypatch, *pieces)
    assert len(urls) == len(expected)
    for url, line in zip(urls, expected, strict=True):
        assert isinstance(url, LongLine) is (len(line) > 20)
        if not isinstance(url, LongLine):
            assert url == line.decode("utf-8", "surrogateescape").strip()


def requested(url: str) -> Any:
    return Request(url).url


@given(st.from_regex(_PLAIN, fullmatch=True))
def test_a_plain_url_is_sent_as_it_is(url: str) -> None:
    assert address(url)[1] == requested(url) == url


@given(st.text(st.sampled_from("htps:/aA.%-1[]@é \t#?;~"), max_size=40))
def test_an_address_is_that_of_a_request(rest: str) -> None:
    url = f"http://{rest}"
    try:
        expected = requested(url)
        origin = Origin.of(expected)
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            address(url)
    else:
        assert address(url) == (origin, expected)


def test_json_has_the_first_names_of_a_long_record() -> None:
    """Otherwise each answer for such a site would be as long as its file."""
    body = b"".join(b"User-agent: bot%dx%s\n" % (n, b"y" * 1000) for n in range(1000)) + b"Disallow: /\n"
    origin = Origin("http", "town.example", 80)
    judge = Judge(StatusPolicy.of("allow"), Freshness(0, 60, 60, 60), RobotsTxt)
    access = judge.judge(Snapshot(origin, origin.robots_url, 0, 200, body=body))
    answer = Answerer(["bot7x" + "y" * 1000], as_json=True).answer(f"{origin}/", f"{origin}/", access)
    assert answer.count("bot") < 60
    assert len(answer) < 20_000
