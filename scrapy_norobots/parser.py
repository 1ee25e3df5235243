"""The standard behind Scrapy's `RobotParser` interface, and Scrapy's parsers behind this package's.

`StrictRobotParser` also works alone, under Scrapy's own middleware:
``ROBOTSTXT_PARSER = "scrapy_norobots.StrictRobotParser"``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scrapy.robotstxt import RobotParser

from scrapy_norobots.crawl_delay import CrawlDelay, ProtegoDelay
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
    """The 1994 standard as a `scrapy.robotstxt.RobotParser`; `robots` is the file itself."""

    def __init__(self, robots: RobotsTxt) -> None:
        self.robots = robots

    @classmethod
    def from_crawler(cls, crawler: Crawler | None, robotstxt_body: bytes) -> StrictRobotParser:
        """Parse the body of a robots.txt; never raises on bytes."""
        multivalue = crawler is not None and crawler.settings.getbool("NOROBOTS_MULTIVALUE")
        return cls(RobotsTxt.parse(robotstxt_body, multivalue=multivalue))

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        """Whether `user_agent`, a name or a whole header, may fetch `url`."""
        if isinstance(url, bytes):
            url = url.decode("utf-8", "surrogateescape")
        return self.robots.allowed(url, user_agent)

    def crawl_delay(self, user_agent: str | bytes) -> None:
        """Say that no delay is asked for: the 1994 standard has no Crawl-delay."""


class Reader:
    """Reads files with the parser, or all the parsers, that the settings of a crawler name.

    `parser` stands in the strict one's place; those of `also_obey` have a say beside it; `multivalue` is the
    strict one's dialect. With `crawl_delay`, `Crawl-delay` lines are read too, by Protego if none of these
    parsers knows them. Raises `ValueError` that names the setting if one of them is not usable.
    """

    def __init__(
        self,
        crawler: Crawler,
        parser: type[RobotParser] | None,
        also_obey: Sequence[type[RobotParser]],
        *,
        multivalue: bool,
        crawl_delay: bool = False,
    ) -> None:
        self._crawler = crawler
        self._multivalue = multivalue
        parsers = [*also_obey] if parser is None else [parser, *also_obey]
        self._needs_delay = crawl_delay and not any(map(_knows_crawl_delay, parsers))
        self._parser = parser
        self._also_obey = also_obey
        self._try("ROBOTSTXT_PARSER", [parser] if parser is not None else [])
        self._try("NOROBOTS_ALSO_OBEY", also_obey)

    def read(self, body: bytes) -> Rules:
        """Read the body of a robots.txt; raises what a parser of the user's raises."""
        first: Rules
        if self._parser is None:
            first = RobotsTxt.parse(body, multivalue=self._multivalue)
        else:
            first = self._foreign(self._parser, body)
        delay = ProtegoDelay.of(body) if self._needs_delay else None
        if not self._also_obey and delay is None:
            return first
        return AllRules([first, *(self._foreign(parser, body) for parser in self._also_obey)], delay)

    def _foreign(self, parser: type[RobotParser], body: bytes) -> ForeignRules:
        return ForeignRules(parser.from_crawler(self._crawler, _as_utf8(body)), body)

    def _try(self, setting: str, parsers: Sequence[type[RobotParser]]) -> None:
        for parser in parsers:
            try:
                # Imports what it needs, and can be asked.
                robot = self._crawler.settings.get("ROBOTSTXT_USER_AGENT") or b"FooBot"
                parser.from_crawler(self._crawler, b"").allowed("http://town.example/", robot)
            except Exception as exc:
                value = self._crawler.settings.get(setting)
                raise ValueError(f"{setting} = {value!r}: {parser.__name__} is not usable: {exc}") from exc


def _knows_crawl_delay(parser: type[RobotParser]) -> bool:
    """Whether a parser reads `Crawl-delay`. The base class of newer versions of Scrapy has the method too."""
    method = getattr(parser, "crawl_delay", None)
    return method not in (None, getattr(RobotParser, "crawl_delay", None), StrictRobotParser.crawl_delay)


def _as_utf8(body: bytes) -> bytes:
    """Return a file as other parsers can read it: one bad byte, or UTF-16, makes some of them see nothing.

    The bytes that are no UTF-8 are written as ``%XX``, which is what they are compared as (F1).
    """
    text = to_text(body)
    return _SURROGATE.sub(lambda match: f"%{ord(match[0]) & 0xFF:02X}", text).encode()


def as_parser(rules: Rules) -> RobotParser:
    """Return rules as Scrapy knows them: one parser, which answers for all readings."""
    if isinstance(rules, AllRules):
        return AllParsers(rules)
    if isinstance(rules, ForeignRules):
        return rules.parser
    assert isinstance(rules, RobotsTxt)
    return StrictRobotParser(rules)


def strict_reading(rules: Rules | None) -> RobotsTxt | None:
    """Return the strict reading among rules, if it is there."""
    if isinstance(rules, AllRules):
        return strict_reading(rules.readings[0])
    return rules if isinstance(rules, RobotsTxt) else None


def is_only_strict(rules: Rules | None) -> bool:
    """Whether the strict reading alone says what is forbidden."""
    return strict_reading(rules) is not None and not (isinstance(rules, AllRules) and len(rules.readings) > 1)


