"""Reads the files that `Writer` writes, member by member and in bounded memory.

Both kinds of files are gzip files of many members. A file that ends in the middle of a member was left by a
process that was killed: what is complete in it is read. Anything else that is wrong raises `DamagedError`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

from scrapy_norobots.features.evidence.fields import LINE_MAX

# How many bytes of a file are unpacked at a time. They can become a thousand times as many.
_CHUNK = 16 * 1024


class DamagedError(Exception):
    """A file cannot be read from some place on."""


class GzipFile:
    """The members of a gzip file.

    After the end, `is_cut_off` says whether it ends inside a member; `size` and `digest` (SHA-256) are those
    of what was read.
    """

    def __init__(self, path: Path, on_read: Callable[[int], object] = lambda _: None) -> None:
        """`on_read` is called with how many bytes of the file have been read."""
        self._path = path
        self._on_read = on_read
        self.is_cut_off = False
        self.size = 0
        self._hash = sha256()

    @property
    def digest(self) -> str:
        """The SHA-256 of what was read, in hexadecimal digits."""
        return self._hash.hexdigest()

    def chunks(self, start: int = 0) -> Iterator[tuple[int, bytes, bool]]:
        """Yield the parts of the members from the one on that begins at `start`; raise `DamagedError`.

        Each has the offset of its member, its data, and whether the member ends with it.
        """
        offset = start
        stream = None
        try:
            with self._path.open("rb") as file:
                file.seek(start)
                while data := file.read(_CHUNK):
                    self._on_read(len(data))
                    self.size += len(data)
                    self._hash.update(data)
                    while data:
                        stream = stream or zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
                        text = stream.decompress(data)
                        data = stream.unused_data
                        yield offset, text, stream.eof
                        if stream.eof:
                            offset, stream = file.tell() - len(data), None
        except OSError as exc:
            raise DamagedError(str(exc.strerror or exc)) from exc
        except zlib.error as exc:
            raise DamagedError(f"damaged at byte {offset:,} ({exc})") from exc
        self.is_cut_off = stream is not None

    def members(self, size_max: int, start: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yield the offset and the whole of each member; raise `DamagedError` for one of more bytes."""
        parts: list[bytes] = []
        size = 0
        for offset, data, is_last in self.chunks(start):
            parts.append(data)
            size += len(data)
            if size > size_max:
                problem = f"has a record of more than {size_max:,} bytes at byte {offset:,}"
                raise DamagedError(f"{problem}; if that is right, set NOROBOTS_MAXSIZE as in the crawl")
            if is_last:
                yield offset, b"".join(parts)
                parts, size = [], 0

    def lines(self) -> Iterator[bytes]:
        """Yield the lines, without line feeds; raise `DamagedError` if the last one has none."""
        rest = b""
        for _, data, _ in self.chunks():
            *lines, rest = (rest + data).split(b"\n")
            yield from lines
            if len(rest) > LINE_MAX:
                raise DamagedError(f"has a line of more than {LINE_MAX:,} bytes")
        if rest and not self.is_cut_off:
            raise DamagedError("ends in the middle of a line")
