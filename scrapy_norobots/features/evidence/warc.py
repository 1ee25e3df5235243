"""Reads one WARC record, and finds what is wrong with it.

`read_record` raises `DamagedError` for bytes that are not a record. A record that contradicts itself has a
`problem`. Memory is bounded by the size of the largest body that may be read.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from io import BytesIO
from types import MappingProxyType
from typing import NamedTuple

from scrapy.http import Response
from w3lib.url import safe_url_string
from warcio.archiveiterator import ArchiveIterator
from warcio.recordloader import ArcWarcRecord

from scrapy_norobots.features.evidence import fields
from scrapy_norobots.features.evidence.fields import digest_of
from scrapy_norobots.features.evidence.gzip_file import DamagedError
from scrapy_norobots.load.body import decode
from scrapy_norobots.load.fetch import redirect_target

# Not only those of HTTP: Twisted accepts any number.
_STATUS = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)
_FOLLOWED_BY = ("", fields.REDIRECT, fields.RETRY)
_LOCATION = re.compile(rb"^location:([^\n]*)", re.IGNORECASE | re.MULTILINE)


class Stored(NamedTuple):
    """What an audit needs of one WARC record.

    `origin` is empty if the record is none of this package's. `status` is None if there was no answer;
    `digest` is that of the body by which pages are judged, as the record has it. `problem` says what about
    the record itself is wrong. `requested` is the URL of the request, and `leads_to` that of the next one,
    if the answer is a redirect that was followed; `followed_by` says why an answer decided nothing. `renews`
    are the URL and the date of the response that a `revisit` renews. `about` are the fields of a `warcinfo`
    record, and `url` is the name of the file then. `record_id` is the WARC-Record-ID.
    """

    kind: str
    url: str = ""
    origin: str = ""
    date: str = ""
    status: int | None = None
    digest: str | None = None
    body: bytes | None = None
    problem: str = ""
    requested: str = ""
    source: str = ""
    leads_to: str = ""
    followed_by: str = ""
    renews: tuple[str, str] = ("", "")
    record_id: str = ""
    about: Mapping[str, str] = MappingProxyType({})

    @property
    def is_unread(self) -> bool:
        """Whether it is a file that was not read, such as one that was cut off: an error follows."""
        is_file = self.status is not None and 200 <= self.status < 300
        return is_file and self.digest is None and not self.followed_by


def read_record(data: bytes, body_max: int) -> Stored:
    """Read the WARC record of a gzip member, whose body has at most `body_max` bytes after decompression.

    Raises `DamagedError` for bytes that are not exactly one record.
    """
    if not data.startswith(b"WARC/"):  # warcio would unpack it once more, however large it is then
        raise DamagedError("not a WARC record")
    try:
        records = iter(ArchiveIterator(BytesIO(data), check_digests=True))
        record = next(records)
        body = record.raw_stream.read()
        stored = _fields_of(record, body, data)
        problem = ""
        if stored.origin or stored.about:
            problem = _digest_problem(record, data) or _form_problem(record, stored, body)
        is_alone = next(records, None) is None
    except Exception as exc:  # warcio may raise anything for what is not a record
        raise DamagedError(f"not a WARC record ({type(exc).__name__}: {exc})") from exc
    if not is_alone:
        raise DamagedError("has several records in one gzip member; 'warcio recompress' separates them")
    if problem or stored.kind == "warcinfo":
        return stored._replace(problem=problem)
    try:
        return stored._replace(body=_judged(record, body, stored, body_max))
    except ValueError as exc:
        return stored._replace(problem=str(exc))


def _fields_of(record: ArcWarcRecord, body: bytes, data: bytes) -> Stored:
    kind, get = str(record.rec_type), record.rec_headers.get_header
    if kind == "warcinfo":
        lines = (line.partition(": ") for line in body.decode("utf-8", "replace").splitlines())
        wanted = (
            fields.RUN, fields.ANSWERS_BEFORE, fields.PREVIOUS_FILE, fields.ROBOTS, *fields.SETTINGS
        )  # fmt: skip
        about: dict[str, str] = {}
        for name, _, value in lines:
            if name in wanted:
                # Of two values, none is right.
                about[name] = value if name not in about else ""
        return Stored(
            kind,
            url=get("WARC-Filename") or "",
            date=get("WARC-Date") or "",
            record_id=get("WARC-Record-ID") or "",
            about=about if fields.POLICY in about else {},
        )
    code = "" if record.http_headers is None else record.http_headers.get_statuscode()
    status = int(code) if _STATUS.fullmatch(code) else None
    followed_by = get(fields.FOLLOWED_BY) or ""
    url = get("WARC-Target-URI") or ""
    leads_to = ""
    if followed_by == fields.REDIRECT and status is not None:
        leads_to = _leads_to(url, status, data)
    return Stored(
        kind,
        url=url,
        origin=get(fields.ORIGIN) or "",
        date=get("WARC-Date") or "",
        status=status,
        digest=get(fields.BODY_DIGEST),
        requested=get(fields.REQUESTED) or url,
        source=get(fields.SOURCE) or "",
        leads_to=leads_to,
        followed_by=followed_by,
        renews=(get("WARC-Refers-To-Target-URI") or "", get("WARC-Refers-To-Date") or ""),
        record_id=get("WARC-Record-ID") or "",
    )


def _leads_to(url: str, status: int, data: bytes) -> str:
    """Return where a redirect leads to, as the crawl follows it; empty if it is none."""
    head = data.partition(b"\r\n\r\n")[2].partition(b"\r\n\r\n")[0]
    location = _LOCATION.findall(head)
    target = (
        redirect_target(Response(url, status, headers={"Location": location[-1].strip(b" \t\r")}))
        if location
        else None
    )
    return as_requested(target) if target else ""


def as_requested(url: str) -> str:
    """Return a URL as a request has it; empty if it is none."""
    try:
        return fields.uri_of(safe_url_string(url))
    except ValueError:
        return ""


def _form_problem(record: ArcWarcRecord, stored: Stored, body: bytes) -> str:
    """Return in what a record differs from those that are written."""
    kind, source, followed_by = stored.kind, stored.source, stored.followed_by
    names = [name.lower() for name, _ in record.rec_headers.headers]
    if len(set(names)) < len(names):
        return "it has a field twice"
    if kind == "warcinfo":
        return ""
    is_answer = kind != "metadata"
    return next(
        problem
        for problem, is_found in (
            (f"it is a {kind} record", kind not in ("response", "revisit", "metadata")),
            (f"its WARC-Date is {stored.date!r}", not _is_date(stored.date)),
            (f"its {fields.SOURCE} is {source!r}", source not in ("", fields.STORE)),
            ("it came from a store, but has an IP address", source and "warc-ip-address" in names),
            (f"its {fields.FOLLOWED_BY} is {followed_by!r}", followed_by not in _FOLLOWED_BY),
            (
                "it is no redirect that can be followed",
                followed_by == fields.REDIRECT and not stored.leads_to,
            ),
            ("it has no norobots-error", not is_answer and not body.startswith(b"norobots-error: ")),
            ("it has no HTTP headers", is_answer and record.http_headers is None),
            ("its HTTP status is invalid", is_answer and stored.status is None),
            ("it names no file", kind == "revisit" and stored.digest is None),
            ("", True),
        )
        if is_found
    )


def _is_date(text: str) -> bool:
    try:
        fields.check_date(text)
    except ValueError:
        return False
    return True


def _digest_problem(record: ArcWarcRecord, data: bytes) -> str:
    """Return what is wrong with the digests that WARC tools know; warcio checks none of a revisit."""
    checker = record.digest_checker
    if checker is not None and checker.passed is False:
        return f"its WARC digest is wrong: {'; '.join(map(str, checker.problems))}"
    stated = record.rec_headers.get_header("WARC-Block-Digest")
    if stated is None:
        return "it has no WARC-Block-Digest"
    if record.rec_type != "revisit":
        return ""
    algorithm, _, value = stated.partition(":")
    size = int(record.rec_headers.get_header("Content-Length"))
    block = data.partition(b"\r\n\r\n")[2][:size]
    try:
        digest = hashlib.new(algorithm, block).digest()
    except (ValueError, TypeError):
        return f"its WARC digest is wrong: unknown algorithm {algorithm!r}"
    known = (base64.b32encode(digest).decode(), digest.hex(), base64.b64encode(digest).decode())
    return "" if value in known else "its WARC digest is wrong: block digest"


def _judged(record: ArcWarcRecord, body: bytes, stored: Stored, body_max: int) -> bytes | None:
    """Return the body by which pages are judged, if it is here; raise `ValueError` if the record is wrong."""
    if not stored.origin or stored.digest is None:
        return None
    if stored.kind == "revisit":
        if stored.status != 304:
            raise ValueError(f"it renews a file, but its status is {stored.status}, not 304")
        return None
    if stored.kind != "response":
        raise ValueError(f"it has a {fields.BODY_DIGEST}, but it is a {stored.kind} record")
    if stored.status is None or not 200 <= stored.status < 300:
        raise ValueError(f"it has a {fields.BODY_DIGEST}, but its status is {stored.status}")
    if not stored.source:  # bodies from a store are decoded already
        headers = record.http_headers.headers
        encodings = ",".join(value for name, value in headers if name.lower() == "content-encoding")
        try:
            body = decode(body, encodings, body_max)
        except ValueError as exc:
            raise ValueError(f"its body cannot be decoded: {exc}") from exc
    actual = digest_of(body)
    if actual != stored.digest:
        raise ValueError(f"its body has the digest {actual}, not {stored.digest}")
    return body