def crawl_delays(rules: Rules | None, robot: str | bytes) -> list[object]:
    """Return what the readings of a file give as its `Crawl-delay` for a robot; None where there is none.

    Takes time unless `rules.is_ready(robot)`.
    """
    if isinstance(rules, ForeignRules):
        return [rules.crawl_delay(robot)]
    if not isinstance(rules, AllRules):
        return []  # the 1994 standard has no Crawl-delay
    values = [value for reading in rules.readings for value in crawl_delays(reading, robot)]
    return values if rules.delay is None else [*values, rules.delay.value(robot)]


class AllParsers(RobotParser):
    """Several readings of one file as one `RobotParser`, for the `robots_parsed` signal."""

    def __init__(self, rules: AllRules) -> None:
        self._rules = rules

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> AllParsers:
        """Raise `NotImplementedError`: the readings exist already."""
        raise NotImplementedError("make the parsers that ROBOTSTXT_PARSER and NOROBOTS_ALSO_OBEY name")

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        """Whether all readings allow `user_agent`, a name or a whole header, to fetch `url`."""
        return all(as_parser(reading).allowed(url, user_agent) for reading in self._rules.readings)

    def crawl_delay(self, user_agent: str | bytes) -> float | None:
        """Return the largest `Crawl-delay` that a reading gives, in seconds; None if there is none."""
        return CrawlDelay.of(crawl_delays(self._rules, user_agent), float("inf")).asked


def _as_scrapy_gives(robot: str | bytes) -> str | bytes:
    """Return a robot as what Scrapy's own middleware gives to parsers, but UTF-8 in any case."""
    return robot.decode("utf-8", "replace").encode() if isinstance(robot, bytes) else robot


class ForeignRules:
    """Rules as read by a `RobotParser` of the user's choice (`access.Rules`).

    Such a parser gives a verdict and nothing more, so its decisions name it and no line.
    """

    def __init__(self, parser: RobotParser, body: bytes) -> None:
        self.parser = parser
        # What such a parser makes of a body is not known; ten times its length is seen with Protego.
        self.size = 1000 + 10 * len(body)

    def is_ready(self, robot: str | bytes) -> bool:
        """Return True: the parser has read the file."""
        return True

    def prepare(self, origin: Origin, robot: str | bytes) -> None:
        """Do nothing."""

    def forbids(self, origin: Origin, target: str, robot: str | bytes) -> bool:
        """Whether `robot` may not fetch a target of an origin; so it is if the parser fails on it."""
        return self._ask(f"{origin}{target}", robot) != ""

    def _ask(self, url: str, robot: str | bytes) -> str | None:
        """Return an empty text if the parser allows, None if it forbids, what it raised if it failed."""
        try:
            return "" if self.parser.allowed(url, _as_scrapy_gives(robot)) else None
        except Exception as exc:
            return f"{type(exc).__name__}: {exc}"

    def crawl_delay(self, robot: str | bytes) -> object:
        """Return what the parser gives as `Crawl-delay`; None if it knows none, its exception if it fails."""
        ask = getattr(self.parser, "crawl_delay", None)  # Scrapy's have it from 2.18 on
        try:
            return ask(_as_scrapy_gives(robot)) if ask is not None else None
        except Exception as exc:
            return exc

    def decide(self, url: str, robot: str | bytes, source: str | None = None) -> Decision:
        """Say whether `robot` may fetch `url`."""
        answer = self._ask(url, robot)
        allowed = answer == ""
        name = type(self.parser).__name__
        failure = f", which failed ({answer})" if answer else ""
        return Decision(
            verdict=Verdict.ALLOWED if allowed else Verdict.FORBIDDEN,
            url=url,
            robot=to_name(robot),
            reason=Reason.PARSER,
            source=source,
            detail=f"{source} as read by {name}{failure}",
            parser=name,
        )


class AllRules:
    """Several readings of one file (`access.Rules`): a request passes only if all of them allow it.

    The first that forbids decides; if none does, the first of all says why. `delay` is the `Crawl-delay` of
    the file, if it is known beside the readings.
    """

    def __init__(self, readings: Sequence[Rules], delay: ProtegoDelay | None = None) -> None:
        self.readings = readings
        self.delay = delay
        self.size = sum(rules.size for rules in readings) + (delay.size if delay else 0)

    def is_ready(self, robot: str | bytes) -> bool:
        """Whether all readings answer questions about `robot` at once."""
        return all(rules.is_ready(robot) for rules in self.readings) and (
            self.delay is None or self.delay.is_ready(robot)
        )

    def prepare(self, origin: Origin, robot: str | bytes) -> None:
        """Do what the first question about `robot` takes."""
        for rules in self.readings:
            rules.prepare(origin, robot)
        if self.delay is not None:
            self.delay.value(robot)

    def forbids(self, origin: Origin, target: str, robot: str | bytes) -> bool:
        """Whether `robot` may not fetch a target of an origin by one of the readings."""
        return any(rules.forbids(origin, target, robot) for rules in self.readings)

    def decide(self, url: str, robot: str | bytes, source: str | None = None) -> Decision:
        """Say whether and why `robot` may fetch `url`."""
        decisions = [rules.decide(url, robot, source) for rules in self.readings]
        return next((decision for decision in decisions if not decision.allowed), decisions[0])
