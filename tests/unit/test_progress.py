"""`Progress`: what it writes, and when."""

from __future__ import annotations

import io
import sys

import pytest

from scrapy_norobots.commands import progress
from scrapy_norobots.commands.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Make standard error a terminal, with no minimum time between updates, and return it.

    This is not a fixture, because pytest sets the standard streams again between fixtures and test.
    """
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setattr(progress, "_INTERVAL", 0.0)
    return terminal


@pytest.mark.parametrize(
    ("fraction", "expected"),
    [
        (None, "7 answers"),
        (0.0, "[------------------------------]   0%  7 answers"),
        (0.5, "[###############---------------]  50%  7 answers"),
        (1.0, "[##############################] 100%  7 answers"),
    ],
)
def test_bar_shows_the_finished_part(
    fraction: float | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stderr = on_terminal(monkeypatch)
    Progress().show("7 answers", fraction)
    assert stderr.getvalue() == f"\r\x1b[K{expected}"


def test_updates_overwrite_the_line_until_it_is_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = on_terminal(monkeypatch)
    shown = Progress()
    shown.show("one")
    shown.show("two")
    shown.clear()
    shown.clear()
    assert stderr.getvalue() == "\r\x1b[Kone\r\x1b[Ktwo\r\x1b[K"


def test_updates_that_follow_at_once_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = on_terminal(monkeypatch)
    monkeypatch.setattr(progress, "_INTERVAL", 3600.0)
    shown = Progress()
    shown.show("one")
    shown.show("two")
    assert stderr.getvalue() == "\r\x1b[Kone"


def test_line_makes_way_for_answers_on_the_same_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = on_terminal(monkeypatch)
    elsewhere = Progress()
    elsewhere.show("one")
    elsewhere.make_way()
    assert stderr.getvalue() == "\r\x1b[Kone"
    monkeypatch.setattr(sys, "stdout", stderr)
    same = Progress()
    same.show("two")
    same.make_way()
    assert stderr.getvalue() == "\r\x1b[Kone\r\x1b[Ktwo\r\x1b[K"


def test_nothing_is_shown_without_a_terminal_or_if_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = on_terminal(monkeypatch)
    Progress(is_wanted=False).show("one")
    monkeypatch.setenv("TERM", "dumb")
    Progress().show("two")
    assert stderr.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", None)
    Progress().show("three")
