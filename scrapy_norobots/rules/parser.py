"""The rules of a file, as read by `standard` or by parsers of the user: one reading of it, or all of several.

The *strict reading* is that of the standard of 1994, the other one of this package that of RFC 9309.

`StrictRobotParser` and `Rfc9309RobotParser` also work with Scrapy's own middleware alone:
``ROBOTSTXT_PARSER = "scrapy_norobots.Rfc9309RobotParser"``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from scrapy.robotstxt import RobotParser
from scrapy.utils.misc import build_from_crawler
from scrapy.utils.python import to_unicode

from scrapy_norobots.rules.delay_values import CrawlDelay, largest
from scrapy_norobots.scrapy_api.log import SettingError
from scrapy_norobots.standard import Decision, Reason, RobotsTxt, Verdict
from scrapy_norobots.standard.lines import SURROGATE, to_text
from scrapy_norobots.standard.names import to_name
from scrapy_norobots.standard.urls import split

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scrapy.crawler import Crawler
    from typing_extensions import Self

    from scrapy_norobots.standard import Origin


class Rules(Protocol):
    """What a file allows, by one reading or several. Questions come from the event loop and from threads."""

    @property
    def size(self) -> int:
        """Approximate memory use in bytes, including what has been cached."""

    def is_ready(self, robot: str | bytes) -> bool:
        """Return whether questions about `robot` are answered at once; if not, run `prepare` in a thread."""

    def prepare(self, origin: Origin, robot: str | bytes) -> None:
        """Do the work that the first question about `robot` needs."""

    def forbids(self, origin: Origin, target: str, robot: str | bytes) -> bool:
        """Return whether `robot` must not fetch `target`, a path with its query, at `origin`."""

    def decide(self, url: str, robot: str | bytes, source: str | None = None) -> Decision:
        """Return whether `robot` may fetch `url`, and why. `source` is the URL of the file."""


class Statements(Rules, Protocol):
    """What one file says about the use of pages; it may forbid what the rules allow."""

    def facts(self, url: str, robot: str | bytes) -> list[dict[str, Any]]:
        """Return the statements that apply to `url` and `robot`, as plain data for JSON."""


class StrictRobotParser(RobotParser):
    """The strict reading of the 1994 standard as a `scrapy.robotstxt.RobotParser`; `robots` answers."""

    reading = "1994"

    def __init__(self, robots: RobotsTxt) -> None:
        self.robots = robots
        self._delay = CrawlDelay(robots.body)

    @classmethod
    def from_crawler(cls, crawler: Crawler | None, robotstxt_body: bytes) -> Self:
        """Return the parser of a body, of which any bytes are valid (F1).

        Reads ``NOROBOTS_MULTIVALUE`` from the crawler's settings, if there is a crawler.
        """
        multivalue = crawler is not None and crawler.settings.getbool("NOROBOTS_MULTIVALUE")
        return cls(RobotsTxt.parse(robotstxt_body, reading=cls.reading, multivalue=multivalue))

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        """Return whether `user_agent`, a name or a whole User-Agent header, may fetch `url`."""
        return self.robots.allowed(to_unicode(url, errors="surrogateescape"), user_agent)

    def crawl_delay(self, user_agent: str | bytes) -> float | None:
        """Return the ``Crawl-delay`` of the groups of a robot (RFC 9309, 2.2.4), in seconds; or None."""
        return self._delay.value(user_agent)


class Rfc9309RobotParser(StrictRobotParser):
    """The reading of RFC 9309 as a `scrapy.robotstxt.RobotParser`."""

    reading = "rfc9309"


_OWN = (StrictRobotParser, Rfc9309RobotParser)


def reader_of(
    crawler: Crawler,
    parser: type[RobotParser],
    also_obey: Sequence[type[RobotParser]],
    *,
    multivalue: bool,
    crawl_delay: bool = False,
    also_robots: Sequence[str] = (),
    statements: Callable[[bytes], Statements] | None = None,
) -> Callable[[bytes], Rules]:
    """Return what reads the body of a robots.txt with `parser` and those of `also_obey`.

    `multivalue` selects the dialect of the strict parser. If `crawl_delay` is true, `Crawl-delay` lines are
    read too. `also_robots` are other names that must be allowed. `statements` reads what a file says about
    the use of pages. Raises `ValueError`, with the name of the setting, if a parser cannot be used.
    """
    parsers = [parser, *also_obey]
    # One object for both readings of this package, which reads a file once.
    own = {each.reading for each in parsers if each in _OWN}
    reading = "both" if len(own) > 1 else next(iter(own), None)
    foreign = [each for each in parsers if each not in _OWN]
    for each in foreign:
        _check(each, crawler, "ROBOTSTXT_PARSER" if each is parser else "NOROBOTS_ALSO_OBEY")

    def read(body: bytes) -> Rules:
        readings: list[Rules] = [
            ForeignRules(build_from_crawler(each, crawler, _as_utf8(body)), body, each.__name__)
            for each in foreign
        ]
        if reading is not None:
            rules = RobotsTxt.parse(body, reading=reading, multivalue=multivalue)
            readings.insert(0 if parser in _OWN else 1, rules)
        delay = CrawlDelay(body)
        keeps_delay = crawl_delay and delay.has_lines
        said = None if statements is None else statements(body)
        if len(readings) == 1 and not keeps_delay and not also_robots and said is None:
            return readings[0]
        return AllRules(readings, delay, keeps_delay=keeps_delay, also_robots=also_robots, statements=said)

    return read


def _check(parser: type[RobotParser], crawler: Crawler, setting: str) -> None:
    """Check that a parser of the user can import its library and answer a question."""
    try:
        robot = crawler.settings.get("ROBOTSTXT_USER_AGENT") or b"FooBot"
        build_from_crawler(parser, crawler, b"").allowed("http://town.example/", robot)
    except Exception as exc:  # a user's parser may raise anything
        value = crawler.settings.get(setting)
        raise SettingError(f"{setting} = {value!r}: {parser.__name__} cannot be used: {exc}") from exc


def _as_utf8(body: bytes) -> bytes:
    """Return a file as UTF-8, which some parsers need; other bytes become ``%XX``, as in our parser (F1)."""
    return SURROGATE.sub(lambda match: f"%{ord(match[0]) & 0xFF:02X}", to_text(body)).encode()


def as_parser(rules: Rules) -> RobotParser:
    """Return rules as a `RobotParser` of Scrapy: one parser, which answers for all readings."""
    if isinstance(rules, RobotsTxt):
        return Rfc9309RobotParser(rules) if rules.reading == "rfc9309" else StrictRobotParser(rules)
    return rules.parser if isinstance(rules, ForeignRules) else cast("AllRules", rules)


def _parsers_of(rules: Rules | None) -> list[RobotsTxt | ForeignRules]:
    readings = rules.readings if isinstance(rules, AllRules) else [rules]
    return [each for each in readings if isinstance(each, (RobotsTxt, ForeignRules))]


def parser_names(rules: Rules | None) -> list[str]:
    """Return the class names of the parsers whose readings the rules are, the first one first."""
    return [name or StrictRobotParser.__name__ for each in _parsers_of(rules) for name in each.parsers]


def verdicts(rules: Rules, origin: Origin, target: str, robot: str | bytes) -> list[bool]:
    """Return whether each of the readings forbids a target, in the order of `parser_names`."""
    url = f"{origin}{target}"
    return [not decision for each in _parsers_of(rules) for decision in each.decisions(url, robot)]


def strict_reading(rules: Rules | None) -> RobotsTxt | None:
    """Return the file whose first reading is the strict one; None if the user replaced it."""
    own = (each for each in _parsers_of(rules) if isinstance(each, RobotsTxt))
    return next((each for each in own if each.reading != "rfc9309"), None)


def crawl_delay(rules: Rules | None, robot: str | bytes) -> float | None:
    """Return the largest `Crawl-delay` of a file, in seconds; takes time unless `rules.is_ready(robot)`."""
    # The 1994 standard has no Crawl-delay.
    values = [each.crawl_delay(robot) for each in _parsers_of(rules) if isinstance(each, ForeignRules)]
    if isinstance(rules, AllRules):
        values.append(rules.delay.value(robot))
    return largest(values)


def statements_of(rules: Rules | None) -> Statements | None:
    """Return what reads the statements about use; None if they are not read."""
    return rules.statements if isinstance(rules, AllRules) else None


def statements_on(rules: Rules | None, url: str, robot: str | bytes) -> list[dict[str, Any]] | None:
    """Return what a file says about the use of a URL, as plain data; None if that is not read."""
    statements = statements_of(rules)
    return None if statements is None else statements.facts(url, robot)


def _as_scrapy_gives(robot: str | bytes) -> str | bytes:
    """Return a robot as Scrapy's own middleware passes it to parsers, but always as valid UTF-8."""
    return robot.decode("utf-8", "replace").encode() if isinstance(robot, bytes) else robot


