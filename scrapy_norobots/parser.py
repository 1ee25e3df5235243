"""Adapters between this package's parser and Scrapy's `RobotParser` interface, in both directions.

`StrictRobotParser` also works with Scrapy's own middleware alone:
``ROBOTSTXT_PARSER = "scrapy_norobots.StrictRobotParser"``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scrapy.robotstxt import RobotParser

from scrapy_norobots.standard import Decision, Reason, RobotsTxt, Verdict
from scrapy_norobots.standard.lines import to_text
from scrapy_norobots.standard.names import to_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy.crawler import Crawler

    from scrapy_norobots.access import Rules
    from scrapy_norobots.standard import Origin


_SURROGATE = re.compile("[\ud800-\udfff]")


class StrictRobotParser(RobotParser):
    """The strict reading of the 1994 standard as a `scrapy.robotstxt.RobotParser`.

    `robots` is the `RobotsTxt` that answers.
    """

    def __init__(self, robots: RobotsTxt) -> None:
        self.robots = robots

    @classmethod
    def from_crawler(cls, crawler: Crawler | None, robotstxt_body: bytes) -> StrictRobotParser:
        """Return the parser of a body, of which any bytes are valid (F1).

        Reads ``NOROBOTS_MULTIVALUE`` from the crawler's settings, if there is a crawler.
        """
        multivalue = crawler is not None and crawler.settings.getbool("NOROBOTS_MULTIVALUE")
        return cls(RobotsTxt.parse(robotstxt_body, multivalue=multivalue))

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        """Return whether `user_agent`, a name or a whole User-Agent header, may fetch `url`.

        Raises what `RobotsTxt.allowed` raises.
        """
        if isinstance(url, bytes):
            url = url.decode("utf-8", "surrogateescape")
        return self.robots.allowed(url, user_agent)

    def crawl_delay(self, user_agent: str | bytes) -> None:
        """Return None: the 1994 standard has no ``Crawl-delay`` (F7)."""


class Reader:
    """Reads files with the parsers that the settings of a crawler name.

    `parser` replaces the strict parser, unless it is None. The parsers of `also_obey` apply in addition.
    `multivalue` selects the dialect of the strict parser. Raises `ValueError`, with the name of the setting,
    if a parser cannot be used.
    """

    def __init__(
        self,
        crawler: Crawler,
        parser: type[RobotParser] | None,
        also_obey: Sequence[type[RobotParser]],
        *,
        multivalue: bool,
    ) -> None:
        self._crawler = crawler
        self._multivalue = multivalue
        self._parser = parser
        self._also_obey = also_obey
        self._try("ROBOTSTXT_PARSER", [parser] if parser is not None else [])
        self._try("NOROBOTS_ALSO_OBEY", also_obey)

    def read(self, body: bytes) -> Rules:
        """Read the body of a robots.txt. Exceptions of the user's parsers propagate."""
        first: Rules
        if self._parser is None:
            first = RobotsTxt.parse(body, multivalue=self._multivalue)
        else:
            first = self._foreign(self._parser, body)
        if not self._also_obey:
            return first
        return AllRules([first, *(self._foreign(parser, body) for parser in self._also_obey)])

    def _foreign(self, parser: type[RobotParser], body: bytes) -> ForeignRules:
        return ForeignRules(parser.from_crawler(self._crawler, _as_utf8(body)), body)

    def _try(self, setting: str, parsers: Sequence[type[RobotParser]]) -> None:
        for parser in parsers:
            try:
                # Check that the parser can import its library and answer a question.
                robot = self._crawler.settings.get("ROBOTSTXT_USER_AGENT") or b"FooBot"
                parser.from_crawler(self._crawler, b"").allowed("http://town.example/", robot)
            except Exception as exc:
                value = self._crawler.settings.get(setting)
                raise ValueError(f"{setting} = {value!r}: {parser.__name__} cannot be used: {exc}") from exc


def _as_utf8(body: bytes) -> bytes:
    """Return a file as UTF-8: some parsers read nothing of a file with an invalid byte, or in UTF-16.

    Bytes that are not UTF-8 become ``%XX``, as in the strict parser's comparison (F1).
    """
    text = to_text(body)
    return _SURROGATE.sub(lambda match: f"%{ord(match[0]) & 0xFF:02X}", text).encode()


