"""The evidence files in folders; `test_robots_audit` has what cannot be read."""

from __future__ import annotations

from pathlib import Path

from scrapy_norobots.features.evidence.folders import Folders


def test_files_of_subfolders_are_found_once(tmp_path: Path) -> None:
    (tmp_path / "town").mkdir()
    names = ["a.warc.gz", "a.decisions.jsonl.gz", "town/b.warc.gz", "town/items.jsonl.gz"]
    for name in names:
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "town")
    (tmp_path / "c.warc.gz").symlink_to(tmp_path / "a.warc.gz")
    found = Folders([tmp_path, tmp_path / "town", tmp_path / "link"])
    assert len(found.files) == 3
    assert {path.resolve() for path in found.files} == {tmp_path / name for name in names[:3]}
    assert found.problems == []
