"""Scrapy's parser interface."""

from __future__ import annotations

from scrapy_norobots import StrictRobotParser


def test_strict_robot_parser_takes_what_scrapy_gives() -> None:
    parser = StrictRobotParser.from_crawler(None, b"User-agent: FooBot\nDisallow: /back/\n")
    assert not parser.allowed("http://town.example/back/", "FooBot/1.0")
    assert not parser.allowed(b"http://town.example/back/", b"FooBot/1.0")
    assert parser.allowed("http://town.example/back/", "BarBot/1.0")
    assert parser.robots.records[0].names == ("FooBot",)
