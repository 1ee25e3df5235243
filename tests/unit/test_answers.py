"""Answers to requests for robots.txt as WARC records."""

from __future__ import annotations

import gzip
from io import BytesIO
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st
from scrapy.http import Response

from scrapy_norobots.features.evidence import warc
from scrapy_norobots.features.evidence.answers import Answer, Copy, _Head, begin, writer_of
from scrapy_norobots.features.evidence.fields import BODY_DIGEST, ORIGIN, SOURCE, date_of, digest_of
from scrapy_norobots.features.evidence.writer import Writer
from scrapy_norobots.rules.snapshot import Snapshot
from tests.helpers.judges.evidence import Stored, answers
from tests.helpers.samples.made_up import ABOUT, BODY_MAX, FILE, TIME, TOWN, access, answer, end


def stored(folder: Path, *written: Answer | Copy) -> list[Stored]:
    """Write records, and return what warcio reads."""
    writer = Writer(folder, "town-1", ABOUT)
    for record in written:
        writer.put(record)
    end(writer)
    warcinfo, *rest = answers(folder)
    assert warcinfo.kind == "warcinfo"
    return rest


def test_an_answer_and_a_copy_differ_in_their_source(tmp_path: Path) -> None:
    by = access()
    first, copy = stored(tmp_path, answer(by), Copy(by.snapshot))
    for one in (first, copy):
        assert (one.kind, one.status, one.body) == ("response", "200", FILE)
        assert one.headers[ORIGIN] == "http://town.example"
        assert one.headers[BODY_DIGEST] == digest_of(FILE)
        assert one.headers["WARC-Date"] == "2023-11-14T22:13:20.000000Z"
    assert SOURCE not in first.headers
    assert copy.headers[SOURCE] == "store"


def test_a_renewed_copy_is_a_revisit_of_its_record(tmp_path: Path) -> None:
    by = access()
    renewed = answer(by)._replace(time=TIME + 60, judged=None, renewed=by.snapshot)
    (one,) = stored(tmp_path, renewed)
    assert (one.kind, one.body) == ("revisit", b"")
    assert one.headers[BODY_DIGEST] == digest_of(FILE)
    assert one.headers["WARC-Refers-To-Date"] == "2023-11-14T22:13:20.000000Z"
    assert one.headers["WARC-Refers-To-Target-URI"] == TOWN.robots_url


def test_an_error_of_several_lines_is_one_field(tmp_path: Path) -> None:
    failed = Snapshot(TOWN, TOWN.robots_url, TIME, error="TimeoutError: \r\n\x00late")
    (one,) = stored(tmp_path, Copy(failed, source=""))
    assert (one.kind, one.body) == ("metadata", b"norobots-error: TimeoutError: \x00late\r\n")


def test_a_line_break_in_a_header_is_a_blank() -> None:
    headers = [(b"X", b"a \t\r\n\n\t b"), (b"Y", b"\r\na\r"), (b"Z", b" a\tb ")]
    lines = _Head("HTTP/1.1", 200, headers)._raw.split(b"\r\n")
    assert lines == [b"HTTP/1.1 200 OK", b"X: a b", b"Y: a ", b"Z:  a\tb ", b"", b""]


def read_back(record: Answer | Copy) -> warc.Stored:
    """Write a record, and return what an audit reads."""
    file = BytesIO()
    begin(file, "town-1", ABOUT)
    start = file.tell()
    record.write(writer_of(file))
    return warc.read_record(gzip.decompress(file.getvalue()[start:]), BODY_MAX)


ANY_TEXT = st.text(st.characters(codec=None))
HEADER_NAMES = st.binary(min_size=1).filter(lambda name: b":" not in name)


@given(
    url=ANY_TEXT,
    status=st.integers(100, 999),
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
    stored = read_back(Answer(TOWN, response, time, body if is_file else None, renewed))
    assert (stored.kind, stored.status) == ("revisit" if renewed else "response", status)
    assert (stored.origin, stored.date, stored.problem) == (str(TOWN), date_of(time), "")
    assert stored.digest == (digest_of(body) if is_file or is_renewal else None)
    assert stored.body == (body if is_file else None)


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
    stored = read_back(Copy(snapshot))
    assert stored.status == snapshot.status
    assert (stored.origin, stored.date, stored.problem) == (str(TOWN), date_of(snapshot.time), "")
    if snapshot.status is not None and 200 <= snapshot.status < 300:
        assert stored.body == snapshot.body
    else:
        assert (stored.digest, stored.body) == (None, None)
