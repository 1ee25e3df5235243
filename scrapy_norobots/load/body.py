"""The bodies of robots.txt files: their memory while they are downloaded, and their encodings.

`BodiesInFlight` limits the memory of all bodies that are being downloaded, because hundreds of downloads may
run at once, and `NOROBOTS_MAXSIZE` limits each alone.

`decode` returns the whole file, or raises `ValueError`. A server may compress a robots.txt although the
request asks for no encoding. Scrapy decodes whatever was received, so half a file looks like a whole one.
Here, each encoding must reach its own end, with a valid checksum if it has one, and nothing unknown may
follow. An empty body is an empty file. Decoding takes up to three times `maxsize` bytes of memory.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import StopDownload

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.signalmanager import SignalManager

# The header to which the Content-Encoding of a robots.txt is renamed until `decode` reads it. Under its own
# name, Scrapy would decode whatever was received, and remove the header.
ENCODING_HEADER = "Norobots-Content-Encoding"

# Bodies with more than these are attacks on the crawl, not files.
_MOST_ENCODINGS, _MOST_MEMBERS = 5, 100

_GZIP = b"\x1f\x8b"
# Bytes that may follow a compressed file without being part of it; they cannot contain a rule.
_PADDING = b"\0 \t\r\n"

# The window size, as a power of 2, that a zstd decoder must support for HTTP (RFC 9659).
_ZSTD_WINDOW = 23

# The meta key for the number of the download that a request belongs to, as a retry does. It is a number, so
# that a middleware may copy the meta.
IN_FLIGHT = "_norobots_in_flight"

# A decompressor with the methods of those in the standard library, which read one stream up to its end.
_Stream = Any


class NoRoomError(StopDownload):
    """The download of a body was stopped because of the memory limit."""

    def __str__(self) -> str:
        return "too large: NOROBOTS_MEMORY_MAX limits the total size of the files being downloaded"


class BodiesInFlight:
    """Limits the bodies that a crawler downloads at the same time to `bytes_max` bytes in total.

    A body may grow while the free room is at least the size that it has already. So if room is short, larger
    bodies are stopped and small ones still arrive. Sizes come from Scrapy's signal `bytes_received`.
    `handlers` are other functions with their signals. All are connected only while a download is under way,
    so that other pages need not pay for them.
    """

    def __init__(
        self, signal_manager: SignalManager, bytes_max: int, *handlers: tuple[Callable[..., None], object]
    ) -> None:
        self._signals = signal_manager
        self._bytes_max = bytes_max
        self._handlers = ((self._received, signals.bytes_received), *handlers)
        # By download: its last request (each retry and redirect has its own), and the bytes received for it.
        self._bodies: dict[int, tuple[Request | None, int]] = {}
        self._numbers = count()
        self._total = 0

    @contextmanager
    def counted(self) -> Iterator[dict[str, object]]:
        """Count a download that runs inside the ``with``. Yields the meta that its requests must have."""
        if not self._bodies:
            for handler, signal in self._handlers:
                self._signals.connect(handler, signal)
        download = next(self._numbers)
        self._bodies[download] = None, 0
        try:
            yield {IN_FLIGHT: download}
        finally:
            self._total -= self._bodies.pop(download)[1]
            if not self._bodies:
                for handler, signal in self._handlers:
                    self._signals.disconnect(handler, signal)

    def stop_late_ones(self) -> None:
        """From now on, stop what download handlers receive for a caller that waits no longer."""
        self._bodies[-1] = None, 0  # for ever

    def _received(self, data: bytes, request: Request) -> None:
        download = request.meta.get(IN_FLIGHT)
        if download is None:
            return
        if download not in self._bodies:
            raise StopDownload
        last, known = self._bodies[download]
        size = len(data) + (known if last is request else 0)
        self._bodies[download] = request, size
        self._total += size - known
        if size > self._bytes_max - self._total:
            self._bodies[download] = request, 0
            self._total -= size
            raise NoRoomError


def decode(body: bytes, content_encoding: str, maxsize: int) -> bytes:
    """Return the decoded body; `content_encoding` is the header, a list with commas.

    Raises `ValueError`, with the reason, if the body is damaged, incomplete, in an unsupported encoding, or
    larger than `maxsize` bytes after decoding.
    """
    names = map(str.strip, content_encoding.lower().split(","))
    encodings = [name for name in names if name not in ("", "identity")]
    if len(encodings) > _MOST_ENCODINGS:
        raise ValueError(f"its Content-Encoding has more than {_MOST_ENCODINGS} values")
    for encoding in reversed(encodings):
        body = _decode(body, encoding, maxsize)
    if body.startswith(_GZIP):  # without a Content-Encoding: a robots.txt.gz that the server sends as text
        body = _decode(body, "gzip", maxsize)
    if len(body) > maxsize:
        raise ValueError(f"it has more than {maxsize} bytes")
    return body


def _decode(body: bytes, encoding: str, maxsize: int) -> bytes:
    if encoding not in _STREAMS:
        raise ValueError(f"its Content-Encoding {encoding} is not supported")
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
                f"its Content-Encoding is {encoding}, and no package that decodes it is installed"
            ) from None
        except Exception as exc:  # each decoder has its own exceptions
            raise ValueError(f"its {encoding} data is damaged: {exc}") from None
        room -= len(parts[-1])
        if room <= 0:
            raise ValueError(f"it has more than {maxsize} bytes after decompression")
        if not stream.eof:
            raise ValueError(f"its {encoding} data is incomplete")
        body = stream.unused_data.lstrip(_PADDING)  # gzip and zstd files may have several members
    return b"".join(parts)


def _gzip(body: bytes) -> _Stream:
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)


def _deflate(body: bytes) -> _Stream:
    """Return a decompressor for zlib's format or, as some servers send, for raw deflate data."""
    is_wrapped = body[0] & 0x0F == zlib.DEFLATED and int.from_bytes(body[:2], "big") % 31 == 0
    return zlib.decompressobj(wbits=zlib.MAX_WBITS if is_wrapped else -zlib.MAX_WBITS)


class _Brotli:
    """A decompressor for brotli, which raises an error if data follows the end of the stream."""

    unused_data = b""

    def __init__(self, body: bytes) -> None:
        import brotli  # noqa: PLC0415  # installed with Scrapy from 2.19 on

        self._stream: Any = brotli.Decompressor()

    @property
    def eof(self) -> bool:
        return bool(self._stream.is_finished())

    def decompress(self, data: bytes, max_length: int, /) -> Any:
        return self._stream.process(data, output_buffer_limit=max_length)  # or longer, but not shorter


def _zstd(body: bytes) -> _Stream:
    # Installed with Scrapy from 2.19 on. The older package zstandard does not report where a file ends.
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415
    else:
        from backports import zstd  # noqa: PLC0415
    return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW})


_STREAMS: Mapping[str, Callable[[bytes], _Stream]] = MappingProxyType(
    {"gzip": _gzip, "x-gzip": _gzip, "deflate": _deflate, "br": _Brotli, "zstd": _zstd}
)
