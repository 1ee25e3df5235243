"""The package from outside: its public names, and what importing it brings along."""

from __future__ import annotations

import subprocess
import sys

import pytest
from scrapy.exceptions import IgnoreRequest

import scrapy_norobots
from scrapy_norobots import RobotsForbidden, RobotsTxt, RobotsUnreachable, StrictRobotParser


def test_every_public_name_is_there() -> None:
    for name in scrapy_norobots.__all__:
        assert getattr(scrapy_norobots, name).__name__ == name
        assert name in dir(scrapy_norobots)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Robot'"):
        getattr(scrapy_norobots, "Robot")  # noqa: B009  # mypy knows that it is not there


@pytest.mark.parametrize("name", scrapy_norobots.__all__)
def test_importing_installs_no_reactor(name: str) -> None:
    code = (
        f"import sys; from scrapy_norobots import {name}; sys.exit('twisted.internet.reactor' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_exceptions_are_scrapys_and_carry_the_decision() -> None:
    decision = RobotsTxt.parse(b"User-agent: *\nDisallow: /\n").decide("http://town.example/a", "FooBot")
    error = RobotsForbidden(decision)
    assert isinstance(error, IgnoreRequest)
    assert issubclass(RobotsUnreachable, RobotsForbidden)
    assert error.decision is decision
    assert str(error) == f"Forbidden by robots.txt: {decision}"


def test_strict_robot_parser_takes_what_scrapy_gives() -> None:
    parser = StrictRobotParser.from_crawler(None, b"User-agent: FooBot\nDisallow: /back/\n")
    assert not parser.allowed("http://town.example/back/", "FooBot/1.0")
    assert not parser.allowed(b"http://town.example/back/", b"FooBot/1.0")
    assert parser.allowed("http://town.example/back/", "BarBot/1.0")
    assert parser.robots.records[0].names == ("FooBot",)
