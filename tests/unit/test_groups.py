"""Groups and product tokens of RFC 9309 (2.2.1)."""

from __future__ import annotations

import pytest

from scrapy_norobots.standard import AllowRule, Reason, RobotsTxt, Rule
from scrapy_norobots.standard.names import Robot
from tests.helpers.samples.later import decide, line


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("FooBot", "foobot"),
        ("FooBot/1.0 (+https://foo.example/bot)", "foobot"),
        ("Foo_Bot-X/1.0 Twisted/24", "foo_bot-x"),
        ("FooBot2/1.0", "foobot"),
        ("Foo Bot", "foo"),
        ("360Bot/1.0", "360bot"),
        ("*", "*"),
        ("", ""),
        ("Mozilla/5.0 (compatible; FooBot/1.0; +https://foo.example/bot)", "foobot"),
        ("Mozilla/5.0 (X11; Linux) AppleWebKit/537.36 (KHTML; compatible; FooBot/1.0) Chrome/1", "foobot"),
        ("Mozilla/5.0 (X11; Linux (x)) FooBot/1.0 Safari/1", "foobot"),
        ("Mozilla/5.0 (X11; Linux) AppleWebKit/537.36 (KHTML, like Gecko)", "applewebkit"),
        ("Mozilla/5.0", "mozilla"),
        ("Other/1.0 (compatible; FooBot/1.0)", "other"),
    ],
)
def test_the_token_is_the_first_product_that_is_not_mozilla(header: str, token: str) -> None:
    assert Robot.of(header).token == Robot.of(header.encode()).token == token


@pytest.mark.parametrize(
    ("value", "is_named"),
    [
        *(("FooBot", True), ("foobot", True), ("FOOBOT/2.0", True), ("FooBot 2", True), ("FooBot2", True)),
        *(("Foo", False), ("Bot", False), ("FooBots", False), ("FooBot-News", False), ("*FooBot", False)),
        *(("", False), ("FooBot*", True), ("\fFooBot", True)),
    ],
)
def test_a_token_is_compared_whole_in_any_case(value: str, is_named: bool) -> None:
    body = f"User-agent: {value}\nDisallow: /attic\n\nUser-agent: *\nDisallow: /cellar\n"
    assert (line(body), line(body, "/cellar")) == ((2, None) if is_named else (None, 5))


def test_a_name_without_a_token_is_compared_by_its_first_word() -> None:
    body = "User-agent: 360bot/2\nDisallow: /attic\nUser-agent: *\nDisallow:\n"
    assert line(body, robot="360Bot/1.0 (+https://foo.example/)") == 2
    assert line(body, robot="360") is None


def test_all_groups_of_a_token_apply_together() -> None:
    body = "User-agent: foobot\nDisallow: /attic\nUser-agent: x\nDisallow: /x\n"
    body += "User-agent: FooBot\nDisallow: /b\n"
    assert [line(body, target) for target in ("/attic", "/x", "/b")] == [2, None, 6]


@pytest.mark.parametrize("star", ["*", "* # all", "* and others"])
def test_groups_for_all_apply_together_if_none_names_the_robot(star: str) -> None:
    body = f"User-agent: {star}\nDisallow: /attic\nUser-agent: x\nDisallow: /x\nUser-agent: *\nDisallow: /b\n"
    assert [line(body, target) for target in ("/attic", "/x", "/b")] == [2, None, 6]
    assert line(f"{body}User-agent: FooBot\n") is None


def test_only_a_rule_ends_the_names_of_a_group() -> None:
    body = (
        "User-agent: FooBot\n\nCrawl-delay: 5\nSitemap: /s\nnonsense\nUser-agent: *\n\n\nDisallow: /attic\n"
    )
    assert line(body) == line(body, robot="Other") == 9
    assert line("User-agent: FooBot\nAllow:\nUser-agent: *\nDisallow: /attic\n") is None
    record = decide(body, robot="Other").record
    assert record is not None
    assert record.user_agents == ((1, "FooBot"), (6, "*"))


def test_records_are_the_groups() -> None:
    body = "Disallow: /a\nUser-agent: a\n\nUser-agent: b\nAllow: /b\nDisallow: /\nUser-agent: c\n"
    first, second = RobotsTxt.parse(body, reading="rfc9309").records
    assert first.user_agents == ((2, "a"), (4, "b"))
    assert first.rules == (AllowRule(5, "/b"), Rule(6, "/"))
    assert [rule.allows for rule in first.rules] == [True, False]
    assert (second.names, second.rules) == (("c",), ())


def test_a_decision_names_the_line_the_group_and_the_rfc() -> None:
    decision = decide("User-agent: *\nAllow: /attic/box\nDisallow: /attic # no\n")
    assert (decision.reason, decision.parser) == (Reason.RULE, "Rfc9309RobotParser")
    assert (
        decision.why
        == "line 3 of robots.txt, 'Disallow: /attic', in the record of line 1 for '*', by RFC 9309"
    )
    allowed = decide("User-agent: *\nAllow: /attic/box\nDisallow: /attic # no\n", "/attic/box/1")
    assert allowed.allowed
    assert allowed.why.startswith("line 2 of robots.txt, 'Allow: /attic/box', ")
    assert decide("User-agent: *\nDisallow: /x\n").reason is Reason.NO_RULE_MATCHES
    assert decide("User-agent: x\nDisallow: /\n").reason is Reason.NO_RECORD
