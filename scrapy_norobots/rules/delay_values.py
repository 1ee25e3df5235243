"""The `Crawl-delay` that a robots.txt asks of a robot.

The 1994 standard has no such field, and for RFC 9309 it is another record, which ends no group (2.2.4). Its
value comes from `CrawlDelay`, or from a parser of the user if that is larger. `largest` checks the values,
since a parser may return anything. Nothing here waits, and only `CrawlDelay` takes time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import cached_property

from scrapy_norobots.standard.groups import groups_of
from scrapy_norobots.standard.lines import sections_of, to_text, with_line_feeds
from scrapy_norobots.standard.names import Robot, is_for_all, token_of

_LINE = re.compile(
    r"\n[ \t]*crawl[- ]?delay(?:[ \t]*:|[ \t])[ \t]*([^\s#]+)[ \t]*(?:(?=[#\n])|\Z)", re.IGNORECASE | re.ASCII
)
_MAY_HAVE_ONE = re.compile(rb"d\0*e\0*l\0*a\0*y", re.IGNORECASE)  # also in UTF-16 and UTF-32


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


class CrawlDelay:
    """The `Crawl-delay` lines of a file."""

    size = 1000  # the body is in memory anyway

    def __init__(self, body: bytes | str) -> None:
        """Keep the body of a file. Nothing is read yet."""
        self._body = body

    @cached_property
    def has_lines(self) -> bool:
        """Whether the file has such lines, as one of six files does."""
        body = self._body
        return (isinstance(body, str) or _MAY_HAVE_ONE.search(body) is not None) and (
            _LINE.search(f"\n{with_line_feeds(to_text(body))}\n") is not None
        )

    @cached_property
    def values(self) -> dict[str, float | None]:
        """The largest delay in the groups of each product token; that of all other robots is at ``""``."""
        found: dict[str, float | None] = {}
        sections = sections_of(to_text(self._body))[1]
        for group in groups_of(sections, None) if self.has_lines else ():
            delay = largest(value for place in group for value in _LINE.findall(sections.below[place]))
            for name in map(sections.values.__getitem__, group):
                token = token_of(name)
                if token:
                    key = "" if is_for_all(name) else token
                    found[key] = largest([found.get(key), delay])
        return found

    @property
    def is_ready(self) -> bool:
        """Whether `value` returns at once; if not, call it in a thread first."""
        return "values" in self.__dict__

    def value(self, robot: str | bytes) -> float | None:
        """Return the largest delay in the groups of a robot, in seconds; None if there is no valid one."""
        return self.values.get(Robot.of(robot).token, self.values.get(""))
