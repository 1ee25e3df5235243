"""The reading of RFC 9309, as docs/rfc9309.md describes it; see test_groups.py and test_patterns.py, too."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_norobots import Rfc9309RobotParser
from scrapy_norobots.standard import RobotsTxt
from tests.helpers.judges.rfc9309 import differences
from tests.helpers.samples.later import FOOBOT, HOST, decide, line

# --- 2.1, 2.2: lines


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_lines_end_with_cr_lf_or_both(end: str) -> None:
    assert line(end.join(["User-agent: *", "", "Disallow: /attic", ""])) == 3


@pytest.mark.parametrize("character", ["\f", "\v", "\x85", "\u2028", "\x1c"])
def test_no_other_character_ends_a_line(character: str) -> None:
    body = f"User-agent: *\nDisallow: /cellar{character}Allow: /\nDisallow: /attic\n".encode()
    assert line(body) == 3


def test_fields_are_case_insensitive_with_blanks_and_comments() -> None:
    assert line("\tUSER-AGENT :\t* # all\n dIsAlLoW\t: /attic # no\n") == 2
    assert line("User-agent: *\n# Disallow: /attic\n") is None


def test_an_html_page_is_read_line_by_line() -> None:
    assert line("<!DOCTYPE html>\n<pre>\nUser-agent: *\nDisallow: /attic\n</pre>") == 4


@pytest.mark.parametrize("body", ["", "\ufeff", "Disallow: /attic\n", "<html>", "\0", "User-agent: *"])
def test_a_file_without_rules_in_groups_allows_everything(body: str) -> None:
    assert decide(body).allowed


@given(st.binary(max_size=200), st.text(max_size=20))
def test_any_bytes_are_read(body: bytes, robot: str) -> None:
    robots = RobotsTxt.parse(body, reading="rfc9309")
    assert robots.decide(f"{HOST}/%?*$", robot).allowed is robots.allowed(f"{HOST}/%?*$", robot)
    assert all(record.names for record in robots.records)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_other_encodings_are_read_as_in_the_strict_reading(encoding: str) -> None:
    assert line("User-agent: *\nDisallow: /attic\n".encode(encoding)) == 2


# --- what the RFC leaves open: as Google's open parser reads it, and never more lenient


@pytest.mark.parametrize(
    "rule",
    [
        *("Dissallow: /attic", "Dissalow: /attic", "Disalow: /attic", "Diasllow: /attic", "Disallaw: /attic"),
        *(
            "Disallow /attic",
            "disallow\t/attic",
            "Disallowed: /attic",
            "\fDisallow: /attic\v",
            "Disallow: attic",
        ),
        *(f"Disallow: {HOST}/attic", f"Disallow: {HOST.upper()}:80/attic"),
    ],
)
def test_typing_errors_that_forbid_are_read(rule: str) -> None:
    assert line(f"User-agent: *\n{rule}\n") == 2


@pytest.mark.parametrize(
    "rule",
    [
        *("Allowed: /attic", "Allow /attic", "Alow: /attic", "Allow: attic", f"Allow: {HOST}/attic"),
        "Allow: /attic one",
    ],
)
def test_typing_errors_allow_nothing(rule: str) -> None:
    assert line(f"User-agent: *\nDisallow: /\n{rule}\n") == 2


@pytest.mark.parametrize("rule", ["Disallow", "Disallow the robots", "Disalllow: /attic", "Noindex: /attic"])
def test_lines_that_only_resemble_a_rule_end_no_group(rule: str) -> None:
    assert line(f"User-agent: FooBot\n{rule}\nUser-agent: *\nDisallow: /attic\n") == 4


@pytest.mark.parametrize(
    "agent",
    [
        "Useragent: FooBot",
        "User agent: FooBot",
        "User-agent FooBot",
        "User-agents: FooBot",
        "\fuser-agent:FooBot",
    ],
)
def test_typing_errors_in_a_name_are_read_and_the_strict_reading_stays_as_it_is(agent: str) -> None:
    body = f"User-agent: *\nDisallow: /cellar\n\n{agent}\nDisallow: /attic\n"
    assert (line(body), line(body, "/cellar")) == (5, None)
    strict = RobotsTxt.parse(body)
    assert strict.decide(f"{HOST}/cellar", FOOBOT).rule == (2, "/cellar")
    assert strict.allowed(f"{HOST}/attic", FOOBOT)


@pytest.mark.parametrize("path", ["http://city.example/attic", "mailto:attic@town.example"])
def test_urls_of_other_sites_forbid_nothing(path: str) -> None:
    assert line(f"User-agent: *\nDisallow: {path}\nDisallow: /x\n") is None


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


def test_as_a_parser_of_scrapy() -> None:
    parser = Rfc9309RobotParser.from_crawler(
        None, b"User-agent: FooBot\nCrawl-delay: 5\nUser-agent: *\nDisallow: /*a\n"
    )
    assert not parser.allowed(f"{HOST}/attic".encode(), FOOBOT.encode())
    assert parser.crawl_delay(FOOBOT) == 5


@pytest.mark.parametrize("seed", range(4))
def test_a_second_implementation_has_the_same_answers(seed: int) -> None:
    """``python -m tests.helpers.judges.rfc9309`` asks 200,000 questions."""
    assert list(differences(seed, 1_500)) == []
