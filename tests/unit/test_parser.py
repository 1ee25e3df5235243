"""`parser`: rules from other parsers, and several readings at once."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest
from scrapy.robotstxt import RobotParser
from scrapy.settings import Settings

from scrapy_norobots import Rfc9309RobotParser, StrictRobotParser
from scrapy_norobots.rules import delay_values
from scrapy_norobots.rules.parser import (
    AllRules,
    ForeignRules,
    as_parser,
    crawl_delay,
    reader_of,
    strict_reading,
)
from scrapy_norobots.standard import Origin, RobotsTxt
from scrapy_norobots.standard.groups import groups_of

NO_DELAY = delay_values.CrawlDelay(b"")
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


def test_a_foreign_parser_decides_about_the_url_that_is_sent() -> None:
    rules = ForeignRules(Only("/a"), b"")
    decision = rules.decide("http://user:secret@town.example:8080/a#top", "FooBot")
    assert decision.allowed
    assert decision.url.endswith("#top")


def test_no_reading_is_asked_for_a_reason_after_one_that_forbids() -> None:
    parser = Only("/a")
    rules = AllRules([RobotsTxt.parse("User-agent: *\nDisallow: /a\n"), ForeignRules(parser, b"")], NO_DELAY)
    assert rules.decide("http://town.example:8080/a", "FooBot").rule == (2, "/a")
    assert parser.asked == []
    assert rules.decide("http://town.example:8080/b", "FooBot").parser == "Only"


def test_rules_convert_to_a_parser_and_to_the_strict_reading() -> None:
    strict, foreign = RobotsTxt.parse(b""), ForeignRules(Only("/"), b"")
    parser = as_parser(strict)
    assert isinstance(parser, StrictRobotParser)
    assert parser.robots is strict_reading(AllRules([strict], NO_DELAY)) is strict
    assert as_parser(foreign) is foreign.parser
    assert strict_reading(foreign) is strict_reading(None) is None


class Slow(Only):
    """Has a Crawl-delay, which may be invalid."""

    def __init__(self, path: str, delay: Any) -> None:
        super().__init__(path)
        self.delay = delay

    def crawl_delay(self, user_agent: str | bytes) -> Any:
        self.asked.append(user_agent)
        if isinstance(self.delay, Exception):
            raise self.delay
        return self.delay


def test_several_readings_convert_to_one_parser() -> None:
    strict = RobotsTxt.parse("User-agent: *\nDisallow: /a\n")
    others = [ForeignRules(Slow("/b", delay), b"") for delay in (2, 10.5, None, RuntimeError("no"), -30)]
    parser = as_parser(AllRules([strict, ForeignRules(Only("/b"), b""), *others], NO_DELAY))
    assert isinstance(parser, AllRules)
    assert parser.allowed("http://town.example:8080/b", "FooBot")
    assert not parser.allowed("http://town.example:8080/a", b"FooBot")
    assert not parser.allowed("http://town.example:8080/c", "FooBot")
    assert parser.crawl_delay(b"FooBot/1.0") == 10.5
    without = AllRules([strict, ForeignRules(Only("/b"), b"")], NO_DELAY)
    assert as_parser(without).crawl_delay("FooBot") is None
    with pytest.raises(NotImplementedError):
        AllRules.from_crawler(MagicMock(), b"")


@pytest.mark.parametrize("others", [[], [Only], [StrictRobotParser]])
def test_the_crawl_delay_is_read_if_no_other_parser_reads_it(others: list[Any]) -> None:
    body = b"User-agent: *\nCrawl-delay: 3\n"
    read = reader_of(crawler(), StrictRobotParser, others, multivalue=False, crawl_delay=True)
    rules = read(body)
    assert not rules.is_ready("FooBot")
    rules.prepare(ORIGIN, "FooBot")
    assert rules.is_ready("FooBot")
    assert crawl_delay(rules, "FooBot") == 3.0


@pytest.mark.parametrize("others", [[], [Only], [StrictRobotParser]])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-32-be"])
def test_the_parser_that_is_sent_reads_the_crawl_delay_only_if_it_is_asked(
    others: list[Any], encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = MagicMock(side_effect=groups_of)
    monkeypatch.setattr(delay_values, "groups_of", read)
    body = "User-agent: potto\nCrawl-delay: 7\nDisallow:\n\nUser-agent: *\nCrawl-delay: 3\n".encode(encoding)
    rules = reader_of(crawler(), StrictRobotParser, others, multivalue=False)(body)
    size = rules.size
    parser = as_parser(rules)
    rules.prepare(ORIGIN, "FooBot")
    assert rules.is_ready("FooBot")
    parser.allowed("http://town.example:8080/", "FooBot")
    read.assert_not_called()
    assert [parser.crawl_delay(robot) for robot in ("FooBot", b"FooBot", "potto", "FooBot")] == [3, 3, 7, 3]
    assert read.call_count == 2
    assert rules.size - size < 3_000


def test_files_without_a_crawl_delay_need_no_second_reading() -> None:
    read = reader_of(crawler(), StrictRobotParser, [], multivalue=False, crawl_delay=True)
    for body in (
        b"",
        b"User-agent: *\nDisallow: /delay\n",
        b"# Crawl-delay: 3\n",
        b"User-agent: *\nCrawl-delay:\n",
    ):
        assert isinstance(read(body), RobotsTxt)
        assert crawl_delay(read(body), "FooBot") is None
    assert crawl_delay(None, "FooBot") is None


def crawler() -> Any:
    return MagicMock(settings=Settings())


@pytest.mark.parametrize("kind", [StrictRobotParser, Rfc9309RobotParser])
def test_parsers_of_the_package_accept_the_types_of_scrapy(kind: type[StrictRobotParser]) -> None:
    parser = kind.from_crawler(None, b"User-agent: FooBot\nCrawl-delay: 5\nDisallow: /back/\n")
    assert not parser.allowed("http://town.example/back/", "FooBot/1.0")
    assert not parser.allowed(b"http://town.example/back/", b"FooBot/1.0")
    assert parser.allowed("http://town.example/back/", "BarBot/1.0")
    assert parser.crawl_delay("FooBot") == 5
