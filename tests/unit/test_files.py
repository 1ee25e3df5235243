"""Evidence files, read member by member; damaged ones too."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_norobots.evidence.files import DamagedError, GzipFile, read_record


@settings(max_examples=300, deadline=None)
@given(st.binary())
def test_anything_is_a_record_or_damaged(data: bytes) -> None:
    try:
        read_record(data)
        read_record(b"WARC/1.1\r\n" + data)
    except DamagedError:
        pass


def test_a_file_that_is_cut_off_anywhere_gives_what_is_complete(tmp_path: Path) -> None:
    parts = [b"one\n", b"two\nthree\n", b"", b"four\n" * 1000]
    whole = b"".join(map(gzip.compress, parts))
    ends = [sum(len(gzip.compress(part)) for part in parts[:number]) for number in range(len(parts) + 1)]
    path = tmp_path / "file.gz"
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        file = GzipFile(path)
        found = [data for _, data in file.members()]
        assert found == parts[: sum(end <= size for end in ends[1:])]
        assert file.is_cut_off == (size not in ends)


def test_a_gzip_bomb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress(bytes(20_000_000)))
    with pytest.raises(DamagedError, match="has a line of more than"):
        list(GzipFile(path).lines())
