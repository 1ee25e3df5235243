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
from scrapy_norobots.commands.stream import _PLAIN, LINE_MAX, TOO_LONG, address, read_urls
from scrapy_norobots.standard import Origin


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
    assert url.startswith(TOO_LONG)
    assert peak < 20 * LINE_MAX


ODD = [b"\xef", b"\xbb\xbf", b"\n", b"\n\n", b"\r\n", b" ", b"\t", b"\0", b"\xa0", b"x" * 30, b"-"]


@given(st.lists(st.one_of(st.sampled_from(ODD), st.binary(min_size=1, max_size=20))))
def test_any_lines_in_any_pieces_are_read(pieces: list[bytes]) -> None:
    """No URL is lost, whatever is around it: each line that is not blank gives one."""
    expected = []
    for line in b"".join(pieces).split(b"\n"):
        text = line[:200].decode("utf-8", "surrogateescape")
        expected.append(TOO_LONG + text if len(line) > 20 else text.removeprefix("\ufeff").strip())
    with patch.object(stream, "LINE_MAX", 20), pytest.MonkeyPatch.context() as monkeypatch:
        # A long line that came in pieces is cut.
        urls = read(monkeypatch, *pieces)
    assert [url for url in urls if not url.startswith(TOO_LONG)] == [
        url for url in expected if url and not url.startswith(TOO_LONG)
    ]
    assert len(urls) == len([*filter(None, expected)])


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
