"""The index of an audit: outcomes by origin and time, bodies by digest."""

from __future__ import annotations

from pathlib import Path

from scrapy_norobots.features.evidence.fields import date_of, digest_of
from scrapy_norobots.features.evidence.files import GzipFile, read_record
from scrapy_norobots.features.evidence.index import Index, Outcome
from tests.helpers.judges.evidence import files
from tests.helpers.samples.made_up import FILE, TIME, TOWN, write


def test_an_outcome_is_found_by_origin_and_time() -> None:
    index = Index()
    outcome = Outcome(200, digest_of(FILE))
    index.add_outcome(str(TOWN), date_of(TIME), outcome)
    assert index.outcome(str(TOWN), date_of(TIME)) == outcome
    assert index.outcome(str(TOWN), date_of(TIME + 1)) is None
    assert index.outcome("https://town.example", date_of(TIME)) is None
    index.close()


def test_a_later_outcome_replaces_one_of_the_same_origin_and_time() -> None:
    index = Index()
    for outcome in (Outcome(503, None), Outcome(None, None)):
        index.add_outcome(str(TOWN), date_of(TIME), outcome)
    assert index.outcome(str(TOWN), date_of(TIME)) == Outcome(None, None)
    index.close()


def test_each_body_is_read_from_its_own_file(tmp_path: Path) -> None:
    write(tmp_path, 20, file_max=2_000)
    paths = files(tmp_path, ".warc.gz")
    assert len(paths) > 1
    index = Index()
    expected = {}
    for path in paths:
        for offset, data in GzipFile(path).members():
            record = read_record(data)
            if record.digest is not None:
                index.add_body(record.digest, path, offset)
                expected[record.digest] = record.body
    assert len(expected) == 20
    assert {digest: index.body(digest) for digest in expected} == expected
    assert index.body(digest_of(b"another")) is None
    index.close()
