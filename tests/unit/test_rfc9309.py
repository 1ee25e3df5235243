"""The reading of RFC 9309, as docs/rfc9309.md describes it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_norobots.standard import AllowRule, Decision, Reason, RobotsTxt, Rule
from scrapy_norobots.standard.names import Robot

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


# --- 2.1, 2.2: lines

FILE = "User-agent: *\nDisallow: /attic\n"


@pytest.mark.parametrize(
    ("body", "number"),
    [
        # CR, LF or both end a line, and no other character does.
        *((end.join(["User-agent: *", "", "Disallow: /attic", ""]), 3) for end in ["\n", "\r", "\r\n"]),
        *(
            (f"User-agent: *\nDisallow: /cellar{character}Allow: /\nDisallow: /attic\n".encode(), 3)
            for character in ["\f", "\v", "\x85", "\u2028", "\x1c"]
        ),
        # Fields are case-insensitive, with blanks and comments.
        ("\tUSER-AGENT :\t* # all\n dIsAlLoW\t: /attic # no\n", 2),
        ("User-agent: *\n# Disallow: /attic\n", None),
        # A page is read line by line, and other encodings as in the strict reading.
        (f"<!DOCTYPE html>\n<pre>\n{FILE}</pre>", 4),
        *((FILE.encode(encoding), 2) for encoding in ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"]),
    ],
)
def test_lines_and_fields_are_read(body: str | bytes, number: int | None) -> None:
    assert line(body) == number


@pytest.mark.parametrize("body", ["", "\ufeff", "Disallow: /attic\n", "<html>", "\0", "User-agent: *"])
def test_a_file_without_rules_in_groups_allows_everything(body: str) -> None:
    assert decide(body).allowed


@given(st.binary(max_size=200), st.text(max_size=20))
def test_any_bytes_are_read(body: bytes, robot: str) -> None:
    robots = RobotsTxt.parse(body, reading="rfc9309")
    assert robots.decide(f"{HOST}/%?*$", robot).allowed is robots.allowed(f"{HOST}/%?*$", robot)
    assert all(record.names for record in robots.records)


# --- what the RFC leaves open: as Google's open parser reads it, and never more lenient

FORBIDDING = [
    *("Dissallow: /attic", "Dissalow: /attic", "Disalow: /attic", "Diasllow: /attic", "Disallaw: /attic"),
    *("Disallow /attic", "disallow\t/attic", "Disallowed: /attic", "\fDisallow: /attic\v", "Disallow: attic"),
    *(f"Disallow: {HOST}/attic", f"Disallow: {HOST.upper()}:80/attic"),
]
ALLOWING = ["Allowed: /attic", "Allow /attic", "Alow: /attic", "Allow: attic", f"Allow: {HOST}/attic"]
NO_RULES = ["Disallow", "Disallow the robots", "Disalllow: /attic", "Noindex: /attic"]


@pytest.mark.parametrize(
    ("body", "number"),
    [
        # Typing errors that forbid are read, but they allow nothing.
        *((f"User-agent: *\n{rule}\n", 2) for rule in FORBIDDING),
        *((f"User-agent: *\nDisallow: /\n{rule}\n", 2) for rule in [*ALLOWING, "Allow: /attic one"]),
        # What only resembles a rule ends no group.
        *((f"User-agent: FooBot\n{rule}\nUser-agent: *\nDisallow: /attic\n", 4) for rule in NO_RULES),
        ("User-agent: \f*\f\nDisallow: /attic\n", 2),
        # URLs of other sites forbid nothing.
        ("User-agent: *\nDisallow: http://city.example/attic\nDisallow: /x\n", None),
        ("User-agent: *\nDisallow: mailto:attic@town.example\nDisallow: /x\n", None),
    ],
)
def test_odd_rules_are_read(body: str, number: int | None) -> None:
    assert line(body) == number


@pytest.mark.parametrize(
    "field", ["Useragent:", "User agent:", "User-agent ", "User-agents:", "\fuser-agent:"]
)
def test_typing_errors_in_a_name_are_read_and_the_strict_reading_stays_as_it_is(field: str) -> None:
    body = f"User-agent: *\nDisallow: /cellar\n\n{field}FooBot\nDisallow: /attic\n"
    assert (line(body), line(body, "/cellar")) == (5, None)
    strict = RobotsTxt.parse(body)
    assert strict.decide(f"{HOST}/cellar", FOOBOT).rule == (2, "/cellar")
    assert strict.allowed(f"{HOST}/attic", FOOBOT)


def test_a_line_of_the_field_alone_names_no_robot() -> None:
    body = "User-agent: *\nDisallow: /attic\nUser agent\nDisallow: /cellar\n"
    assert not RobotsTxt.parse(body, reading="rfc9309").allowed(f"{HOST}/attic", "agent")


# --- 2.2.1: groups and product tokens


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


# --- 2.2.2 and 2.2.3: which rule decides


@pytest.mark.parametrize(
    ("rules", "target", "is_allowed"),
    [
        ("Disallow: /a\nAllow: /a/b", "/a/b", True),
        ("Allow: /a/b\nDisallow: /a", "/a/c", False),
        ("Allow: /a\nDisallow: /a/b\nAllow: /a/b/c", "/a/b/c", True),
        ("Disallow: /a\nAllow: /a", "/a", True),
        ("Allow: /*\nDisallow: /?", "/?", True),  # both have two octets
        ("Allow: /*\nDisallow: /%3F", "/?", True),  # a reserved character is not its escape
        ("Allow: /*\nDisallow: /%3F", "/%3F", False),
        ("Allow: /\u00e9\nDisallow: /*%C3%A9x", "/%C3%A9xx", False),  # one character, six octets
        ("Allow: /page\nDisallow: /*.htm", "/page.htm", False),
        ("Allow: /*ab\nDisallow: /*a", "/xab", True),
        ("Allow: /%$\nDisallow: /*", "/%25", False),  # "%" without digits allows nothing
        ("Allow: /a%2*b\nDisallow: /a", "/a%2Fb", False),
        ("Allow: /$\nDisallow: /", "/", True),
        ("Allow: /$\nDisallow: /", "/page.htm", False),
        ("Disallow: /A", "/a", True),
        ("Disallow:\nAllow:", "/", True),
        ("Disallow: /\nAllow: /a?b=/c", "/a?b=/c&d", True),
        ("Disallow: /*2A\nAllow: /x", "/x*", False),  # as if it was sent as "%2A"
        ("Disallow: /\nAllow: /*2A", "/x*", False),
    ],
)
def test_the_rule_with_the_most_octets_decides(rules: str, target: str, is_allowed: bool) -> None:
    assert decide(f"User-agent: *\n{rules}\n", target).allowed is is_allowed


@pytest.mark.parametrize(
    ("path", "target", "is_match"),
    [
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz", True),
        ("/foo/bar/\u30c4", "/foo/bar/%E3%83%84", True),
        ("/foo/bar/%e3%83%84", "/foo/bar/%E3%83%84", True),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz", True),
        ("/foo/bar/baz", "/foo/bar/%62%61%7A", True),
        ("/a%2Fb", "/a/b", False),
        ("/a/b", "/a%2Fb", False),
        ("/a%2", "/a%2Fb", True),  # an escape that is cut off
        ("/a", "/x/../a", True),  # no spelling opens a door
        ("/x/../a", "/x/../a", True),
        ("/a|b", "/a%7Cb", True),
        ("/caf\u00e9".encode("latin-1"), "/caf%E9", True),
    ],
)
def test_octets_are_percent_encoded_before_they_are_compared(
    path: str | bytes, target: str, is_match: bool
) -> None:
    body = b"User-agent: *\nDisallow: " + (path if isinstance(path, bytes) else path.encode())
    assert decide(body, target).allowed is not is_match


@pytest.mark.parametrize("target", ["/robots.txt", "/%72obots.txt", "/x/../robots.txt"])
def test_robots_txt_is_always_allowed(target: str) -> None:
    decision = decide("User-agent: *\nDisallow: /\nAllow: /a\n", target)
    assert (decision.allowed, decision.reason) == (True, Reason.ROBOTS_TXT)
    assert not decide("User-agent: *\nDisallow: /\n", "/robots.txt?x").allowed


# --- 2.2.3: special characters


@pytest.mark.parametrize(
    ("path", "target", "is_match"),
    [
        *(("/*.pdf", "/a/b.pdf?c", True), ("/*.pdf$", "/a.pdf?c", False), ("/*.pdf$", "/a.pdf.pdf", True)),
        *(("/a*", "/a", True), ("/a*b*c", "/axbxc", True), ("/a*b*b", "/ab", False), ("*", "/", True)),
        ("/a*b*c", "/axcxb", False),
        *(("*.pdf", "/a.pdf", True), ("/**b", "/ab", True), ("/a$b", "/a$b", True), ("/a$b", "/a", False)),
        *(("/a$*", "/a$b", True), ("/a$*", "/a", False), ("/*ab$", "/aab", True), ("/ab*ab$", "/ab", False)),
        *(("/a%2Ab", "/a*b", True), ("/a%2Ab", "/axb", False), ("/a%24", "/a$", True)),
        *(("/a%24", "/a", False), ("/*%2A", "/b*", True), ("/*7C", "/|", True), ("/*7C", "/7B", False)),
        *(("/*c", "/a?c", True), ("/*c$", "/a?c", True), ("/*?c", "/a?b?c", True), ("/*a/b", "/c?a/b", True)),
    ],
)
def test_stars_and_a_final_dollar_are_special(path: str, target: str, is_match: bool) -> None:
    assert decide(f"User-agent: *\nDisallow: {path}\n", target).allowed is not is_match
    # The same if what is allowed must be compared too.
    assert decide(f"User-agent: *\nAllow: /\nDisallow: {path}\n", target).allowed is (
        not is_match or path == "*"
    )


@pytest.mark.parametrize(
    ("path", "target", "forbidden"),
    [
        *(("/%2", "/$a", "/"), ("/b/%2F*4", "/b/%2F$", "/"), ("/*4", "/$", "/")),
        *(("/a*2Abcd", "/a*bcd", "/a%2A"), ("/*24price", "/$price", "/%24")),
    ],
)
def test_a_part_of_an_escape_allows_nothing(path: str, target: str, forbidden: str) -> None:
    # The "$" of the target has another form, "%24".
    assert not decide(f"User-agent: *\nAllow: {path}\nDisallow: {forbidden}\n", target).allowed


@pytest.mark.parametrize(
    "rules",
    [
        *("Disallow: /a", "Disallow: /a\nDisallow: /*b*", "Disallow: /a$\nAllow: /c"),
        # What only the reading of RFC 9309 reads, also after blanks.
        *(f"Disallow: /a\n{blank}Dissallow: /c" for blank in ("", " ", "\t", "\v", "\f")),
        # A rule that begins like one of another record.
        *("Disallow: /*\n\nUseragent: *\nDisallow: /*c", "Disallow: /*\n\nUseragent: FooBot\nDisallow: /*c"),
        "Disallow: /*\n\nUseragent: FooBot\nDisallow: /*b\nAllow: /a",
    ],
)
@pytest.mark.parametrize(
    "target", ["/a", "/ab", "/c", "/%61/../b", "/%61$/../c", "/a$/../c", "/x/%62", "/a$b"]
)
def test_both_readings_together_are_those_alone(rules: str, target: str) -> None:
    body = f"User-agent: *\n{rules}\n"
    alone = [
        RobotsTxt.parse(body, reading=each).allowed(HOST + target, FOOBOT) for each in ("1994", "rfc9309")
    ]
    both = RobotsTxt.parse(body, reading="both")
    assert both.allowed(HOST + target, FOOBOT) is both.decide(HOST + target, FOOBOT).allowed is all(alone)


@pytest.mark.parametrize("kind", ["Disallow", "Allow"])
def test_many_stars_take_linear_time(kind: str) -> None:
    body = f"User-agent: *\nDisallow: /a\n{kind}: /{'a*' * 1_000}b\n{kind}: /{'*a' * 1_000}b$\n"
    robots = RobotsTxt.parse(body, reading="rfc9309")
    for _ in range(20):
        assert not robots.allowed(HOST + "/" + 2_000 * "a", FOOBOT)


@pytest.mark.parametrize(
    "line",
    [
        "Disallow " + 100_000 * "\f" + " x y",
        "Disallow x" + 50_000 * "\f " + "y",
        "User-agent " + 100_000 * "\f",
    ],
)
def test_odd_blanks_take_linear_time(line: str) -> None:
    assert decide(f"User-agent: *\n{line}\nDisallow: /attic\n").allowed is False


def test_many_rules_and_groups_are_read() -> None:
    rules = "".join(f"Disallow: /attic/{number}/*.pdf\nAllow: /attic/{number}/a\n" for number in range(5_000))
    assert line(f"User-agent: *\n{rules}", "/attic/4999/b.pdf") == 2 * 5_000
    groups = "".join(f"User-agent: b{number}\nUser-agent: *\n" for number in range(5_000))
    assert line(f"{groups}Disallow: /attic\n") == 10_001
    assert (
        line("".join(f"User-agent: *\nDisallow: /{number}\n" for number in range(5_000)), "/4999") == 10_000
    )


# --- both readings


def test_both_readings_must_allow_and_the_first_that_forbids_decides() -> None:
    body = "User-agent: *\nDisallow: /attic\nAllow: /attic/box\nDisallow: /*.pdf\n"
    robots = RobotsTxt.parse(body, reading="both")
    expected: dict[str, Any] = {"/attic/box": (2, ""), "/a.pdf": (4, "Rfc9309RobotParser"), "/attic": (2, "")}
    for target, (number, parser) in expected.items():
        decision = robots.decide(HOST + target, FOOBOT)
        assert decision.rule is not None
        assert (decision.allowed, decision.rule.line, decision.parser) == (False, number, parser)
        assert not robots.allowed(HOST + target, FOOBOT)
    assert robots.decide(f"{HOST}/b", FOOBOT).parser == ""
    assert robots.parsers == ("", "Rfc9309RobotParser")


def test_another_reading_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown reading 'protego'; choose from 1994, rfc9309, both"):
        RobotsTxt.parse(b"", reading="protego")