class ForeignRules:
    """Rules as read by a `RobotParser` of the user's choice, whose verdicts name no line.

    `name` is that of the class in the settings; its `from_crawler` may return another one.
    """

    def __init__(self, parser: RobotParser, body: bytes, name: str = "") -> None:
        self.parser = parser
        self.parsers = (name or type(parser).__name__,)
        # The memory use of a foreign parser is unknown; Protego takes about ten times the length of the body.
        self.size = 1000 + 10 * len(body)

    def is_ready(self, robot: str | bytes) -> bool:
        return True  # the parser has already read the file

    def prepare(self, origin: Origin, robot: str | bytes) -> None:
        pass

    def forbids(self, origin: Origin, target: str, robot: str | bytes) -> bool:
        return not self._ask(f"{origin}{target}", robot)[0]

    def _ask(self, url: str, robot: str | bytes) -> tuple[bool, str]:
        """Return whether the parser allows, and an error message if it failed, which forbids."""
        try:
            return bool(self.parser.allowed(url, _as_scrapy_gives(robot))), ""
        except Exception as exc:  # a user's parser may raise anything
            return False, f"{type(exc).__name__}: {exc}"

    def crawl_delay(self, robot: str | bytes) -> object:
        """Return the parser's `Crawl-delay`, None if it has none, or its exception if it failed."""
        ask = getattr(self.parser, "crawl_delay", None)  # Scrapy's own parsers have it from 2.18 on
        try:
            return ask(_as_scrapy_gives(robot)) if ask is not None else None
        except Exception as exc:  # a user's parser may raise anything
            return exc

    def decide(self, url: str, robot: str | bytes, source: str | None = None) -> Decision:
        origin, target = split(url)
        # The same question as in `forbids`: not all parsers ignore a fragment.
        allowed, problem = self._ask(url if origin is None else f"{origin}{target}", robot)
        (name,) = self.parsers
        return Decision(
            verdict=Verdict.ALLOWED if allowed else Verdict.FORBIDDEN,
            url=url,
            robot=to_name(robot),
            reason=Reason.PARSER,
            source=source,
            detail=f"{name} failed ({problem}) on {source}" if problem else f"{source} as read by {name}",
            parser=name,
        )

    def decisions(self, url: str, robot: str | bytes) -> list[Decision]:
        """Return the same, as `RobotsTxt` does for each of its readings."""
        return [self.decide(url, robot)]


