"""`parser`: rules from other parsers, and several readings at once."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy.robotstxt import RobotParser

from scrapy_norobots import StrictRobotParser
from scrapy_norobots.access import Rules
from scrapy_norobots.parser import AllRules, ForeignRules, as_parser, strict_reading
from scrapy_norobots.standard import Origin, RobotsTxt

ORIGIN = Origin("http", "town.example", 8080)


class Only(RobotParser):
    """Allows one path, fails for another, and records its questions."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.asked: list[Any] = []

    @classmethod
    def from_crawler(cls, crawler: object, robotstxt_body: bytes) -> Only:
        return cls("/")

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        self.asked.append((url, user_agent))
        if url == "http://town.example:8080/broken":
            raise RuntimeError("no such luck")
        return url == f"http://town.example:8080{self.path}"


def test_a_foreign_parser_gets_the_whole_url() -> None:
    parser = Only("/a?b")
    rules = ForeignRules(parser, b"")
    assert not rules.forbids(ORIGIN, "/a?b", "FooBot")
    assert rules.forbids(ORIGIN, "/", b"FooBot/\xff")
    assert parser.asked == [
        ("http://town.example:8080/a?b", "FooBot"),
        ("http://town.example:8080/", "FooBot/\ufffd".encode()),
    ]


def test_a_foreign_parser_that_fails_forbids() -> None:
    rules = ForeignRules(Only("/broken"), b"")
    assert rules.forbids(ORIGIN, "/broken", "FooBot")
    assert "no such luck" in rules.decide("http://town.example:8080/broken", "FooBot").why


@pytest.mark.parametrize("order", [1, -1])
def test_a_target_is_forbidden_if_one_reading_forbids_it(order: int) -> None:
    strict = RobotsTxt.parse("User-agent: *\nDisallow: /a\n")
    readings: list[Rules] = [strict, ForeignRules(Only("/b"), b"")]
    rules = AllRules(readings[::order])
    assert rules.forbids(ORIGIN, "/a", "FooBot")
    assert rules.forbids(ORIGIN, "/c", "FooBot")
    assert not rules.forbids(ORIGIN, "/b", "FooBot")


def test_rules_convert_to_a_parser_and_to_the_strict_reading() -> None:
    strict, foreign = RobotsTxt.parse(b""), ForeignRules(Only("/"), b"")
    parser = as_parser(AllRules([strict, foreign]))
    assert isinstance(parser, StrictRobotParser)
    assert parser.robots is strict_reading(AllRules([strict])) is strict
    assert as_parser(foreign) is foreign.parser
    assert strict_reading(foreign) is strict_reading(None) is None


def test_strict_robot_parser_accepts_the_types_of_scrapy() -> None:
    parser = StrictRobotParser.from_crawler(None, b"User-agent: FooBot\nDisallow: /back/\n")
    assert not parser.allowed("http://town.example/back/", "FooBot/1.0")
    assert not parser.allowed(b"http://town.example/back/", b"FooBot/1.0")
    assert parser.allowed("http://town.example/back/", "BarBot/1.0")
    assert parser.robots.records[0].names == ("FooBot",)
