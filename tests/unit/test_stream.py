"""`read_urls`: any lines, in any pieces; `test_stream` in `crawls` runs the command."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_norobots.commands import stream
from scrapy_norobots.commands.stream import LINE_MAX, LongLine, read_urls


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
