"""Evidence files, read member by member; damaged ones too."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest

from scrapy_norobots.features.evidence.gzip_file import DamagedError, GzipFile


def test_a_file_that_is_cut_off_anywhere_gives_what_is_complete(tmp_path: Path) -> None:
    parts = [b"one\n", b"two\nthree\n", b"", b"four\n" * 1000]
    whole = b"".join(map(gzip.compress, parts))
    ends = [sum(len(gzip.compress(part)) for part in parts[:number]) for number in range(len(parts) + 1)]
    path = tmp_path / "file.gz"
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        file = GzipFile(path)
        found = [data for _, data in file.members(10_000)]
        assert found == parts[: sum(end <= size for end in ends[1:])]
        assert file.is_cut_off == (size not in ends)


def test_a_gzip_bomb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress(bytes(40_000_000)))
    with pytest.raises(DamagedError, match="has a line of more than"):
        list(GzipFile(path).lines())


def test_a_last_line_without_a_line_feed_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl.gz"
    path.write_bytes(gzip.compress(b"one\ntwo"))
    lines = GzipFile(path).lines()
    assert next(lines) == b"one"
    with pytest.raises(DamagedError, match="ends in the middle of a line"):
        next(lines)


def test_a_record_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "file.warc.gz"
    path.write_bytes(gzip.compress(bytes(1_001)))
    assert len(list(GzipFile(path).members(1_001))) == 1
    with pytest.raises(DamagedError, match="has a record of more than 1,000 bytes at byte 0"):
        list(GzipFile(path).members(1_000))


def test_size_and_digest_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    file = GzipFile(path)
    list(file.lines())
    assert (file.size, file.digest) == (path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())
