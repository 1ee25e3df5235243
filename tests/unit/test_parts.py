"""The numbered files of a run."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from scrapy_norobots.features.evidence.parts import Out, Part, Parts


def parts_in(folder: Path) -> Parts:
    def begin(file: Out, closed: list[Part]) -> None:
        file.write(b"%d before\n" % len(closed))

    return Parts(folder, "town-1", ".txt", 20, begin)


def write(parts: Parts, data: bytes) -> None:
    parts.file().write(data)
    parts.flush()


def test_each_part_is_numbered_and_knows_those_before_it(tmp_path: Path) -> None:
    parts = parts_in(tmp_path)
    for _ in range(4):
        write(parts, b"12345678\n")
    parts.close()
    contents = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert contents == {
        "town-1-00001.txt": b"0 before\n12345678\n12345678\n",
        "town-1-00002.txt": b"1 before\n12345678\n12345678\n",
    }
    assert parts.closed == [
        Part(name, len(data), sha256(data).hexdigest()) for name, data in sorted(contents.items())
    ]


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.write_bytes(b"")])
def test_a_part_that_was_changed_is_an_error(tmp_path: Path, change: object) -> None:
    parts = parts_in(tmp_path)
    for _ in range(3):
        write(parts, b"12345678\n")
    assert callable(change)
    change(tmp_path / "town-1-00001.txt")
    with pytest.raises(FileNotFoundError):
        parts.close()
    parts.abandon()


def test_a_file_in_place_of_the_last_part_is_an_error(tmp_path: Path) -> None:
    parts = parts_in(tmp_path)
    path = tmp_path / "town-1-00001.txt"
    path.rename(tmp_path / "other")
    path.write_bytes(b"another")
    with pytest.raises(FileNotFoundError, match="another file has replaced it"):
        write(parts, b"1")
    parts.abandon()
    assert path.read_bytes() == b"another"
    assert (tmp_path / "other").read_bytes() == b"0 before\n"


def test_the_crawl_may_change_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    parts = parts_in(Path())
    monkeypatch.chdir("elsewhere")
    for _ in range(3):
        write(parts, b"12345678\n")
    parts.close()
    assert [path.name for path in sorted(tmp_path.iterdir())][1:] == [part.name for part in parts.closed]


def test_what_was_not_flushed_is_removed_after_an_error(tmp_path: Path) -> None:
    parts = parts_in(tmp_path)
    parts.file().write(b"half")
    parts.abandon()
    assert (tmp_path / "town-1-00001.txt").read_bytes() == b"0 before\n"