def as_parser(rules: Rules) -> RobotParser:
    """Return rules as a `RobotParser` of Scrapy; of several readings, the first."""
    if isinstance(rules, AllRules):
        return as_parser(rules.readings[0])
    if isinstance(rules, ForeignRules):
        return rules.parser
    assert isinstance(rules, RobotsTxt)
    return StrictRobotParser(rules)


def parser_names(rules: Rules | None) -> list[str]:
    """Return the class names of the parsers whose readings the rules are, the first one first."""
    if isinstance(rules, AllRules):
        return [name for reading in rules.readings for name in parser_names(reading)]
    if isinstance(rules, ForeignRules):
        return [type(rules.parser).__name__]
    return [] if rules is None else [StrictRobotParser.__name__]


def strict_reading(rules: Rules | None) -> RobotsTxt | None:
    """Return the strict reading among rules; None if the user replaced it."""
    if isinstance(rules, AllRules):
        return strict_reading(rules.readings[0])
    return rules if isinstance(rules, RobotsTxt) else None


class ForeignRules:
    """Rules as read by a `RobotParser` of the user's choice; implements `access.Rules`.

    Such a parser returns only a verdict, so a decision names the parser, but no line.
    """

    def __init__(self, parser: RobotParser, body: bytes) -> None:
        self.parser = parser
        # The memory use of a foreign parser is unknown; Protego takes about ten times the length of the body.
        self.size = 1000 + 10 * len(body)

    def is_ready(self, robot: str | bytes) -> bool:
        """Return True: the parser has already read the file."""
        return True

    def prepare(self, origin: Origin, robot: str | bytes) -> None:
        """Do nothing."""

    def forbids(self, origin: Origin, target: str, robot: str | bytes) -> bool:
        """Return whether `robot` must not fetch `target` at `origin`; True too if the parser fails."""
        return self._ask(f"{origin}{target}", robot) != ""

    def _ask(self, url: str, robot: str | bytes) -> str | None:
        """Return an empty string if the parser allows, None if it forbids, an error message if it failed."""
        if isinstance(robot, bytes):  # as from Scrapy's own middleware, but always valid UTF-8
            robot = robot.decode("utf-8", "replace").encode()
        try:
            return "" if self.parser.allowed(url, robot) else None
        except Exception as exc:
            return f"{type(exc).__name__}: {exc}"

    def decide(self, url: str, robot: str | bytes, source: str | None = None) -> Decision:
        """Return whether `robot` may fetch `url`, with the name of the parser."""
        answer = self._ask(url, robot)
        allowed = answer == ""
        name = type(self.parser).__name__
        failure = f"{name} failed ({answer}) on {source}" if answer else ""
        return Decision(
            verdict=Verdict.ALLOWED if allowed else Verdict.FORBIDDEN,
            url=url,
            robot=to_name(robot),
            reason=Reason.PARSER,
            source=source,
            detail=failure or f"{source} as read by {name}",
            parser=name,
        )


class AllRules:
    """Several readings of one file: a request passes only if all of them allow it; implements `access.Rules`.

    The decision is that of the first reading that forbids; if none forbids, that of the first reading.
    """

    def __init__(self, readings: Sequence[Rules]) -> None:
        self.readings = readings
        self.size = sum(rules.size for rules in readings)

    def is_ready(self, robot: str | bytes) -> bool:
        """Return whether all readings answer questions about `robot` at once."""
        return all(rules.is_ready(robot) for rules in self.readings)

    def prepare(self, origin: Origin, robot: str | bytes) -> None:
        """Do the work that the first question about `robot` needs."""
        for rules in self.readings:
            rules.prepare(origin, robot)

    def forbids(self, origin: Origin, target: str, robot: str | bytes) -> bool:
        """Return whether one of the readings forbids `robot` to fetch `target` at `origin`."""
        return any(rules.forbids(origin, target, robot) for rules in self.readings)

    def decide(self, url: str, robot: str | bytes, source: str | None = None) -> Decision:
        """Return whether `robot` may fetch `url`, and why."""
        decisions = [rules.decide(url, robot, source) for rules in self.readings]
        return next((decision for decision in decisions if not decision.allowed), decisions[0])
