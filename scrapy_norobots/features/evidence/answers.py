"""The answers to requests for robots.txt, as records of a WARC 1.1 file (ISO 28500:2017).

A `response` record holds an answer as Scrapy received it: the status, the headers, and the body with its
Content-Encoding. A 304 that renews a copy is a `revisit`. A download without an answer is a `metadata`
record. A copy from a store is a `response` with the date of its download; a store keeps some headers only.
The record's fields `Norobots-Origin` and, where the body was judged, `Norobots-Body-Digest` link it with
decisions. Whatever a URL or a header contains, it stays in its own line of the record, and a record is not
larger than a body and `HEADERS_MAX`, so that it can be read again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from io import BytesIO
from typing import Any, NamedTuple, TypeAlias

from scrapy.http import Response
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from scrapy_norobots.features.evidence.fields import (
    BODY_DIGEST,
    FOLLOWED_BY,
    HTTP_HEADERS_MAX,
    ORIGIN,
    REQUESTED,
    SOURCE,
    STORE,
    date_of,
    digest_of,
    shortened,
    uri_of,
)
from scrapy_norobots.load.body import ENCODING_HEADER
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Origin

_NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"

# How Scrapy marks an answer that was cut off, and the word for it in a WARC-Truncated field.
_CUT_OFF = {"dataloss": "disconnect", "download_stopped": "length"}

# Headers that have another name in a record. Scrapy has already decoded the transfer, so readers must not do
# so again; and `fetch` has renamed the Content-Encoding.
_OTHER_NAMES = {
    b"transfer-encoding": b"X-Orig-Transfer-Encoding",
    ENCODING_HEADER.lower().encode(): b"Content-Encoding",
}

_LINE_BREAK = re.compile(rb"[\r\n]+")


class Answer(NamedTuple):
    """An answer over the network.

    `judged` is the decoded body, if pages are judged by it; `renewed` is the copy that a 304 renews.
    `requested` is the URL of the request. `followed_by` says what followed on an answer that decided nothing.
    """

    origin: Origin
    response: Response
    time: float
    judged: bytes | None = None
    renewed: Snapshot | None = None
    requested: str = ""
    followed_by: str = ""

    def write(self, writer: WARCWriter) -> None:
        """Write it as a `response`, or as a `revisit` if it renews a copy."""
        response = self.response
        fields = _fields(self.origin, self.time, self.judged)
        fields |= _requested(self.requested, response.url)
        if self.followed_by:
            fields[FOLLOWED_BY] = self.followed_by
        if response.ip_address is not None:
            fields["WARC-IP-Address"] = str(response.ip_address)
        for flag, word in _CUT_OFF.items():
            if flag in response.flags:
                fields["WARC-Truncated"] = word
        headers = [
            (_OTHER_NAMES.get(name.lower(), name), value)
            for name, values in response.headers.items()
            for value in values
        ]
        # HTTP/2 has no text form, so its answers have that of HTTP/1.1.
        protocol = "HTTP/1.0" if response.protocol == "HTTP/1.0" else "HTTP/1.1"
        head = _Head(protocol, response.status, headers)
        if head.is_cut:
            fields["WARC-Truncated"] = "length"
        kind, body = "response", response.body
        if self.renewed is not None:
            kind, body = "revisit", b""
            fields[BODY_DIGEST] = digest_of(self.renewed.body)
            fields["WARC-Profile"] = _NOT_MODIFIED
            # Replay tools look for a response there, not for another revisit.
            fields["WARC-Refers-To-Target-URI"] = uri_of(self.renewed.url)
            fields["WARC-Refers-To-Date"] = date_of(self.renewed.first_time or self.renewed.time)
        _write(writer, kind, response.url, head, body, fields)


class Copy(NamedTuple):
    """A snapshot without its answer: one that came from a store, or a download without an answer.

    `source` is empty for the latter. `requested` is the URL of the request.
    """

    snapshot: Snapshot
    source: str = STORE
    requested: str = ""

    def write(self, writer: WARCWriter) -> None:
        """Write it with the date of its download; without a status, as a `metadata` record of the error."""
        snapshot = self.snapshot
        judged = snapshot.body if snapshot.status is not None and 200 <= snapshot.status < 300 else None
        fields = _fields(snapshot.origin, snapshot.time, judged)
        fields |= _requested(self.requested, snapshot.url)
        if self.source:
            fields[SOURCE] = self.source
        if snapshot.status is None:
            text = " ".join(snapshot.error.split())
            body = f"norobots-error: {text}\r\n".encode("utf-8", "backslashreplace")
            _write(writer, "metadata", snapshot.url, None, body, fields)
            return
        headers = [
            (name.encode("utf-8", "replace"), value.encode("latin-1", "replace"))
            for name, value in snapshot.headers.items()
        ]
        head = _Head("HTTP/1.1", snapshot.status, headers)
        _write(writer, "response", snapshot.url, head, snapshot.body, fields)


AnswerRecord: TypeAlias = Answer | Copy


def writer_of(file: Any) -> WARCWriter:
    """Return a writer of records to a file."""
    return _Writer(file, gzip=True, warc_version="1.1")


def begin(file: Any, name: str, about: Mapping[str, str]) -> None:
    """Write the `warcinfo` record, with which a WARC file begins."""
    writer = writer_of(file)
    writer.write_record(writer.create_warcinfo_record(name, about))


def _fields(origin: Origin, time: float, judged: bytes | None) -> dict[str, str]:
    fields = {"WARC-Date": date_of(time), ORIGIN: uri_of(shortened(str(origin)))}
    if judged is not None:
        fields[BODY_DIGEST] = digest_of(judged)
    return fields


def _requested(url: str, answered: str) -> dict[str, str]:
    return {REQUESTED: uri_of(url)} if url and url != answered else {}


def _write(
    writer: WARCWriter, kind: str, url: str, head: _Head | None, body: bytes, fields: dict[str, str]
) -> None:
    record = writer.create_warc_record(
        uri_of(url),
        kind,
        payload=BytesIO(body),
        length=len(body),
        http_headers=head,
        warc_headers_dict=fields,
    )
    writer.write_record(record)


def _unfolded(field: bytes) -> bytes:
    """Return a field on one line: a line break and the blanks around it are a space (RFC 9112, 5.2)."""
    if b"\n" not in field and b"\r" not in field:
        return field
    return b" ".join(line.strip(b" \t") for line in _LINE_BREAK.split(field))


class _Writer(WARCWriter):  # type: ignore[misc]  # warcio has no types
    # WARC 1.1, 5.9: a record with a payload may have its digest; the block of metadata is none.
    NO_PAYLOAD_DIGEST_TYPES = (*WARCWriter.NO_PAYLOAD_DIGEST_TYPES, "metadata")


class _Head(StatusAndHeaders):  # type: ignore[misc]  # warcio has no types
    """The head of an HTTP answer, byte by byte as it came: warcio's own would encode what is not ASCII.

    If there is too much of it, it `is_cut`.
    """

    def __init__(self, protocol: str, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else ""
        super().__init__(f"{status} {phrase}", [], protocol=protocol)
        fields = [_unfolded(b": ".join(pair)) for pair in headers]
        self.is_cut = sum(map(len, fields)) > HTTP_HEADERS_MAX
        if self.is_cut:
            fields = [field for field in fields if len(field) * len(fields) <= HTTP_HEADERS_MAX]
        self._raw = b"\r\n".join([f"{protocol} {status} {phrase}".encode(), *fields, b"", b""])

    def compute_headers_buffer(self, _filter: Any = None) -> None:
        """Set the bytes that warcio writes."""
        self.headers_buff = self._raw