class AllRules(RobotParser):
    """Several readings of one file: a request passes only if all of them allow it.

    `also_robots` are other robots, which must all be allowed too. `statements` are asked after the readings.
    The decision is that of the first reading that forbids; if none forbids, that of the first reading.
    `delay` reads the `Crawl-delay` lines; if `keeps_delay` is true, `prepare` does so. As a `RobotParser`,
    this is what the `robots_parsed` signal sends.
    """

    def __init__(
        self,
        readings: Sequence[Rules],
        delay: CrawlDelay,
        *,
        keeps_delay: bool = False,
        also_robots: Sequence[str] = (),
        statements: Statements | None = None,
    ) -> None:
        self.readings = readings
        self.delay = delay
        self.statements = statements
        self._prepared = delay if keeps_delay else None
        self._also_robots = also_robots
        self._asked = readings if statements is None else [*readings, statements]

    @property
    def size(self) -> int:
        return 1000 + sum(rules.size for rules in self._asked)

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> AllRules:
        """Raise `NotImplementedError`: an instance needs readings that exist."""
        raise NotImplementedError("use the parsers that ROBOTSTXT_PARSER and NOROBOTS_ALSO_OBEY name")

    def is_ready(self, robot: str | bytes) -> bool:
        if self._prepared is not None and not self._prepared.is_ready(robot):
            return False
        return all(rules.is_ready(name) for name, rules in self._questions(robot))

    def prepare(self, origin: Origin, robot: str | bytes) -> None:
        for name, rules in self._questions(robot):
            rules.prepare(origin, name)
        if self._prepared is not None:
            self._prepared.value(robot)

    def forbids(self, origin: Origin, target: str, robot: str | bytes) -> bool:
        return any(rules.forbids(origin, target, name) for name, rules in self._questions(robot))

    def decide(self, url: str, robot: str | bytes, source: str | None = None) -> Decision:
        own: Decision | None = None
        for name, rules in self._questions(robot):
            decision = rules.decide(url, name, source)
            own = own or decision
            if not decision:  # the others need not read the record of a robot, which takes time
                is_own = name is robot
                return decision if is_own else replace(decision, robot=own.robot, decided_for=decision.robot)
        assert own is not None  # there is a reading
        return own

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        """Return whether all readings allow `user_agent`, a name or a whole header, to fetch `url`."""
        return self.decide(to_unicode(url, errors="surrogateescape"), user_agent).allowed

    def crawl_delay(self, user_agent: str | bytes) -> float | None:
        """Return the largest `Crawl-delay` of the readings, in seconds; None if there is none."""
        return crawl_delay(self, user_agent)

    def _questions(self, robot: str | bytes) -> Iterator[tuple[str | bytes, Rules]]:
        """Yield each robot that must be allowed, `robot` first, with each reading, and the statements."""
        return ((name, rules) for name in (robot, *self._also_robots) for rules in self._asked)
