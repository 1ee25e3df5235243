"""`read_urls`: any lines, in any pieces; addresses of URLs. `test_stream` in `crawls` runs the command."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request

from scrapy_norobots.commands import stream
from scrapy_norobots.commands.stream import _PLAIN, LINE_MAX, TOO_LONG, address, read_urls
from scrapy_norobots.standard.urls import split


def read(*pieces: bytes) -> list[str]:
    """Return the URLs in pieces of standard input."""

    async def work() -> list[str]:
        return [url async for batch in read_urls(["-"]) for url in batch]

    with patch.object(stream, "_read_stdin", side_effect=[*pieces, b""]):
        return asyncio.run(work())


def test_line_without_an_end_takes_little_memory() -> None:
    piece = b"x" * LINE_MAX
    tracemalloc.start()
    try:
        (url,) = read(*[piece] * 500)
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
        url = line.decode("utf-8", "surrogateescape").removeprefix("\ufeff").strip()
        expected.append(TOO_LONG if len(line) > 20 else url)
    with patch.object(stream, "LINE_MAX", 20):
        urls = [TOO_LONG if url.startswith(TOO_LONG) else url for url in read(*pieces)]
    assert urls == [*filter(None, expected)]


def requested(url: str) -> Any:
    return Request(url).url


@given(st.from_regex(_PLAIN, fullmatch=True))
def test_a_plain_url_is_sent_as_it_is(url: str) -> None:
    assert address(url) == (url, *split(url))
    assert requested(url) == url


@given(st.text(st.sampled_from("htps:/aA.%-1[]@é \t#?;~"), max_size=40))
def test_an_address_is_that_of_a_request(rest: str) -> None:
    url = f"http://{rest}"
    try:
        expected = requested(url)
        origin, target = split(expected)
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            address(url)
    else:
        assert address(url) == (origin and (expected, origin, target))
