"""WARC records as the audit reads them, whatever was done to them."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from scrapy.http import Response

from scrapy_norobots.features.evidence.answers import Copy
from scrapy_norobots.features.evidence.fields import digest_of
from scrapy_norobots.features.evidence.gzip_file import DamagedError, GzipFile
from scrapy_norobots.features.evidence.warc import read_record
from scrapy_norobots.features.evidence.writer import Writer
from scrapy_norobots.rules.snapshot import Snapshot
from tests.helpers.judges.evidence import files
from tests.helpers.samples.made_up import ABOUT, BODY_MAX, FILE, TIME, TOWN, access, answer, end


@settings(max_examples=100, deadline=None)
@given(st.binary())
def test_anything_is_a_record_or_damaged(data: bytes) -> None:
    try:
        read_record(data, BODY_MAX)
        read_record(b"WARC/1.1\r\n" + data, BODY_MAX)
    except DamagedError:
        pass


@cache
def records() -> list[bytes]:
    """Return records of each kind, as they are written."""
    by = access()
    packed = answer(by)._replace(
        response=Response(
            f"{TOWN}/robots.txt", body=gzip.compress(FILE), headers={"Content-Encoding": "gzip"}
        )
    )
    failed = Snapshot(TOWN, TOWN.robots_url, TIME, error="TimeoutError")
    with TemporaryDirectory() as folder:
        writer = Writer(Path(folder), "town-1", ABOUT)
        for record in (
            answer(by),
            packed,
            answer(by)._replace(renewed=by.snapshot),
            Copy(by.snapshot),
            Copy(failed, source=""),
        ):
            writer.put(record)
        end(writer)
        (path,) = files(Path(folder), ".warc.gz")
        return [data for _, data in GzipFile(path).members(BODY_MAX)]


PIECES = st.sampled_from(
    [
        *(
            b"\r\n",
            b"\n",
            b": ",
            b"WARC/1.1\r\n",
            b"WARC-Type: ",
            b"warcinfo",
            b"response",
            b"revisit",
            b"request",
        ),
        *(
            b"Content-Length: ",
            b"-1",
            b"0",
            b"99999999999",
            b"HTTP/1.1 ",
            b"200 OK",
            b"abc",
            b"Transfer-Encoding: chunked",
        ),
        *(
            b"Content-Encoding: ",
            b"gzip",
            b"br",
            b"zstd",
            b"gzip, gzip",
            b"WARC-Payload-Digest: ",
            b"sha1:",
            b"sha256:",
        ),
        *(b"Norobots-Body-Digest: ", b"Norobots-Origin: ", b"\0", b"\xff", b"application/http", b"\x1f\x8b"),
    ]
)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_any_change_of_a_record_is_a_record_or_damaged(data: st.DataObject) -> None:
    text = bytearray(data.draw(st.sampled_from(records())))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        text[start : start + data.draw(st.integers(0, 30))] = data.draw(PIECES | st.binary(max_size=20))
    try:
        stored = read_record(bytes(text), BODY_MAX)
    except DamagedError:
        return
    assert stored.status is None or isinstance(stored.status, int)
    if stored.body is not None:
        assert not stored.problem
        assert stored.digest == digest_of(stored.body)


def test_a_response_that_is_not_http_is_a_problem() -> None:
    record = records()[1].replace(b"URI: http:", b"URI: ftp:").replace(b"WARC-Payload-Digest", b"X-Digest")
    stored = read_record(record, BODY_MAX)
    assert (stored.kind, stored.problem) == ("response", "it has no HTTP headers")
    assert (stored.status, stored.body) == (None, None)
