"""`Progress`: how far a command has come, on standard error if that is a terminal.

One line that is written over and over, and cleared before anything else is written.
"""

from __future__ import annotations

import sys
import time

from scrapy_norobots.commands.base import is_terminal

_WIDTH = 30  # of the bar, in characters
_INTERVAL = 0.1  # in seconds; more often, nobody could read it
_CLEAR = "\r\x1b[K"


class Progress:
    """A bar and a few words; nothing at all with `is_wanted` false or without a terminal."""

    def __init__(self, *, is_wanted: bool = True) -> None:
        self._is_shown = is_wanted and sys.stderr is not None and is_terminal(sys.stderr)
        self._shares_terminal = self._is_shown and is_terminal(sys.stdout)
        self._is_clear = True
        self._next = 0.0

    def show(self, words: str, fraction: float | None = None) -> None:
        """Show how far the command has come: a fraction from 0 to 1, if that is known, and some words."""
        if not self._is_shown or time.monotonic() < self._next:
            return
        bar = ""
        if fraction is not None:
            bar = f"[{'#' * round(fraction * _WIDTH):-<{_WIDTH}}] {fraction:4.0%}  "
        sys.stderr.write(f"{_CLEAR}{bar}{words}")
        sys.stderr.flush()
        self._is_clear = False
        self._next = time.monotonic() + _INTERVAL

    def make_way(self) -> None:
        """Clear the line if answers are about to be written to a terminal."""
        if self._shares_terminal:
            self.clear()

    def clear(self) -> None:
        """Clear the line."""
        if not self._is_clear:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
            self._is_clear = True
            self._next = 0.0
