"""How a project uses the package, in all its types: mypy checks this, and that the mistakes are errors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.http import Response
from twisted.python.failure import Failure

from scrapy_norobots import Addon, Decision, RobotsForbidden, RobotsTxt, RobotsUnreachable

ADDONS: dict[type, int] = {Addon: 500}


class Town(Spider):
    name = "town"

    async def start(self) -> AsyncIterator[Any]:
        yield Request("http://town.example/", errback=self.dropped)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[dict[str, str]]:
        yield {"url": response.url}

    def dropped(self, failure: Failure) -> None:
        error = failure.value
        if isinstance(error, RobotsUnreachable):
            self.logger.info("not now: %s", error)
        elif isinstance(error, RobotsForbidden):
            decision: Decision = error.decision
            if decision.rule is not None:
                self.logger.info("%s: line %d", decision.why, decision.rule.line)


def read() -> tuple[bool, list[int], list[tuple[str, ...]]]:
    robots = RobotsTxt.parse(b"User-agent: *\nDisallow: /staff/\n")
    may: bool = robots.allowed("http://town.example/", "FooBot")
    lines: list[int] = [finding.line for finding in robots.findings]
    return may, lines, [record.names for record in robots.records]


def mistakes() -> str:
    RobotsTxt.parse(7)  # type: ignore[arg-type]
    RobotsTxt.parse(b"").allowed("http://town.example/")  # type: ignore[call-arg]
    return RobotsTxt.parse(b"").decide("http://town.example/", "FooBot").line  # type: ignore[attr-defined,no-any-return]
