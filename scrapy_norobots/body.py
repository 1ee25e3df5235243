"""From the bytes that a server sent to those of the file: the whole file, or a `ValueError`.

A server may compress a robots.txt although it is asked not to, or serve a robots.txt.gz as it is. Scrapy
decodes as much as has come, so that the first half of a file passes for the whole. Here each encoding must
come to its own end, with its checksum if it has one, and nothing unknown may follow. An empty body is an
empty file, whatever its encoding. No body takes much time, or much more memory than `maxsize` bytes.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

# Where the Content-Encoding of a robots.txt stands until its body is decoded here. Under its own name,
# Scrapy would decode as much as has come, and remove it.
ENCODING_HEADER = "Norobots-Content-Encoding"

# More are no file, but an attempt to keep the crawl busy.
_MOST_ENCODINGS = 5
_MOST_MEMBERS = 100

_GZIP = b"\x1f\x8b"
# What may follow a compressed file without being part of it; none of it can hold a rule.
_PADDING = b"\0 \t\r\n"

# The window, as a power of 2, that a decoder of zstd must have for HTTP (RFC 9659).
_ZSTD_WINDOW = 23


class _Stream(Protocol):
    """What the standard library's decompressors have in common: they read one stream, up to its end."""

    @property
    def eof(self) -> bool:
        """Whether the end has come."""

    @property
    def unused_data(self) -> bytes:
        """What follows it."""

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """Return what the stream holds, at most about `max_length` bytes."""


def decode(body: bytes, encodings: Sequence[str], maxsize: int) -> bytes:
    """Undo the encodings of a body, as Content-Encoding lists them: the last one has to be undone first.

    Raises `ValueError` that says why there is no file of at most `maxsize` bytes.
    """
    if len(encodings) > _MOST_ENCODINGS:
        raise ValueError(f"its Content-Encoding has more than {_MOST_ENCODINGS} values")
    for encoding in reversed(encodings):
        body = _decode(body, encoding, maxsize)
    # Compressed, and nobody says so: a robots.txt.gz that the server takes for text.
    return _decode(body, "gzip", maxsize) if body.startswith(_GZIP) else body


def _decode(body: bytes, encoding: str, maxsize: int) -> bytes:
    if encoding not in _STREAMS:
        raise ValueError(f"its Content-Encoding is {encoding}, which cannot be undone")
    parts: list[bytes] = []
    room = maxsize + 1
    while body:
        if len(parts) == _MOST_MEMBERS:
            raise ValueError(f"its {encoding} data has more than {_MOST_MEMBERS} parts")
        try:
            stream = _STREAMS[encoding](body)
            parts.append(stream.decompress(body, room))
        except ImportError:
            raise ValueError(
                f"its Content-Encoding is {encoding}, and no package that undoes it is installed"
            ) from None
        except Exception as exc:  # each decoder has its own
            raise ValueError(f"its {encoding} data is damaged: {exc}") from None
        room -= len(parts[-1])
        if room <= 0:
            raise ValueError(f"it has more than {maxsize} bytes, decompressed")
        if not stream.eof:
            raise ValueError(f"its {encoding} data was cut off")
        body = stream.unused_data.lstrip(_PADDING)  # gzip and zstd files may have several members
    return b"".join(parts)


def _gzip(body: bytes) -> _Stream:
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)


def _deflate(body: bytes) -> _Stream:
    """Return the decompressor of zlib's format or, as some servers send it, of what that wraps."""
    is_wrapped = body[0] & 0x0F == zlib.DEFLATED and int.from_bytes(body[:2], "big") % 31 == 0
    return zlib.decompressobj(wbits=zlib.MAX_WBITS if is_wrapped else -zlib.MAX_WBITS)


class _Brotli:
    """A decompressor of brotli; it fails if anything follows the end."""

    unused_data = b""

    def __init__(self, body: bytes) -> None:
        try:
            import brotli  # noqa: PLC0415  # Scrapy brings it from 2.19 on
        except ImportError:
            import brotlicffi as brotli  # noqa: PLC0415  # PyPy's
        self._stream: Any = brotli.Decompressor()

    @property
    def eof(self) -> bool:
        return bool(self._stream.is_finished())

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        text = b""
        while more := self._stream.process(data, output_buffer_limit=max_length):
            text, data = text + more, b""
            if self.eof or len(text) >= max_length:
                break
        return text


def _zstd(body: bytes) -> _Stream:
    # Scrapy brings it from 2.19 on. The package zstandard, of before, does not tell where a file ends.
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415
    else:
        from backports import zstd  # noqa: PLC0415
    return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW})


_STREAMS: Mapping[str, Callable[[bytes], _Stream]] = MappingProxyType(
    {"gzip": _gzip, "x-gzip": _gzip, "deflate": _deflate, "br": _Brotli, "zstd": _zstd}
)
