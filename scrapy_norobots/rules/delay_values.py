"""The `Crawl-delay` that a robots.txt asks of a robot.

The 1994 standard has no such field, and for RFC 9309 it is a line of another kind, which ends no group
(2.2.4). So `CrawlDelay` reads the lines in the groups of a robot. A parser of the user may ask for more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import cached_property

from scrapy_norobots.standard.groups import groups_of
from scrapy_norobots.standard.lines import sections_of, to_text, with_line_feeds
from scrapy_norobots.standard.names import Robot

_LINE = re.compile(
    r"\n[ \t]*crawl[- ]?delay(?:[ \t]*:|[ \t])[ \t]*([^\s#]+)[ \t]*(?:(?=[#\n])|\Z)", re.IGNORECASE | re.ASCII
)

# How many tokens are remembered, as in `RobotsTxt`.
_ROBOTS_REMEMBERED = 64


def largest(values: Iterable[object]) -> float | None:
    """Return the largest valid delay in seconds; None if there is none. Parsers may return anything."""
    return max((found for found in map(_seconds, values) if found is not None), default=None)


def _seconds(value: object) -> float | None:
    """Return a value as seconds; None if it is negative, infinite or not a number."""
    try:
        seconds = float(value)  # type: ignore[arg-type]  # whatever a parser returns
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


class CrawlDelay:
    """The `Crawl-delay` lines of a file, which is read when it is asked for them."""

    def __init__(self, body: bytes | str) -> None:
        self._body = body
        self._values: dict[str, float | None] = {}

    @cached_property
    def has_lines(self) -> bool:
        """Whether the file has such lines, as one of six files does."""
        return _LINE.search(f"\n{with_line_feeds(to_text(self._body))}\n") is not None

    def is_ready(self, robot: str | bytes) -> bool:
        """Return whether `value` returns at once; if not, call it in a thread first."""
        return Robot.of(robot).token in self._values

    def value(self, robot: str | bytes) -> float | None:
        """Return the largest delay in the groups of a robot, in seconds; None if there is no valid one."""
        token = Robot.of(robot).token
        try:  # a thread may call this too, and forget a value at any moment
            return self._values[token]
        except KeyError:
            value = self.read(token)
        if len(self._values) >= _ROBOTS_REMEMBERED:
            self._values.clear()
        self._values[token] = value
        return value

    def read(self, token: str) -> float | None:
        if not self.has_lines:
            return None
        sections = sections_of(to_text(self._body))[1]
        below = (sections.below[place] for group in groups_of(sections, token) for place in group)
        return largest(value for text in below for value in _LINE.findall(text))
