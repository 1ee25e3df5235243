"""`Progress`: a progress bar on standard error, if that is a terminal.

It is one line, which is overwritten, and cleared before answers are written to the same terminal.
"""

from __future__ import annotations

import sys
import time

from scrapy_norobots.commands.base import is_terminal

_WIDTH = 30  # of the bar, in characters
_INTERVAL = 0.1  # between two updates, in seconds
_CLEAR = "\r\x1b[K"


class Progress:
    """A bar and a few words. Nothing is shown if `is_wanted` is false or there is no terminal."""

    def __init__(self, *, is_wanted: bool = True) -> None:
        self._is_shown = is_wanted and sys.stderr is not None and is_terminal(sys.stderr)
        self._shares_terminal = self._is_shown and is_terminal(sys.stdout)
        self._is_clear = True
        self._next = 0.0

    def show(self, words: str, fraction: float | None = None) -> None:
        """Show some words, and a bar if `fraction`, the finished part from 0 to 1, is known."""
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
        """Clear the line before answers are written, if they go to the same terminal."""
        if self._shares_terminal:
            self.clear()

    def clear(self) -> None:
        """Clear the line."""
        if not self._is_clear:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
            self._is_clear = True
            self._next = 0.0
