"""Which rule of RFC 9309 decides (2.2.2), and its special characters (2.2.3)."""

from __future__ import annotations

import pytest

from scrapy_norobots.standard import Reason, RobotsTxt
from tests.helpers.samples.later import FOOBOT, HOST, decide, line


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
        ("Allow: /$\nDisallow: /", "/", True),
        ("Allow: /$\nDisallow: /", "/page.htm", False),
        ("Disallow: /A", "/a", True),
        ("Disallow:\nAllow:", "/", True),
        ("Disallow: /\nAllow: /a?b=/c", "/a?b=/c&d", True),
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
        *(("/a*", "/a", True), ("/a*b*c", "/axbxc", True), ("/a*b*c", "/axcxb", False), ("*", "/", True)),
        *(("*.pdf", "/a.pdf", True), ("/**b", "/ab", True), ("/a$b", "/a$b", True), ("/a$b", "/a", False)),
        *(("/a$*", "/a$b", True), ("/a$*", "/a", False), ("/*ab$", "/aab", True), ("/ab*ab$", "/ab", False)),
        *(
            ("/a%2Ab", "/a*b", True),
            ("/a%2Ab", "/axb", False),
            ("/a%24", "/a$", True),
            ("/a%24", "/a", False),
        ),
        *(("/*%2A", "/b*", True), ("/*7C", "/|", True), ("/*7C", "/7B", False)),
    ],
)
def test_stars_and_a_final_dollar_are_special(path: str, target: str, is_match: bool) -> None:
    assert decide(f"User-agent: *\nDisallow: {path}\n", target).allowed is not is_match
    # The same if what is allowed must be compared too.
    assert decide(f"User-agent: *\nAllow: /\nDisallow: {path}\n", target).allowed is (
        not is_match or path == "*"
    )


@pytest.mark.parametrize(("path", "target"), [("/%2", "/$a"), ("/b/%2F*4", "/b/%2F$"), ("/*4", "/$")])
def test_a_part_of_an_escape_allows_nothing(path: str, target: str) -> None:
    # The "$" of the target has another form, "%24".
    assert not decide(f"User-agent: *\nAllow: {path}\nDisallow: /\n", target).allowed


@pytest.mark.parametrize(
    "rules", ["Disallow: /a", "Disallow: /a\nDisallow: /*b*", "Disallow: /a$\nAllow: /c"]
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
    rules = "".join(
        f"Disallow: /attic/{number}/*.pdf\nAllow: /attic/{number}/a\n" for number in range(20_000)
    )
    assert line(f"User-agent: *\n{rules}", "/attic/19999/b.pdf") == 2 * 20_000
    groups = "".join(f"User-agent: b{number}\nUser-agent: *\n" for number in range(20_000))
    assert line(f"{groups}Disallow: /attic\n") == 40_001
    assert (
        line("".join(f"User-agent: *\nDisallow: /{number}\n" for number in range(20_000)), "/19999") == 40_000
    )
