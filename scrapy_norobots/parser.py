"""The standard behind Scrapy's `RobotParser` interface, and Scrapy's parsers behind this package's.

`StrictRobotParser` also works alone, under Scrapy's own middleware:
``ROBOTSTXT_PARSER = "scrapy_norobots.StrictRobotParser"``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.robotstxt import RobotParser

from scrapy_norobots.standard import Decision, Reason, RobotsTxt, Verdict
from scrapy_norobots.standard.names import to_name

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class StrictRobotParser(RobotParser):
    """The 1994 standard as a `scrapy.robotstxt.RobotParser`; `robots` is the file itself."""

    def __init__(self, robots: RobotsTxt) -> None:
        self.robots = robots

    @classmethod
    def from_crawler(cls, crawler: Crawler | None, robotstxt_body: bytes) -> StrictRobotParser:
        """Parse the body of a robots.txt; never raises on bytes."""
        return cls(RobotsTxt.parse(robotstxt_body))

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        """Whether `user_agent`, a name or a whole header, may fetch `url`."""
        if isinstance(url, bytes):
            url = url.decode("utf-8", "surrogateescape")
        return self.robots.allowed(url, user_agent)

    def crawl_delay(self, user_agent: str | bytes) -> None:
        """Say that no delay is asked for: the 1994 standard has no Crawl-delay."""


class ForeignRules:
    """Rules as read by a `RobotParser` of the user's choice (`access.Rules`).

    Such a parser gives a verdict and nothing more, so its decisions name it and no line.
    """

    def __init__(self, parser: RobotParser, body: bytes) -> None:
        self.parser = parser
        # What such a parser makes of a body is not known; ten times its length is seen with Protego.
        self.size = 1000 + 10 * len(body)

    def allowed(self, url: str, robot: str | bytes) -> bool:
        """Whether `robot` may fetch `url`."""
        return self.parser.allowed(url, robot)

    def decide(self, url: str, robot: str | bytes, source: str | None = None) -> Decision:
        """Say whether `robot` may fetch `url`."""
        allowed = self.allowed(url, robot)
        name = type(self.parser).__name__
        return Decision(
            verdict=Verdict.ALLOWED if allowed else Verdict.FORBIDDEN,
            url=url,
            robot=to_name(robot),
            reason=Reason.PARSER,
            source=source,
            detail=f"{source} as read by {name}",
        )
