"""What commands read, and how they write; `test_commands` runs them."""

from __future__ import annotations

import io
import json
import os
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrapy_norobots.commands.base import (
    GREEN,
    CommandError,
    InputError,
    coloured,
    display_name,
    is_terminal,
    read_input,
    to_json,
    write,
)


class Terminal(io.StringIO):
    """Says that it is one."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1234")))


# What is read


@pytest.mark.parametrize("path", ["file", "-"])
@pytest.mark.parametrize("limit", [4, 5])
@pytest.mark.usefixtures("stdin")
def test_a_file_or_standard_input_is_read_whole(
    path: str, limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_bytes(b"1234")
    assert read_input(path, limit) == b"1234"


@pytest.mark.parametrize(("path", "name"), [("file", "file"), ("-", "<stdin>")])
@pytest.mark.parametrize("limit", [0, 3])
@pytest.mark.usefixtures("stdin")
def test_more_than_the_limit_is_an_error_that_names_the_setting(
    path: str, name: str, limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_bytes(b"1234")
    with pytest.raises(InputError) as error:
        read_input(path, limit)
    assert error.value.path == name
    assert error.value.problem.startswith(f"has more than {limit} bytes")
    assert "NOROBOTS_MAXSIZE" in error.value.problem
    assert str(error.value) == f"{name}: {error.value.problem}"


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


@pytest.mark.parametrize(
    ("path", "problem"), [("missing", "No such file or directory"), (".", "Is a directory")]
)
def test_what_cannot_be_read_is_an_error_in_the_systems_words(
    path: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as error:
        read_input(path, 100)
    assert (error.value.path, error.value.problem) == (path, problem)


def test_a_closed_standard_input_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match=r"^<stdin>: is closed$"):
        read_input("-", 100)


def test_a_path_is_named_as_it_was_given() -> None:
    assert [display_name(path) for path in ("-", "./-", "a/../b")] == ["<stdin>", "./-", "a/../b"]


# What is written


@pytest.mark.parametrize(
    ("stream", "term", "expected"),
    [(Terminal(), "xterm", True), (Terminal(), "dumb", False), (io.StringIO(), "xterm", False)],
    ids=["a terminal", "a dumb one", "none"],
)
def test_a_terminal_is_one_that_knows_colours(
    stream: io.StringIO, term: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    assert is_terminal(stream) is expected


@pytest.mark.parametrize(
    ("stream", "no_color", "expected"),
    [
        (Terminal(), "", "\x1b[32mgood\x1b[0m"),
        (Terminal(), "1", "good"),
        (io.StringIO(), "", "good"),
    ],
    ids=["a terminal", "a user who wants none", "a file"],
)
def test_colours_are_for_terminals_whose_user_wants_them(
    stream: io.StringIO, no_color: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setattr(sys, "stdout", stream)
    assert coloured("good", GREEN) == expected


def test_json_is_one_line_of_ascii() -> None:
    data = {"text": "é\n\u2028\u202e\x9b\udce9", "number": 1, "none": None}
    line = to_json(data)
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line) == data


def to_file(monkeypatch: pytest.MonkeyPatch, descriptor: int, encoding: str = "utf-8") -> None:
    """Make a file standard output, as Python does."""
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(open(descriptor, "wb"), encoding))  # noqa: SIM115


def test_lines_are_written_in_any_encoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out"
    to_file(monkeypatch, os.open(path, os.O_CREAT | os.O_WRONLY), "ascii")
    write(["é", "plain"])
    assert path.read_bytes() == b"\\xe9\nplain\n"  # it has been flushed
    sys.stdout.close()


def test_a_reader_that_leaves_is_no_error_and_all_lines_are_worked_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    to_file(monkeypatch, writer)
    worked_out = []

    def lines() -> Iterator[str]:
        for number in range(100_000):
            worked_out.append(number)
            yield str(number)

    write(lines())
    assert len(worked_out) == 100_000
    sys.stdout.close()  # what is left goes nowhere


def test_lines_that_cannot_be_written_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    to_file(monkeypatch, os.open("/dev/full", os.O_WRONLY))
    with pytest.raises(CommandError, match="standard output: No space left on device"):
        write(["a line"])
    sys.stdout.close()
