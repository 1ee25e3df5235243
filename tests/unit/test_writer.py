"""The thread that writes evidence: its files, its queue, and a disk that fails."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from scrapy_norobots.features.evidence import answers as answers_module
from scrapy_norobots.features.evidence.answers import packed
from scrapy_norobots.features.evidence.audit import Audit
from scrapy_norobots.features.evidence.fields import Answer, Made
from scrapy_norobots.features.evidence.writer import Writer
from tests.helpers.judges.evidence import answers
from tests.helpers.samples.made_up import (
    SETTINGS,
    TIME,
    TOWN,
    access,
    answer,
    end,
    made,
    problems,
    strict,
    write,
)


def test_a_file_that_exists_is_not_changed(tmp_path: Path) -> None:
    write(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(FileExistsError):
        write(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_crawl_may_change_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    writer = Writer(Path("evidence"), "town-1", SETTINGS)
    monkeypatch.chdir("/")
    writer.put(answer(access()))
    end(writer)
    assert (writer.error, problems(tmp_path / "evidence")) == (None, [])


def test_a_record_larger_than_the_queue_is_written_if_nothing_waits(tmp_path: Path) -> None:
    writer = Writer(tmp_path, "town-1", SETTINGS, queue_max=10)
    writer.put(answer(access()))
    end(writer)
    assert (writer.answers, writer.lost) == (1, 0)


def test_after_an_error_nothing_more_is_written_and_the_files_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pack(record: Answer) -> bytes:
        if record.note:
            raise OSError(28, "No space left on device")
        return packed(record)

    monkeypatch.setattr(answers_module, "packed", pack)
    by = access()
    writer = Writer(tmp_path, "town-1", SETTINGS)
    writer.put(answer(by))
    writer._empty_queue()
    writer.put(answer(by))  # its record is written, and its line is not
    writer.put(Answer.of(by.snapshot, "store"))
    for number in range(10):
        writer.put(made(f"{TOWN}/{number}", by))
    end(writer)
    assert str(writer.error) == "[Errno 28] No space left on device"
    assert (writer.answers, writer.decisions, writer.lost) == (1, 0, 12)
    assert [one.kind for one in answers(tmp_path)] == ["response"]
    audit = Audit(tmp_path.iterdir(), strict, heads=[writer.head])
    [problem] = audit.problems()
    assert problem.text == f"ended without a closing line (killed?); its head is {writer.head}"


@pytest.mark.parametrize("name", ["town-1.warc.gz", "town-1.decisions.jsonl.gz"])
@pytest.mark.parametrize("instead", [b"", b"another file", None])
def test_a_file_that_is_removed_or_replaced_is_an_error(
    tmp_path: Path, name: str, instead: bytes | None
) -> None:
    writer = Writer(tmp_path, "town-1", SETTINGS)
    (tmp_path / name).unlink()
    if instead is not None:
        (tmp_path / name).write_bytes(instead)
    writer.put(answer(access()))
    end(writer)
    assert isinstance(writer.error, FileNotFoundError)
    assert (writer.answers, writer.decisions, writer.lost) == (0, 0, 1)
    assert instead is None or (tmp_path / name).read_bytes() == instead


def test_the_queue_counts_the_length_of_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = threading.Event()
    monkeypatch.setattr(answers_module, "packed", lambda one: packed(one) if may_end.wait(60) else b"")
    writer = Writer(tmp_path, "town-1", SETTINGS, queue_max=10_000_000)
    by = access()
    writer.put(Answer.of(by.snapshot))
    for number in range(100):
        url = f"{TOWN}/{number}{'x' * 1_000_000}"
        writer.put(Made(TIME, url, b"FooBot", url + "y" * (number % 2), by))
    assert writer._put - writer._taken < 10_000_000
    assert writer.lost > 85
    may_end.set()
    end(writer)
    assert writer._put == writer._taken


def test_without_warcio_the_error_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['warcio'] = None\n"
        "from unittest.mock import MagicMock\n"
        "from scrapy.settings import Settings\n"
        "from scrapy_norobots.events import Events\n"
        "from scrapy_norobots.features.evidence import Evidence, EvidenceConfig\n"
        "from scrapy_norobots.settings import Config\n"
        "settings = Settings({'NOROBOTS_EVIDENCE': 'new'})\n"
        "read = Config.from_settings(settings), EvidenceConfig.from_settings(settings)\n"
        "Evidence(MagicMock(settings=settings), *read, Events())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "needs warcio: pip install 'scrapy-norobots[evidence]'" in done.stderr.splitlines()[-1]
    assert "SettingError: NOROBOTS_EVIDENCE = 'new': " in done.stderr.splitlines()[-1]
    assert not (tmp_path / "new").exists()
