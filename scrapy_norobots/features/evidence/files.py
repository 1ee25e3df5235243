"""Reads the files that `Writer` writes, member by member and in bounded memory.

Both kinds of files are gzip files of many members. A file that ends in the middle of a member was left by a
process that was killed: what is complete in it is read. Anything else that is wrong raises `DamagedError`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from warcio.archiveiterator import ArchiveIterator
from warcio.recordloader import ArcWarcRecord

from scrapy_norobots.features.evidence import fields
from scrapy_norobots.features.evidence.fields import digest_of
from scrapy_norobots.load.body import decode

# How many bytes of a file are unpacked at a time. They can become a thousand times as many.
_CHUNK = 16 * 1024

# More bytes than the largest robots.txt that is allowed, and its headers.
_RECORD_MAX = 300 * 1024 * 1024
_LINE_MAX = 4 * 1024 * 1024


class DamagedError(Exception):
    """A file cannot be read from some place on."""


class GzipFile:
    """The members of a gzip file. `is_cut_off` says, after the end, whether it ends inside a member."""

    def __init__(self, path: Path, on_read: Callable[[int], object] = lambda _: None) -> None:
        """`on_read` is called with how many bytes of the file have been read."""
        self._path = path
        self._on_read = on_read
        self.is_cut_off = False

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

    def members(self, start: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yield the offset and the whole of each member."""
        parts: list[bytes] = []
        size = 0
        for offset, data, is_last in self.chunks(start):
            parts.append(data)
            size += len(data)
            if size > _RECORD_MAX:
                raise DamagedError(f"has a record of more than {_RECORD_MAX:,} bytes at byte {offset:,}")
            if is_last:
                yield offset, b"".join(parts)
                parts, size = [], 0

    def lines(self) -> Iterator[bytes]:
        """Yield the complete lines."""
        rest = b""
        for _, data, _ in self.chunks():
            *lines, rest = (rest + data).split(b"\n")
            yield from lines
            if len(rest) > _LINE_MAX:
                raise DamagedError(f"has a line of more than {_LINE_MAX:,} bytes")


class Stored(NamedTuple):
    """What an audit needs of one WARC record.

    `origin` is empty if the record is none of this package's. `status` is None if there was no answer;
    `digest` is that of the body by which pages are judged, as the record has it. `problem` says what about
    the record itself is wrong. `about` are the fields of a `warcinfo` record.
    """

    kind: str
    url: str = ""
    origin: str = ""
    date: str = ""
    status: int | None = None
    digest: str | None = None
    body: bytes | None = None
    problem: str = ""
    about: Mapping[str, str] = MappingProxyType({})


def read_record(data: bytes) -> Stored:
    """Read the WARC record of a gzip member; raise `DamagedError` for what is none, or is more than one."""
    try:
        records = iter(ArchiveIterator(BytesIO(data), check_digests=True))
        record = next(records)
        body = record.raw_stream.read()
        stored = _fields_of(record, body)
        is_alone = next(records, None) is None
    except Exception as exc:  # warcio may raise anything for what is not a record
        raise DamagedError(f"not a WARC record ({type(exc).__name__}: {exc})") from exc
    if not is_alone:
        raise DamagedError("has several records in one gzip member; 'warcio recompress' separates them")
    if stored.kind == "warcinfo":
        return stored
    try:
        return stored._replace(body=_judged(record, body, stored))
    except ValueError as exc:
        return stored._replace(problem=str(exc))


def _fields_of(record: ArcWarcRecord, body: bytes) -> Stored:
    kind = str(record.rec_type)
    if kind == "warcinfo":
        lines = (line.partition(": ") for line in body.decode("utf-8", "replace").splitlines())
        wanted = (
            fields.RUN, fields.POLICY, fields.MULTIVALUE, fields.AIOHTTP, fields.ALSO_ROBOTS, fields.PURPOSES
        )  # fmt: skip
        return Stored(kind, about={name: value for name, _, value in lines if name in wanted})
    get = record.rec_headers.get_header
    return Stored(
        kind,
        url=get("WARC-Target-URI") or "",
        origin=get(fields.ORIGIN) or "",
        date=get("WARC-Date") or "",
        status=None if record.http_headers is None else int(record.http_headers.get_statuscode()),
        digest=get(fields.BODY_DIGEST),
    )


def _judged(record: ArcWarcRecord, body: bytes, stored: Stored) -> bytes | None:
    """Return the body by which pages are judged, if it is here; raise `ValueError` if the record is wrong."""
    checker = record.digest_checker
    if checker is not None and checker.passed is False:
        raise ValueError(f"its WARC digest is wrong: {'; '.join(map(str, checker.problems))}")
    if stored.kind != "response" or stored.digest is None:
        return None
    if record.http_headers is None:  # its URL or its type is not that of an HTTP answer
        raise ValueError("it has no HTTP headers")
    if not record.rec_headers.get_header(fields.SOURCE):  # bodies from a store are decoded already
        headers = record.http_headers.headers
        encodings = ",".join(value for name, value in headers if name.lower() == "content-encoding")
        try:
            body = decode(body, encodings, _RECORD_MAX)
        except ValueError as exc:
            raise ValueError(f"its body cannot be decoded: {exc}") from exc
    actual = digest_of(body)
    if actual != stored.digest:
        raise ValueError(f"its body has the digest {actual}, not {stored.digest}")
    return body
