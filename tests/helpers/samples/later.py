"""Questions to the reading of RFC 9309, for its tests."""

from __future__ import annotations

from scrapy_norobots.standard import Decision, RobotsTxt

FOOBOT = "FooBot/1.0 (+https://foo.example/bot)"
HOST = "http://town.example"


def decide(body: str | bytes, target: str = "/attic", robot: str | bytes = FOOBOT) -> Decision:
    robots = RobotsTxt.parse(body, reading="rfc9309")
    decision = robots.decide(HOST + target, robot)
    assert robots.allowed(HOST + target, robot) is decision.allowed
    return decision


def line(body: str | bytes, target: str = "/attic", robot: str | bytes = FOOBOT) -> int | None:
    """Return the number of the line that forbids; None if the target is allowed."""
    decision = decide(body, target, robot)
    assert decision.rule is not None or decision.allowed
    return None if decision.allowed or decision.rule is None else decision.rule.line
