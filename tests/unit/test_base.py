"""What commands read, and how they write; `test_commands` runs them."""

from __future__ import annotations

import io
import os
import sys
import tracemalloc
from pathlib import Path

import pytest

from scrapy_norobots.commands.base import (
    InputError,
    read_input,
    write,
)


def test_of_a_large_file_no_more_than_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.touch()
    os.truncate(path, 8_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="has more than 1000 bytes"):
            read_input(str(path), 1_000)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def to_file(monkeypatch: pytest.MonkeyPatch, descriptor: int, encoding: str = "utf-8") -> None:
    """Make a file standard output, as Python does."""
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(open(descriptor, "wb"), encoding))  # noqa: SIM115


def test_lines_are_written_in_any_encoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out"
    to_file(monkeypatch, os.open(path, os.O_CREAT | os.O_WRONLY), "ascii")
    write(["é", "plain"])
    assert path.read_bytes() == b"\\xe9\nplain\n"  # it has been flushed
    sys.stdout.close()
