"""The index of an audit: outcomes by origin and time, bodies by digest."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_norobots.features.evidence import index as index_module
from scrapy_norobots.features.evidence.fields import date_of, digest_of
from scrapy_norobots.features.evidence.gzip_file import GzipFile
from scrapy_norobots.features.evidence.index import Index, Outcome
from scrapy_norobots.features.evidence.warc import read_record
from tests.helpers.judges.evidence import files
from tests.helpers.samples.made_up import BODY_MAX, FILE, TIME, TOWN, write


def test_an_outcome_is_found_by_origin_and_time() -> None:
    index = Index(BODY_MAX)
    outcome = Outcome(200, digest_of(FILE))
    index.add_outcome(str(TOWN), date_of(TIME), outcome)
    assert index.outcome(str(TOWN), date_of(TIME)) == outcome
    assert index.outcome(str(TOWN), date_of(TIME + 1)) is None
    assert index.outcome("https://town.example", date_of(TIME)) is None
    index.close()


def test_a_later_outcome_replaces_one_of_the_same_origin_and_time() -> None:
    index = Index(BODY_MAX)
    for outcome in (Outcome(503, None), Outcome(None, None)):
        index.add_outcome(str(TOWN), date_of(TIME), outcome)
    assert index.outcome(str(TOWN), date_of(TIME)) == Outcome(None, None)
    index.close()


def test_each_large_body_is_read_from_its_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "_SMALL", 0)
    write(tmp_path, 20, file_max=2_000)
    paths = files(tmp_path, ".warc.gz")
    assert len(paths) > 1
    index = Index(BODY_MAX)
    expected = {}
    for path in paths:
        for offset, data in GzipFile(path).members(BODY_MAX):
            record = read_record(data, BODY_MAX)
            if record.digest is not None and record.body is not None:
                index.add_body(record.digest, record.body, path, offset)
                expected[record.digest] = record.body
    assert len(expected) == 20
    assert {digest: index.body(digest) for digest in expected} == expected
    assert index.body(digest_of(b"another")) is None
    index.close()


def test_targets_of_redirects_belong_to_an_origin() -> None:
    index = Index(BODY_MAX)
    index.add_target(str(TOWN), "http://town.example/moved.txt")
    assert index.is_target(str(TOWN), "http://town.example/moved.txt")
    assert not index.is_target("http://other.example", "http://town.example/moved.txt")
    index.close()
