"""The exceptions of dropped requests."""

from __future__ import annotations

from scrapy.exceptions import IgnoreRequest

from scrapy_norobots import Decision, RobotsForbidden, RobotsTxt, RobotsUnreachable
from scrapy_norobots.standard import Reason, Verdict


def test_exceptions_are_scrapys_and_carry_the_decision() -> None:
    decision = RobotsTxt.parse(b"User-agent: *\nDisallow: /\n").decide("http://town.example/a", "FooBot")
    error = RobotsForbidden(decision)
    assert isinstance(error, IgnoreRequest)
    assert issubclass(RobotsUnreachable, RobotsForbidden)
    assert error.decision is decision
    assert str(error) == f"Forbidden by robots.txt: {decision}"


def test_without_rules_the_message_does_not_say_that_robots_txt_forbids() -> None:
    decision = Decision(
        Verdict.FORBIDDEN,
        "http://town.example/x",
        "FooBot",
        Reason.STATUS,
        detail="http://town.example/robots.txt answered 403, and NOROBOTS_STATUS_POLICY denies '403'",
    )
    assert str(RobotsUnreachable(decision)) == (
        "Dropped: http://town.example/x (http://town.example/robots.txt answered 403, and "
        "NOROBOTS_STATUS_POLICY denies '403')"
    )
