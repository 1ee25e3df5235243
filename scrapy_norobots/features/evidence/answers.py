"""The answers to requests for robots.txt as records of a WARC 1.1 file (ISO 28500:2017), written and read.

A `response` record holds an answer as Scrapy received it, with its Content-Encoding. A 304 that renews a copy
is a `revisit`. A download without an answer is a `metadata` record. A copy from a store is a `response` with
the date of its download; a store keeps some headers only. The record's fields `Norobots-Origin` and, where
the body was judged, `Norobots-Body-Digest` link it with decisions. Whatever a URL or a header contains, it
stays in its own line of the record.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Mapping
from contextlib import closing
from http.client import responses
from io import BytesIO
from typing import NamedTuple

from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from scrapy_norobots.features.evidence import fields
from scrapy_norobots.features.evidence.fields import date_of, digest_of, uri_of
from scrapy_norobots.load.body import ENCODING_HEADER, decode

_NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"

# Headers that have another name in a record. Scrapy has already decoded the transfer, so readers must not do
# so again; and `fetch` has renamed the Content-Encoding.
_OTHER_NAMES = {
    b"transfer-encoding": b"X-Orig-Transfer-Encoding",
    ENCODING_HEADER.lower().encode(): b"Content-Encoding",
}

_LINE_BREAK = re.compile(rb"[\r\n]+")


def packed(answer: fields.Answer) -> bytes:
    """Return the bytes of a record: its kind is one of those above."""
    response, renewed = answer.response, answer.renewed
    more = {
        "WARC-Date": date_of(answer.time),
        fields.ORIGIN: uri_of(str(answer.origin)),
        fields.BODY_DIGEST: None if answer.judged is None else digest_of(answer.judged),
        fields.NOTE: answer.note,
        "WARC-IP-Address": str(response.ip_address) if response.ip_address else None,
    }
    if answer.error is not None:
        text = f"norobots-error: {' '.join(answer.error.split())}\r\n"
        return _packed("metadata", response.url, None, text.encode("utf-8", "backslashreplace"), more)
    headers = [
        (_OTHER_NAMES.get(name.lower(), name), value)
        for name, values in response.headers.items()
        for value in values
    ]
    # HTTP/2 has no text form, so its answers have that of HTTP/1.1.
    protocol = "HTTP/1.0" if response.protocol == "HTTP/1.0" else "HTTP/1.1"
    head = _head(protocol, response.status, headers)
    if renewed is None:
        return _packed("response", response.url, head, response.body, more)
    revisited = {
        "WARC-Profile": _NOT_MODIFIED,
        # Replay tools look for a response there, not for another revisit.
        "WARC-Refers-To-Target-URI": uri_of(renewed.url),
        "WARC-Refers-To-Date": date_of(renewed.received or renewed.time),
    }
    return _packed("revisit", response.url, head, b"", {**more, **revisited})


def _packed(
    kind: str, url: str, head: StatusAndHeaders | None, body: bytes, more: Mapping[str, str | None]
) -> bytes:
    file = BytesIO()
    writer = WARCWriter(file, gzip=True, warc_version="1.1")
    # WARC 1.1, 5.9: a record with a payload may have its digest; the block of metadata is none.
    writer.NO_PAYLOAD_DIGEST_TYPES += ("metadata",)
    headers = {name: value for name, value in more.items() if value is not None}
    record = writer.create_warc_record(
        uri_of(url), kind, BytesIO(body), len(body), warc_headers_dict=headers, http_headers=head
    )
    writer.write_record(record)
    return file.getvalue()


def _head(protocol: str, status: int, headers: Iterable[tuple[bytes, bytes]]) -> StatusAndHeaders:
    """Return the head of an HTTP answer as it came; a line break in a field is a space (RFC 9112, 5.2)."""
    phrase = responses.get(status, "")
    head = StatusAndHeaders(f"{status} {phrase}", [], protocol=protocol)
    lines = [_LINE_BREAK.sub(b" ", b": ".join(pair)) for pair in headers]
    head.headers_buff = b"\r\n".join([f"{protocol} {status} {phrase}".encode(), *lines, b"", b""])
    head.compute_headers_buffer = lambda _filter=None: None  # warcio would encode what is not ASCII
    return head


class Stored(NamedTuple):
    """What an audit needs of one WARC record: its fields, the status of the answer, and what was judged."""

    fields: Mapping[str, str]
    status: int | None
    body: bytes | None = None


def read_record(member: bytes, body_max: int) -> Stored:
    """Read the record of a gzip member, whose body may have `body_max` bytes.

    Raises any exception for what is not a record, as warcio does.
    """
    size_max = body_max + fields.HEADERS_MAX
    data = gzip.GzipFile(fileobj=BytesIO(member)).read(size_max + 1)
    if len(data) > size_max:
        raise ValueError(f"it has more than {size_max:,} bytes; set NOROBOTS_MAXSIZE as in the crawl")
    if not data.startswith(b"WARC/"):  # warcio would unpack it once more, however large it is then
        raise ValueError("it is not a WARC record")
    with closing(iter(ArchiveIterator(BytesIO(data)))) as records:  # a circle that keeps the data
        record = next(records)
        body, stated, http = record.raw_stream.read(), dict(record.rec_headers.headers), record.http_headers
    digest, status = stated.get(fields.BODY_DIGEST), None if http is None else int(http.get_statuscode())
    if digest is None or record.rec_type != "response":
        return Stored(stated, status)
    if stated.get(fields.NOTE) != fields.STORE:  # bodies from a store are decoded already
        encodings = ",".join(value for name, value in http.headers if name.lower() == "content-encoding")
        body = decode(body, encodings, body_max)
    if digest_of(body) != digest:
        raise ValueError(f"its body has the digest {digest_of(body)}, not {digest}")
    return Stored(stated, status, body)
