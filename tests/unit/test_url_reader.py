"""`UrlReader`: batches, and lines that are too long."""

from __future__ import annotations

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

from scrapy_norobots.commands import url_reader
from scrapy_norobots.commands.base import InputError
from scrapy_norobots.commands.url_reader import LINE_MAX, LongLine, UrlReader

URL = "http://town.example/"


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
    with stdin(monkeypatch, *pieces):
        return [url for batch in UrlReader(["-"]).batches() for url in batch]


@pytest.mark.parametrize(
    "pieces",
    [
        [b"\xef\xbb\xbf%b\n%b" % (URL.encode(), URL.encode())],
        [b"  " + URL.encode() + b"\r\n\n \n", URL.encode() + b"\n"],
        [bytes([byte]) for byte in b"\xef\xbb\xbf%b\n%b\n" % (URL.encode(), URL.encode())],
    ],
    ids=["byte order mark", "blank lines", "single bytes"],
)
def test_lines_are_read(monkeypatch: pytest.MonkeyPatch, pieces: list[bytes]) -> None:
    assert read(monkeypatch, *pieces) == [URL, URL]


def test_bytes_that_are_not_utf_8_become_surrogates(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch, b"http://a/\xe9\n") == ["http://a/\udce9"]


@pytest.mark.parametrize("end", [b"\n", b"\n\n", b""])
@pytest.mark.parametrize("excess", [1, 10, LINE_MAX, 10 * LINE_MAX + 7])
def test_line_that_is_too_long_is_marked_and_the_next_is_read(
    monkeypatch: pytest.MonkeyPatch, excess: int, end: bytes
) -> None:
    long = URL.encode().ljust(LINE_MAX + excess, b"x")
    first, second, *rest = read(monkeypatch, URL.encode() + b"\n", long + end, URL.encode() * bool(end))
    assert (first, second[:30]) == (URL, f"{URL}xxxxxxxxxx")
    assert isinstance(second, LongLine)
    assert len(second) <= 200
    assert rest == ([URL] if end else [])
    assert not any(isinstance(url, LongLine) for url in (first, *rest))


def test_line_of_the_greatest_length_is_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    long = URL.ljust(LINE_MAX, "x")
    (url,) = read(monkeypatch, long.encode() + b"\n")
    assert url == long
    assert not isinstance(url, LongLine)


def test_long_line_of_blanks_is_not_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A URL may follow the blanks, so to skip the line would lose a question."""
    first, second = read(monkeypatch, b" " * (3 * LINE_MAX) + URL.encode() + b"\n" + URL.encode())
    assert isinstance(first, LongLine)
    assert second == URL


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


def test_arguments_keep_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    with stdin(monkeypatch, b"b\nc\n"):
        reader = UrlReader(["a", "-", "d"])
        assert [url for batch in reader.batches() for url in batch] == ["a", "b", "c", "d"]
        assert reader.fraction(4) is None


def test_closed_standard_input_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="<stdin>: is closed"):
        UrlReader(["-"])
    assert UrlReader([URL]).fraction(1) == 1


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
    with patch.object(url_reader, "LINE_MAX", 20), pytest.MonkeyPatch.context() as monkeypatch:
        urls = read(monkeypatch, *pieces)
    assert len(urls) == len(expected)
    for url, line in zip(urls, expected, strict=True):
        assert isinstance(url, LongLine) is (len(line) > 20)
        if not isinstance(url, LongLine):
            assert url == line.decode("utf-8", "surrogateescape").strip()
