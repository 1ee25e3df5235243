"""`Decision`: a verdict on a URL, and everything that led to it.

``str(decision)`` is one sentence. Text from sites and users is escaped in it (by `printable`, as everywhere),
so it is safe in a log and on a terminal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from scrapy_norobots.standard.records import Record, Rule

# The name of the parser of RFC 9309 in decisions, stats and evidence.
RFC9309_PARSER = "Rfc9309RobotParser"

# What comes before the host of a URL, also of a misspelt one without slashes.
_USERINFO = re.compile(r"""(?:(?<=://)[^\s/?#]*|(?<![^\s'"<(])(?=[^\s'"<(/?#@:]+:)[^\s/?#]{0,2000})@""")


class Verdict(Enum):
    """Whether a URL may be fetched."""

    ALLOWED = "allowed"
    FORBIDDEN = "forbidden"


class Reason(Enum):
    """The reason of a decision."""

    #: A ``Disallow`` line forbids the URL (U1); by RFC 9309, an ``Allow`` line may allow it.
    RULE = "rule"
    #: A record applies to the robot, and no line of it forbids the URL.
    NO_RULE_MATCHES = "no rule matches"
    #: No record names the robot, and there is no default record (A4).
    NO_RECORD = "no record"
    #: The URL is that of a robots.txt, which is always allowed (U7).
    ROBOTS_TXT = "robots.txt itself"
    #: The URL is not http or https, or has no host: it has no robots.txt (U9).
    NOT_WEB = "no robots.txt for such a URL"
    #: A parser decided that the project has chosen, which does not say why.
    PARSER = "another parser"
    #: A statement about the use of pages says no to one of ``NOROBOTS_PURPOSES``.
    STATEMENT = "statement"
    #: The download of robots.txt ended with a status for which ``NOROBOTS_STATUS_POLICY`` decides.
    STATUS = "status"
    #: The download of robots.txt failed.
    ERROR = "error"
    #: The URL is http or https and has no origin, as with an invalid port.
    BAD_URL = "bad URL"


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether one robot may fetch one URL, and why. It is true if the URL is allowed.

    - `verdict`: a `Verdict`.
    - `url`: the URL that was asked about, as given.
    - `robot`: the robot's name, without version (A1).
    - `reason`: a `Reason`, what the verdict rests on.
    - `rule`: the `Rule` that decides; None if no line of a file decides. The value of a statement is its
      whole line.
    - `record`: the `Record` that applies to the robot; None if there is none, or no file was read.
    - `source`: the URL of the robots.txt; None if it is not known.
    - `detail`: what happened, if neither rule nor record says it, such as a status; else empty.
    - `parser`: the name of the class that decided, if it is not the strict parser; else empty.
    - `decided_for`: the name of the robot whose rules forbid the URL, if it is one of
      ``NOROBOTS_ALSO_ROBOTS``; else empty.

    ``str(decision)`` is the whole sentence. Control characters in it are escaped, so that it can go to a log.
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
    decided_for: str = ""

    @property
    def allowed(self) -> bool:
        """Whether the URL may be fetched."""
        return self.verdict is Verdict.ALLOWED

    def __bool__(self) -> bool:
        return self.allowed

    def __str__(self) -> str:
        url = printable(without_userinfo(self.url))
        return f"{url} is {self.verdict.value} for {quoted(self.robot)}: {self.why}"

    @property
    def why(self) -> str:
        """Why, as text: the second half of ``str(decision)``, without the URL and the robot."""
        if self.decided_for:
            return f"{self._why}, by the rules for {quoted(self.decided_for)} (NOROBOTS_ALSO_ROBOTS)"
        return self._why

    @property
    def _why(self) -> str:
        source = printable(self.source or "robots.txt")
        if self.reason is Reason.RULE and self.rule is not None:
            by = ", by RFC 9309" if self.parser == RFC9309_PARSER else ""
            return f"line {self.rule.line} of {source}, {quoted(str(self.rule))}, {self._record()}{by}"
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


def without_userinfo(text: str) -> str:
    """Return `text`, a URL or an error, without the user names and passwords of URLs in it."""
    return _USERINFO.sub("", text) if "@" in text else text


def quoted(text: str) -> str:
    """Return `text` between quotes, escaped as `printable` does."""
    return f"'{printable(text, 200)}'"
