"""`Decision`: a verdict on a URL, and everything that led to it.

``str(decision)`` is one sentence. Text from sites and users is escaped in it, so it is safe in a log and on a
terminal.
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
    """The reason of a decision."""

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
    """A verdict on one URL for one robot. Its truth value is `allowed`.

    - `url` is the URL, and `robot` the name of the robot without version.
    - `rule` is the `Rule` that forbids the URL, a ``Disallow`` line with its number; None if no rule does.
    - `record` is the `Record` that applies to the robot; None if no record applies.
    - `source` is the URL of the robots.txt; None if unknown.
    - `detail` says what happened if `reason` is not about rules and records; else it is empty.
    - `parser` is the class name of the parser that decided; empty for this package's strict parser.
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
        """The reason in words, without the URL and the robot."""
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
    """Return `text`, cut after `limit` characters, with all non-printable characters escaped.

    This removes line breaks, terminal escape sequences and characters that reverse the direction of text.
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
