"""`body`: the whole file or an error, in any encoding, within the limit."""

from __future__ import annotations

import sys
from contextlib import ExitStack, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import StopDownload

from scrapy_norobots.load.body import BodiesInFlight, decode
from tests.helpers.sites.faults import COMPRESSORS, RULES, zstd_with_large_window

ZSTD = "compression" if sys.version_info >= (3, 14) else "backports"
ENCODINGS = {name: name.removeprefix("raw ") for name in COMPRESSORS}


@pytest.mark.parametrize("name", COMPRESSORS)
@given(body=st.binary())
def test_encoded_bodies_are_decoded(name: str, body: bytes) -> None:
    if not body.startswith(b"\x1f\x8b"):
        assert decode(COMPRESSORS[name](body), ENCODINGS[name], 10_000) == body


@pytest.mark.parametrize("name", COMPRESSORS)
@given(body=st.binary())
def test_any_bytes_are_decoded_or_a_value_error(name: str, body: bytes) -> None:
    with suppress(ValueError):
        assert len(decode(body, ENCODINGS[name], 1000)) <= 1000


@pytest.mark.parametrize("name", COMPRESSORS)
def test_no_incomplete_file_is_decoded(name: str) -> None:
    sent = COMPRESSORS[name](RULES * 9)
    for length in range(1, len(sent)):
        with pytest.raises(ValueError, match=r"^its \w+ data is (incomplete|damaged)"):
            decode(sent[:length], ENCODINGS[name], 10_000)


@pytest.mark.parametrize("name", COMPRESSORS)
def test_a_file_may_have_at_most_maxsize_bytes(name: str) -> None:
    body = RULES * 5000
    sent = COMPRESSORS[name](body)
    assert decode(sent, ENCODINGS[name], len(body)) == body
    with pytest.raises(ValueError, match=f"^it has more than {len(body) - 1} bytes after decompression$"):
        decode(sent, ENCODINGS[name], len(body) - 1)


@pytest.mark.parametrize("encoding", ["", "identity"])
def test_a_plain_file_may_have_at_most_maxsize_bytes(encoding: str) -> None:
    """A download handler, or a middleware that answers, may ignore the meta key download_maxsize."""
    assert decode(RULES, encoding, len(RULES)) == RULES
    with pytest.raises(ValueError, match=f"^it has more than {len(RULES) - 1} bytes$"):
        decode(RULES, encoding, len(RULES) - 1)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_several_members_are_one_file(encoding: str) -> None:
    compress = COMPRESSORS[encoding]
    member = compress(b"#\n")
    assert decode(member * 100, encoding, 200) == b"#\n" * 100
    with pytest.raises(ValueError, match=r"^it has more than 199 bytes"):
        decode(member * 100, encoding, 199)
    with pytest.raises(ValueError, match=f"^its {encoding} data has more than 100 parts$"):
        decode(compress(b"") * 101, encoding, 199)
    with pytest.raises(ValueError, match=f"^its {encoding} data is damaged"):
        decode(member + RULES, encoding, 200)


def test_a_window_larger_than_http_allows_is_an_error() -> None:
    sent = zstd_with_large_window(bytes(10_000_000))
    with pytest.raises(ValueError, match="too much memory"):
        decode(sent, "zstd", 20_000_000)


@pytest.mark.parametrize(("encoding", "module"), [("br", "brotli"), ("zstd", ZSTD)])
def test_an_encoding_without_its_package_is_an_error(
    encoding: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ValueError, match=f"^its Content-Encoding is {encoding}, and no package"):
        decode(b"a", encoding, 100)
    assert decode(b"", encoding, 100) == b""


# `BodiesInFlight`: all bodies together respect the limit, and larger ones are stopped.


class Downloads:
    """Sends the signal `bytes_received`, as download handlers do."""

    def __init__(self) -> None:
        self.crawler = Crawler(Spider)
        self.bodies = BodiesInFlight(self.crawler.signals, 1000)
        self.ends = ExitStack()

    def start(self) -> Request:
        return Request("http://town.example/", meta=self.ends.enter_context(self.bodies.counted()))

    def receive(self, request: Request, size: int) -> Exception | None:
        ((_, result),) = self.crawler.signals.send_catch_log(
            signals.bytes_received, data=bytes(size), request=request, spider=None
        )
        return getattr(result, "value", None)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 500)), max_size=60))
def test_the_limit_is_never_exceeded(chunks: list[tuple[int, int]]) -> None:
    downloads = Downloads()
    requests = [downloads.start() for _ in range(10)]
    sizes = dict.fromkeys(range(10), 0)
    for number, size in chunks:
        others = sum(sizes.values()) - sizes[number]
        is_given_up = downloads.receive(requests[number], size) is not None
        sizes[number] += size
        # The free room must be at least its size.
        assert is_given_up == (sizes[number] > 1000 - others - sizes[number])
        if is_given_up:
            sizes[number] = 0
        assert sum(sizes.values()) <= 1000
    downloads.ends.close()


def test_bytes_of_an_earlier_try_are_not_counted() -> None:
    downloads = Downloads()
    request = downloads.start()
    for _ in range(3):
        assert downloads.receive(request, 400) is None
        request = request.copy()
    downloads.ends.close()


def test_a_download_without_a_waiter_is_stopped() -> None:
    downloads = Downloads()
    request = downloads.start()
    downloads.bodies.stop_late_ones()
    downloads.ends.close()
    assert isinstance(downloads.receive(request, 1), StopDownload)
