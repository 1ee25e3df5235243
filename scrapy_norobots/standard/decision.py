"""Why a URL may or may not be fetched: a verdict and everything that led to it.

A `Decision` says itself in one sentence. Text that came from a site or a user is escaped in it, so it
can go to a log or a terminal as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from scrapy_norobots.standard.records import Record, Rule


class Verdict(Enum):
    """Whether a URL may be fetched."""

    ALLOWED = "allowed"
    FORBIDDEN = "forbidden"


class Reason(Enum):
    """What a decision rests on."""

    RULE = "rule"
    NO_RULE_MATCHES = "no rule matches"
    NO_RECORD = "no record"
    ROBOTS_TXT = "robots.txt itself"
    NOT_WEB = "no robots.txt for such a URL"
    PARSER = "another parser"
    STATUS = "status"
    ERROR = "error"
    BAD_URL = "bad URL"


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict on one URL for one robot; true if it is `Verdict.ALLOWED`.

    `rule` is the ``Disallow`` line that forbids it, with its line number; `record` the record that counts
    for the robot, if the file has one; `source` the URL of the robots.txt, where known; `detail` a
    sentence's worth of what happened, where neither rule nor record says it; `parser` the class that decided,
    where that was another than this package's strict one.
    """

    verdict: Verdict
    url: str
    robot: str
    reason: Reason
    rule: Rule | None = None
    record: Record | None = None
    source: str | None = None
    detail: str = ""
    parser: str = ""

    @property
    def allowed(self) -> bool:
        """Whether the verdict is `Verdict.ALLOWED`."""
        return self.verdict is Verdict.ALLOWED

    def __bool__(self) -> bool:
        return self.allowed

    def __str__(self) -> str:
        return f"{printable(self.url)} is {self.verdict.value} for {quoted(self.robot)}: {self.why}"

    @property
    def why(self) -> str:
        """The second half of the sentence: what decided, without the URL and the robot."""
        source = printable(self.source or "robots.txt")
        if self.reason is Reason.RULE and self.rule is not None:
            return (
                f"line {self.rule.line} of {source}, {quoted('Disallow: ' + self.rule.value)}, "
                f"{self._record()}"
            )
        if self.reason is Reason.NO_RULE_MATCHES:
            return f"no line of {source} forbids it, {self._record()}"
        if self.reason is Reason.NO_RECORD:
            return f"{source} has no record for this robot and no record for '*'"
        if self.reason is Reason.ROBOTS_TXT:
            return "robots.txt itself may always be fetched"
        if self.reason is Reason.NOT_WEB:
            return "only http and https URLs with a host have a robots.txt"
        return printable(self.detail) or f"{self.reason.value} ({source})"

    def _record(self) -> str:
        if self.record is None:
            return "in its record"
        names = ", ".join(map(quoted, self.record.names[:3]))
        more = len(self.record.names) - 3
        if more > 0:
            names += f" and {more} more"
        return f"in the record of line {self.record.line} for {names}"


def printable(text: str, limit: int = 500) -> str:
    """Return `text` with all that is not printable escaped, cut after `limit` characters.

    What a site sends can hold line breaks, terminal escapes and characters that turn the direction of
    writing; none gets through.
    """
    if len(text) > limit:
        text = text[:limit] + "…"
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode()
        for char in text
    )


def quoted(text: str) -> str:
    """Return `text` between quotes, escaped as `printable` does."""
    return f"'{printable(text, 200)}'"
