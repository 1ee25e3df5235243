"""Answers to requests for robots.txt as WARC records."""

from __future__ import annotations

from pathlib import Path

from scrapy_norobots.evidence.answers import Answer, Copy, Failure
from scrapy_norobots.evidence.fields import BODY_DIGEST, ORIGIN, SOURCE, digest_of
from scrapy_norobots.evidence.writer import Writer
from scrapy_norobots.snapshot import Snapshot
from tests.evidence import Stored, answers
from tests.made_up import ABOUT, FILE, TIME, TOWN, access, answer, end


def stored(folder: Path, *records: Answer | Copy | Failure) -> list[Stored]:
    """Write records, and return what warcio reads."""
    writer = Writer(folder, "town-1", ABOUT)
    for record in records:
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
    (one,) = stored(tmp_path, Failure(failed))
    assert (one.kind, one.body) == ("metadata", b"norobots-error: TimeoutError: \x00late\r\n")
