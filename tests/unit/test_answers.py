"""Answers to requests for robots.txt as WARC records, and what the audit reads, whatever was done to them."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scrapy.http import Response

from scrapy_norobots.features.evidence import answers as answers_module
from scrapy_norobots.features.evidence.answers import _head, packed, read_record
from scrapy_norobots.features.evidence.fields import (
    BODY_DIGEST,
    HEADERS_MAX,
    ORIGIN,
    Answer,
    date_of,
    digest_of,
)
from scrapy_norobots.features.evidence.writer import Writer
from scrapy_norobots.rules.snapshot import Snapshot
from tests.helpers.judges.evidence import Stored, answers
from tests.helpers.samples.made_up import BODY_MAX, FILE, SETTINGS, TIME, TOWN, access, answer, end


def stored(folder: Path, *written: Answer) -> list[Stored]:
    """Write records, and return what warcio reads."""
    writer = Writer(folder, "town-1", SETTINGS)
    for record in written:
        writer.put(record)
    end(writer)
    return answers(folder)


def test_an_error_of_several_lines_is_one_field(tmp_path: Path) -> None:
    failed = Snapshot(TOWN, TOWN.robots_url, TIME, error="TimeoutError: \r\n\x00late")
    (one,) = stored(tmp_path, Answer.of(failed))
    assert (one.kind, one.body) == ("metadata", b"norobots-error: TimeoutError: \x00late\r\n")


def test_a_line_break_in_a_header_is_a_blank() -> None:
    headers = [(b"X", b"a \t\r\n\n\t b"), (b"Y", b"\r\na\r"), (b"Z", b" a\tb ")]
    lines = _head("HTTP/1.1", 200, headers).headers_buff.split(b"\r\n")
    assert lines == [b"HTTP/1.1 200 OK", b"X: a \t \t b", b"Y:  a ", b"Z:  a\tb ", b"", b""]


@pytest.mark.parametrize(
    ("protocol", "written"),
    [("HTTP/1.0", b"HTTP/1.0"), ("HTTP/1.1", b"HTTP/1.1"), ("h2", b"HTTP/1.1"), (None, b"HTTP/1.1")],
)
def test_a_record_names_the_version_of_http(protocol: str | None, written: bytes) -> None:
    record = answer(access())
    record.response.protocol = protocol
    assert b"\r\n" + written + b" 200 OK\r\n" in gzip.decompress(packed(record))


def read_back(record: Answer) -> answers_module.Stored:
    """Write a record, and return what an audit reads."""
    return read_record(packed(record), BODY_MAX)


ANY_TEXT = st.text(st.characters(codec=None))
HEADER_NAMES = st.binary(min_size=1).filter(lambda name: b":" not in name)


@given(
    url=ANY_TEXT,
    status=st.integers(100, 999) | st.integers(),
    headers=st.dictionaries(HEADER_NAMES, st.lists(st.binary(), max_size=2)),
    body=st.binary().filter(lambda body: not body.startswith(b"\x1f\x8b")),  # it would be unpacked
    time=st.floats(allow_nan=False),
    is_renewal=st.booleans(),
)
@example("", 200, {b"X": [b"a\r\n\r\nb", b"\nNorobots-Body-Digest: sha256:0"]}, b"", 0.0, False)
@example("\r\nNorobots-Body-Digest: sha256:0", 200, {}, b"", 1e300, True)
def test_any_answer_is_read_back(
    url: str, status: int, headers: dict[bytes, list[bytes]], body: bytes, time: float, is_renewal: bool
) -> None:
    renewed = Snapshot(TOWN, f"{TOWN}/{url}", time, 200, body=body) if is_renewal else None
    status = 304 if is_renewal else status
    is_file = 200 <= status < 300
    response = Response(f"{TOWN}/robots.txt", status, body=body)
    response._url = f"{TOWN}/{url}"  # Scrapy keeps some URLs as they are
    response.headers.update({**headers, b"Content-Encoding": []})
    stored = read_back(Answer(TOWN, response, time, body if is_file or is_renewal else None, renewed))
    assert (stored.fields["WARC-Type"], stored.status) == ("revisit" if renewed else "response", status)
    assert (stored.fields[ORIGIN], stored.fields["WARC-Date"]) == (str(TOWN), date_of(time))
    assert stored.fields.get(BODY_DIGEST) == (digest_of(body) if is_file or is_renewal else None)
    assert stored.body == (body if is_file else None)


@example(Snapshot(TOWN, TOWN.robots_url, TIME, 100, headers={"\ud800": "\ud800"}))
@example(Snapshot(TOWN, TOWN.robots_url, TIME, 200, body=b"\x1f\x8b", headers={"content-encoding": "br"}))
@given(
    st.builds(
        Snapshot,
        origin=st.just(TOWN),
        url=ANY_TEXT.map(lambda path: f"{TOWN}/{path}"),
        time=st.floats(allow_nan=False, allow_infinity=False),
        status=st.none() | st.integers(100, 999),
        error=ANY_TEXT,
        headers=st.dictionaries(ANY_TEXT.filter(lambda name: ":" not in name), ANY_TEXT),
        body=st.binary(),
    )
)
def test_any_copy_from_a_store_is_read_back(snapshot: Snapshot) -> None:
    """Other programs may write to a store."""
    stored = read_back(Answer.of(snapshot, "store"))
    assert stored.status == snapshot.status
    assert (stored.fields[ORIGIN], stored.fields["WARC-Date"]) == (str(TOWN), date_of(snapshot.time))
    if snapshot.status is not None and 200 <= snapshot.status < 300:
        assert stored.body == snapshot.body
    else:
        assert (stored.fields.get(BODY_DIGEST), stored.body) == (None, None)


@cache
def records() -> list[bytes]:
    """Return records of each kind, unpacked."""
    by = access()
    headers = {"Content-Encoding": "gzip"}
    zipped = Response(TOWN.robots_url, body=gzip.compress(FILE), headers=headers)
    failed = Snapshot(TOWN, TOWN.robots_url, TIME, error="TimeoutError")
    written = (
        answer(by), answer(by)._replace(response=zipped), answer(by)._replace(renewed=by.snapshot),
        Answer.of(by.snapshot, "store"), Answer.of(failed),
    )  # fmt: skip
    return [gzip.decompress(packed(one)) for one in written]


PIECES = st.sampled_from(
    b"\r\n|\n|: |WARC/1.1\r\n|WARC-Type: |warcinfo|response|revisit|request|Content-Length: |-1|0|"
    b"99999999999|HTTP/1.1 |200 OK|abc|Transfer-Encoding: chunked|Content-Encoding: |gzip|br|zstd|gzip, gzip|"
    b"sha1:|sha256:|Norobots-Body-Digest: |Norobots-Origin: |\0|\xff|application/http|\x1f\x8b".split(b"|")
)


@given(st.data())
def test_any_change_of_a_record_is_a_record_or_an_exception(data: st.DataObject) -> None:
    text = bytearray(data.draw(st.sampled_from([*records(), b"", b"WARC/1.1\r\n"])))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        text[start : start + data.draw(st.integers(0, 30))] = data.draw(PIECES | st.binary(max_size=20))
    try:
        stored = read_record(gzip.compress(bytes(text)), BODY_MAX)
    except Exception:
        return
    assert stored.body is None or stored.fields[BODY_DIGEST] == digest_of(stored.body)


@pytest.mark.parametrize(
    ("member", "words"),
    [
        (b"hello", "Not a gzipped file"),
        (gzip.compress(b"hello")[:-1], "end-of-stream"),
        (gzip.compress(b"hello"), "it is not a WARC record"),
        (gzip.compress(bytes(HEADERS_MAX + BODY_MAX + 1)), "has more than 4,194,304 bytes"),
    ],
    ids=["bytes", "a half", "text", "a bomb"],
)
def test_what_is_not_a_record_is_said(member: bytes, words: str) -> None:
    with pytest.raises(Exception, match=words):
        read_record(member, BODY_MAX)
