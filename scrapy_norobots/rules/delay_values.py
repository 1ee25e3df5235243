"""The `Crawl-delay` that a robots.txt asks of a robot, and how much of it a crawl keeps.

The 1994 standard has no such field. Its value comes from the user's own parsers if they read the field, else
from `ProtegoDelay`, which uses Protego, a dependency of Scrapy. `largest` checks the values, since
a parser may return anything. Nothing here waits, and only `ProtegoDelay` takes time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import cached_property

from protego import Protego

from scrapy_norobots.standard.lines import to_text

# A line that Protego reads as a Crawl-delay: its field, and its value.
_LINE = re.compile(r"(?<![^\r\n])([ \t]*crawl[- ]delay[: \t][ \t]*)([^\s#][^\r\n#]*)", re.IGNORECASE)
_MAY_HAVE_ONE = re.compile(rb"d\0*e\0*l\0*a\0*y", re.IGNORECASE)  # also in UTF-16 and UTF-32

# How many robots are remembered, as in `RobotsTxt`.
_ROBOTS_REMEMBERED = 64
_UNKNOWN = object()


def largest(values: Iterable[object]) -> float | None:
    """Return the largest valid value that parsers returned, in seconds; None if there is none."""
    return max((found for found in map(_seconds, values) if found is not None), default=None)


def _seconds(value: object) -> float | None:
    """Return a value as seconds; None if it is negative, infinite or not a number."""
    try:
        seconds = float(value)  # type: ignore[arg-type]  # whatever a parser returns
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


class ProtegoDelay:
    """The `Crawl-delay` lines of a file, as Protego reads them."""

    size = 1000  # the body is in memory anyway

    def __init__(self, body: bytes | str) -> None:
        """Keep the body of a file. Nothing is read yet."""
        self._body = body
        self._values: dict[str | bytes, object] = {}

    @cached_property
    def has_lines(self) -> bool:
        """Whether the file has such lines, as one of six files does."""
        body = self._body
        return (isinstance(body, str) or _MAY_HAVE_ONE.search(body) is not None) and (
            _LINE.search(to_text(body)) is not None
        )

    def is_ready(self, robot: str | bytes) -> bool:
        """Return whether `value` returns at once; if not, call it in a thread first."""
        return robot in self._values

    def value(self, robot: str | bytes) -> object:
        """Return the delay that the file asks of a robot, in seconds, or None.

        Protego ignores malformed values. The event loop and the thread that reads files both call this, so a
        value may be forgotten at any moment.
        """
        value = self._values.get(robot, _UNKNOWN)
        if value is _UNKNOWN:
            value = self._read(robot)
            if len(self._values) >= _ROBOTS_REMEMBERED:
                self._values.clear()
            self._values[robot] = value
        return value

    def _read(self, robot: str | bytes) -> object:
        if not self.has_lines:
            return None
        text = to_text(self._body).encode("utf-8", "replace").decode()
        name = robot.decode("utf-8", "replace") if isinstance(robot, bytes) else robot
        return Protego.parse(text).crawl_delay(name)
