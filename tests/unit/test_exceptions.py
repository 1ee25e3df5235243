"""The exceptions of dropped requests."""

from __future__ import annotations

from scrapy.exceptions import IgnoreRequest

from scrapy_norobots import RobotsForbidden, RobotsTxt, RobotsUnreachable


def test_exceptions_are_scrapys_and_carry_the_decision() -> None:
    decision = RobotsTxt.parse(b"User-agent: *\nDisallow: /\n").decide("http://town.example/a", "FooBot")
    error = RobotsForbidden(decision)
    assert isinstance(error, IgnoreRequest)
    assert issubclass(RobotsUnreachable, RobotsForbidden)
    assert error.decision is decision
    assert str(error) == f"Forbidden by robots.txt: {decision}"
