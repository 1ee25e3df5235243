"""Test the parser against each clause of docs/standard.md, and the page against these tests."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

import pytest

from scrapy_norobots.standard import KINDS, Origin, Reason, RobotsMeta, RobotsTxt
from tests.helpers.running.processes import ROOT
from tests.helpers.samples.variants import variants

DOCS = ROOT / "docs" / "standard.md"
HOST = "http://garden.example"
ALL = "User-agent: *\n"

TESTED: dict[str, list[str]] = {}

Test = TypeVar("Test", bound=Callable[..., None])


def clause(*numbers: str) -> Callable[[Test], Test]:
    """Register a test under the clauses that it tests."""

    def enter(test: Test) -> Test:
        for number in numbers:
            TESTED.setdefault(number, []).append(test.__name__)
        return test

    return enter


def forbidden(body: bytes | str, targets: str, robot: str = "Tamarin") -> str:
    """Return which of the targets, separated by blanks, a file forbids."""
    robots = RobotsTxt.parse(body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body)
    return " ".join(target for target in targets.split(" ") if not robots.allowed(HOST + target, robot))


def records(body: bytes | str) -> list[tuple[list[str], list[str]]]:
    """Return the names and the values of the rules of each record."""
    robots = RobotsTxt.parse(body.encode() if isinstance(body, str) else body)
    return [(list(record.names), [rule.value for rule in record.rules]) for record in robots.records]


def kinds(body: bytes | str) -> list[str]:
    """Return the kinds of a file's findings."""
    robots = RobotsTxt.parse(body.encode() if isinstance(body, str) else body)
    return [finding.kind for finding in robots.findings]


# The examples of the sources with other names: file, robot, and what is forbidden.
EXAMPLES = {
    # The standard's three.
    "default": (
        (
            "# robots.txt of http://garden.example/\n\nUser-agent: *\nDisallow: /maze/hedge/ # no way out\n"
            "Disallow: /heap/ # compost soon\nDisallow: /shed.html\n"
        ),
        {
            "Tamarin": "/maze/hedge/ /maze/hedge/a /heap/ /heap/x.html /shed.html /shed.html5",
            "Potto/2.0": "/maze/hedge/ /maze/hedge/a /heap/ /heap/x.html /shed.html /shed.html5",
        },
        "/ /maze/ /maze/hedge /heap /heap.html /shed /shed/ /a/heap/",
    ),
    "one exception": (
        (
            "# robots.txt of http://garden.example/\n\nUser-agent: *\nDisallow: /maze/hedge/ # no way out\n\n"
            "# This one has a map.\nUser-agent: mapmonkey\nDisallow:\n"
        ),
        {"Tamarin": "/maze/hedge/a", "MapMonkey/1.0": ""},
        "/ /maze/",
    ),
    "nobody": (
        "# closed\nUser-agent: *\nDisallow: /\n",
        {"Tamarin": "/ /a /robots /robots.txt.old", "Potto": "/ /a"},
        "/robots.txt",
    ),
    # The FAQ's.
    "welcome, closed, others": (
        (
            "# robots.txt of http://garden.example/\n# letters to gardener@garden.example\n\n"
            "User-agent: tamarin\n\nUser-agent: potto\nDisallow: /\n\n"
            "User-agent: *\nDisallow: /heap\nDisallow: /book\n"
        ),
        {"Tamarin": "", "Potto": "/ /heap /book /x", "Indri": "/heap /heaps/a /book /bookcase.html"},
        "/robots.txt",
    ),
    "two lines": ("User-agent: *\nDisallow: /\n", {"Tamarin": "/ /a/b?c"}, "/robots.txt"),
    # The article's three, with one name and one path per line.
    "default first": (
        "User-agent: *\nDisallow: /\n\nUser-agent: Tamarin\nDisallow: /cellar/\nDisallow: /heap/\n",
        {"Golden_Tamarin_(Leo)/1.0 libfetch/3.1": "/cellar/ /heap/a", "Potto": "/ /cellar/ /heap/a /x"},
        "/robots.txt",
    ),
    "no rules, and two at once": (
        "User-agent: Gardener Jo\n\n\nUser-agent: *\nUser-agent: Leo\nDisallow: /h\n",
        {"Gardener Jo": "", "Leo": "/heap/ /hut/a /h.txt /h", "Potto": "/heap/ /hut/a /h.txt /h"},
        "/ /H /a/h",
    ),
    "nothing after something": (
        (
            "# For all that swing from tree to tree.\nUser-agent: *\n# keep off\n"
            "Disallow: /monkeys/not/here/ # nor below\nDisallow: # nothing\nDisallow: #nothing either\n"
            "# Such a nice file!\n"
        ),
        {"Tamarin": "/monkeys/not/here/ /monkeys/not/here/at/all/ /monkeys/not/here/no/not/you.html"},
        "/monkeys/not/ /monkeys/not/her /monkeys/not/here /",
    ),
}


@clause("F1", "F2", "F3", "F4", "F5", "R1", "R3", "A2", "A3", "A4", "U1", "U2", "U7")
@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_of_the_sources_are_read_as_stated(example: str) -> None:
    text, expected, allowed = EXAMPLES[example]
    for variant, body in variants(text):
        for robot, targets in expected.items():
            assert forbidden(body, targets, robot) == targets, (variant, robot)
            if targets:
                assert forbidden(body, allowed, robot) == "", (variant, robot)


# --- F: the file


@clause("F1")
@pytest.mark.parametrize(
    ("body", "rule"),
    [
        pytest.param(b"User-agent: *\nDisallow: /caf\xe9", "/caf%E9", id="latin-1"),
        pytest.param(b"User-agent: *\nDisallow: /caf\xc3\xa9", "/caf%C3%A9", id="utf-8"),
        pytest.param(b"\xef\xbb\xbfUser-agent: *\nDisallow: /x", "/x", id="byte-order-mark"),
        pytest.param(b"# \xff\xfe\nUser-agent: *\nDisallow: /x", "/x", id="bad-byte-elsewhere"),
        pytest.param(b"User-agent: *\n\xe9\nDisallow: /x", "/x", id="bad-byte-between"),
        pytest.param(b"User-agent: *\nDisallow: /\xf0\x9f\x98", "/%F0%9F%98", id="cut-utf-8"),
        pytest.param(b"User-agent: *\nDisallow: /\xed\xa0\x80", "/%ED%A0%80", id="surrogate-in-utf-8"),
        pytest.param(b"User-agent: *\nDisallow: /\xc0\xaf", "/%C0%AF", id="overlong"),
        pytest.param(b"User-agent: *\nDisallow: /a\x00b", "/a%00b", id="nul"),
        pytest.param(b"User-agent: *\nDisallow: /\xef\xbb\xbfx", "/%EF%BB%BFx", id="mark-inside"),
        pytest.param("\ufeffUser-agent: *\nDisallow: /é".encode("utf-16-le"), "/%C3%A9", id="utf-16-le"),
        pytest.param("\ufeffUser-agent: *\nDisallow: /é".encode("utf-16-be"), "/%C3%A9", id="utf-16-be"),
        pytest.param("\ufeffUser-agent: *\nDisallow: /😀".encode("utf-16-le"), "/%F0%9F%98%80", id="pair"),
        pytest.param(
            "\ufeffUser-agent: *\nDisallow: /x\n".encode("utf-16-le")[:-1], "/x", id="lost-last-byte"
        ),
        pytest.param(b"\xef\xbb\xbf\xef\xbb\xbfUser-agent: *\nDisallow: /x", "/x", id="two-marks"),
        pytest.param(
            "\ufeff\ufeffUser-agent: *\nDisallow: /x".encode("utf-16-be"), "/x", id="two-utf-16-marks"
        ),
        pytest.param("User-agent: *\nDisallow: /é".encode("utf-16-le"), "/%C3%A9", id="unmarked-utf-16-le"),
        pytest.param("User-agent: *\nDisallow: /é".encode("utf-16-be"), "/%C3%A9", id="unmarked-utf-16-be"),
        pytest.param("\ufeffUser-agent: *\nDisallow: /é".encode("utf-32-le"), "/%C3%A9", id="utf-32-le"),
        pytest.param("\ufeffUser-agent: *\nDisallow: /é".encode("utf-32-be"), "/%C3%A9", id="utf-32-be"),
        pytest.param("User-agent: *\nDisallow: /é".encode("utf-32-le"), "/%C3%A9", id="unmarked-utf-32-le"),
        pytest.param("User-agent: *\nDisallow: /é".encode("utf-32-be"), "/%C3%A9", id="unmarked-utf-32-be"),
    ],
)
def test_any_bytes_are_read(body: bytes, rule: str) -> None:
    assert forbidden(body, rule + "z") == rule + "z"
    assert forbidden(body, f"{rule[:-1]} /y /%FFz") == ""


@clause("F1", "F8")
@pytest.mark.parametrize("marks", [0, 1, 2])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_an_unusual_encoding_is_a_finding(encoding: str, marks: int) -> None:
    if encoding == "utf-8":
        expected = [[], ["byte-order-mark"], ["byte-order-marks"]][marks]
    else:
        expected = [encoding[:6]] if marks else ["no-mark"]
    assert kinds(("\ufeff" * marks + ALL + "Disallow: /x\n").encode(encoding)) == expected


@clause("F1", "F8")
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_a_line_in_another_encoding_than_the_start_is_a_finding(encoding: str) -> None:
    body = (ALL + "Disallow: /x\n").encode() + "Disallow: /y\n".encode(encoding)
    assert forbidden(body, "/x /y") == "/x"
    assert "nul" in kinds(body)
    assert kinds(b"Dis\0allow: /y")[0] == "nul"
    assert "nul" not in kinds((ALL + "Disallow: /x\0\n# \0\n").encode())


@clause("F1")
@pytest.mark.parametrize("start", [b"", b"U\0\0s", b"\0\0U\0", b"\0\0\0\0", b"# x\0\n\0", b"\0#"])
def test_other_nul_bytes_do_not_show_an_encoding(start: bytes) -> None:
    assert forbidden(start + b"\nUser-agent: *\nDisallow: /x", "/x") == "/x"


@clause("F1")
def test_text_is_taken_as_decoded() -> None:
    robots = RobotsTxt.parse("\ufeffUser-agent: *\nDisallow: /é")
    assert not robots.allowed("/%C3%A9", "Tamarin")
    assert robots.findings == RobotsTxt.parse("User-agent: *\nDisallow: /é").findings


@clause("F2", "F5")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("User-agent: a\rDisallow: /x\r\rDisallow: /y\r", [(["a"], ["/x"])], id="CR"),
        pytest.param("User-agent: a\r\nDisallow: /x\r\n\r\nDisallow: /y", [(["a"], ["/x"])], id="CRLF"),
        pytest.param("User-agent: a\r\nDisallow: /x\r\nDisallow: /y", [(["a"], ["/x", "/y"])], id="no blank"),
        pytest.param("User-agent: a\r\r\nDisallow: /x", [(["a"], [])], id="CR CRLF is two"),
        pytest.param("User-agent: a\n\rDisallow: /x", [(["a"], [])], id="LF CR is two"),
        pytest.param("User-agent: a\rDisallow: /x\nDisallow: /y", [(["a"], ["/x", "/y"])], id="CR and LF"),
        pytest.param("User-agent: a\nDisallow: /x", [(["a"], ["/x"])], id="no end at the end"),
    ],
)
def test_lines_end_at_cr_lf_and_crlf(text: str, expected: object) -> None:
    assert records(text) == expected


@clause("F2", "F5")
@pytest.mark.parametrize(
    "char", list("\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), ids=lambda char: f"U+{ord(char):04X}"
)
def test_other_characters_do_not_end_a_line(char: str) -> None:
    assert records(f"User-agent: *\nDisallow: /a{char}Disallow: /b") == [(["*"], [f"/a{char}Disallow: /b"])]
    assert records(f"User-agent: *\n{char}\nDisallow: /b") == [(["*"], ["/b"])], "and are no blank line"
    assert kinds(f"User-agent: *\nDisallow: /a{char}b")[0] == "odd-line-break"


@clause("F3")
@pytest.mark.parametrize(
    ("line", "rules"),
    [
        pytest.param("Disallow: /a # not this", ["/a"], id="blank before"),
        pytest.param("Disallow: /a \t \t# not this", ["/a"], id="blanks before"),
        pytest.param("Disallow: /a#b", ["/a"], id="inside a word"),
        pytest.param("Disallow: /a # b # c", ["/a"], id="two"),
        pytest.param("Disallow: # /a", [""], id="nothing before"),
        pytest.param("Disallow:#/a", [""], id="at once"),
        pytest.param("Disallow: /a%23b", ["/a%23b"], id="escaped is none"),
        pytest.param("Disallow # : /a", [], id="before the colon"),
        pytest.param("Dis#allow: /a", [], id="inside the field"),
        pytest.param("#Disallow: /a", [], id="commented out"),
        pytest.param("Disallow: /a // b", ["/a // b"], id="slashes are none"),
        pytest.param("Disallow: /a ; b", ["/a ; b"], id="nor a semicolon"),
    ],
)
def test_comments_are_removed(line: str, rules: list[str]) -> None:
    assert records(f"User-agent: x # y\n{line}\n") == [(["x"], rules)]


@clause("F4")
@pytest.mark.parametrize("comment", ["#", "# x", "   # x", "\t#", " \t #:", "# Disallow: /b", "#\x0c"])
def test_comment_lines_do_not_end_a_record(comment: str) -> None:
    for variant, body in variants(
        f"{comment}\nUser-agent: a\n{comment}\nUser-agent: b\n{comment}\nDisallow: /x\n{comment}\nDisallow: /"
    ):
        assert records(body) == [(["a", "b"], ["/x", "/"])], variant
        assert not set(kinds(body)) & {"no-colon", "unknown-field", "stray-disallow"}, variant


@clause("F5")
@pytest.mark.parametrize("blank", ["", " ", "\t", " \t \t", "\n", " \n\t\n"])
def test_blank_lines_end_a_record(blank: str) -> None:
    for variant, body in variants(f"User-agent: a\nDisallow: /x\n{blank}\nDisallow: /y\nUser-agent: b\n"):
        assert records(body) == [(["a"], ["/x"]), (["b"], [])], variant


@clause("F5", "F2")
@pytest.mark.parametrize("not_blank", ["\x0c", "\x0b", "\xa0", "\u3000", "\x00", "\ufeff", "X", ":", "\x1f"])
def test_lines_with_other_text_do_not_end_a_record(not_blank: str) -> None:
    assert records(f"User-agent: a\n{not_blank}\nDisallow: /x\n{not_blank}\nDisallow: /y") == [
        (["a"], ["/x", "/y"])
    ]


@clause("F6")
@pytest.mark.parametrize(
    ("agent", "disallow"),
    [
        ("User-agent: a b", "Disallow: /x"),
        ("user-agent: a b", "disallow: /x"),
        ("USER-AGENT: a b", "DISALLOW: /x"),
        ("uSeR-aGeNt: a b", "dIsAlLoW: /x"),
        ("User-agent:a b", "Disallow:/x"),
        ("User-agent : a b", "Disallow : /x"),
        ("User-agent\t :\t a b", "Disallow \t:\t /x"),
        ("  User-agent: a b", "\t Disallow: /x"),
        ("User-agent: a b \t", "Disallow: /x\t "),
        (" \tUser-agent \t: \ta b\t ", "\t Disallow \t: \t/x \t"),
    ],
)
def test_field_names_ignore_case_and_blanks(agent: str, disallow: str) -> None:
    for variant, body in variants(f"{agent}\n{disallow}\n"):
        assert records(body) == [(["a b"], ["/x"])], variant


@clause("F6")
@pytest.mark.parametrize(
    "line",
    [
        "Di\u017fallow: /x",
        "Disallow\xa0: /x",
        "\xa0Disallow: /x",
        "\x0cDisallow: /x",
        "\ufeffDisallow: /x",
        "Disallow\uff1a /x",
        "Disallow /x",
        "Disallow= /x",
        "Dis allow: /x",
    ],
    ids=ascii,
)
def test_other_lines_are_not_fields(line: str) -> None:
    assert records(f"User-agent: a\n{line}") == [(["a"], [])]


@clause("F6")
def test_only_spaces_and_tabs_are_dropped_around_a_value() -> None:
    assert records("User-agent: a\nDisallow: \xa0/x\x0c") == [(["a"], ["\xa0/x\x0c"])]
    assert records("User-agent: a\nDisallow: : /x") == [(["a"], [": /x"])]


@clause("F7")
@pytest.mark.parametrize(
    "line",
    [
        "Allow: /",
        "Crawl-delay: 5",
        "Sitemap: http://garden.example/map.xml",
        "Dissallow: /b",
        "User agent: b",
        "Useragent: b",
        "Whatever: x",
        "Disallow-not: /b",
        "X-Disallow: /b",
        "X User-agent: b",
        ": /b",
        "::",
    ],
)
def test_unknown_fields_have_no_effect(line: str) -> None:
    body = f"{line}\nUser-agent: a\n{line}\nUser-agent: b\n{line}\nDisallow: /x\n{line}\nDisallow: /y\n{line}"
    assert records(body) == [(["a", "b"], ["/x", "/y"])]
    assert forbidden(body, "/x /y /b /", "a") == "/x /y"
    assert records(f"User-agent: a\n\n{line}\nDisallow: /x") == [(["a"], [])]


@clause("F8")
@pytest.mark.parametrize("line", ["Disallow /x", "hello", "<html>", "*", "/x", "Disallow", "a # b: c"])
def test_a_line_without_a_colon_is_ignored(line: str) -> None:
    body = f"User-agent: a\n{line}\nDisallow: /y"
    assert records(body) == [(["a"], ["/y"])]
    assert kinds(body) == ["no-colon"]


PAGE = "{}\n<p>User-agent: *</p>\nUser-agent: *\nDisallow: /\n<a href='x:y'>z</a>\nno\nno: no\n"


@clause("F8", "F9")
@pytest.mark.parametrize(
    "start",
    [
        "<html>",
        "<HTML lang='en'>",
        "<head>",
        "<body class=x>",
        "<!doctype html>",
        "<!DOCTYPE HTML PUBLIC '-//W3C//DTD HTML 4.01//EN'>",
        "<!DOCTYPE\n\thtml>",
        " \n\t<html>",
        "<?xml version='1.0'?>\n<!DOCTYPE html>",
        "<!-- a page -->\n<!-- of ours --> <html>",
        "<!----><?x?><!-- > -- --><html>",
    ],
)
def test_an_html_page_has_no_records(start: str) -> None:
    for variant, body in variants(PAGE.format(start)):
        assert records(body) == [], variant
        assert forbidden(body, "/") == "", variant
        assert [kind for kind in kinds(body) if KINDS[kind].clause != "F1"] == ["html-page"], variant


@clause("F8")
@pytest.mark.parametrize(
    "start",
    [
        "x <html>",
        "# <html>",
        "<htmlx>",
        "<header>",
        "<head-line>",
        "<html\u00ff>",
        "<!doctypehtml>",
        "< html>",
        "<!doctype xml>",
        "<!-- a comment -->",
        "<!-- never closed <html>",
        "<?php never closed <html>",
        "\n\n<!-- never closed <html>",
        "\n<? never closed <html>",
        "<p>",
        "html",
        "\x00<html>",
    ],
)
def test_a_file_that_is_not_clearly_html_is_read(start: str) -> None:
    body = PAGE.format(start)
    assert records(body) == [(["*"], ["/"])]
    assert "html-page" not in kinds(body)


@clause("F9", "A4")
@pytest.mark.parametrize("text", ["", "\n", "# x", "Disallow: /", "Allow: /\nx", " ", "\n\n\n", "Sorry!\n"])
def test_a_file_without_records_allows_everything(text: str) -> None:
    for variant, body in variants(text):
        assert records(body) == [], variant
        decision = RobotsTxt.parse(body).decide(HOST + "/", "Tamarin")
        assert (decision.allowed, decision.reason, decision.record) == (True, Reason.NO_RECORD, None), variant


# --- R: records


@clause("R2")
@pytest.mark.parametrize("rule", ["/x", ""])
@pytest.mark.parametrize("between", ["", "# x\n", "Allow: /\n", "hm\n", "Crawl-delay: 1\n# y\n"])
def test_a_user_agent_line_after_a_rule_starts_a_record(between: str, rule: str) -> None:
    body = f"User-agent: a\nDisallow: {rule}\n{between}User-agent: b\nUser-agent: c\nDisallow: /y\n"
    assert records(body) == [(["a"], [rule]), (["b", "c"], ["/y"])]
    assert kinds(body).count("no-blank-line") == 1
    assert "no-blank-line" not in kinds(body.replace("\nUser-agent: b", "\n\nUser-agent: b"))


@clause("R3")
@pytest.mark.parametrize("end", ["\n", "\nAllow: /\n\n", "\nDisallow:\n", "\n# x\n\nDisallow: /y\n"])
def test_a_record_without_rules_applies_to_its_robots(end: str) -> None:
    body = f"User-agent: tamarin{end}\nUser-agent: *\nDisallow: /\n"
    assert forbidden(body, "/ /y") == ""
    assert forbidden(body, "/ /y", "Potto") == "/ /y"
    decision = RobotsTxt.parse(body.encode()).decide(HOST + "/", "Tamarin")
    assert decision.reason is Reason.NO_RULE_MATCHES
    assert decision.record is not None
    assert decision.record.names == ("tamarin",)
    assert ("no-disallow" in kinds(body)) is (end != "\nDisallow:\n")


@clause("R4")
@pytest.mark.parametrize(
    ("body", "lines"),
    [
        pytest.param("Disallow: /\nUser-agent: *\n", [1], id="before all"),
        pytest.param("User-agent: *\n\nDisallow: /\n", [3], id="after a blank line"),
        pytest.param("User-agent: *\n \t\nDisallow: /\nDisallow: /x\n", [3, 4], id="after blanks"),
        pytest.param("User-agent: *\nDisallow: /y\n\n\nDisallow: /\n", [5], id="after a record"),
        pytest.param("User-agent: *\n\nUser-agnet: x\nDisallow: /\n", [4], id="after a slip"),
        pytest.param("Disallow:\nUser-agent: *\n", [1], id="empty"),
    ],
)
def test_a_rule_outside_a_record_is_ignored_with_a_finding(body: str, lines: list[int]) -> None:
    for variant, data in variants(body):
        robots = RobotsTxt.parse(data)
        assert robots.allowed(HOST + "/", "Tamarin"), variant
        strays = [finding for finding in robots.findings if finding.kind == "stray-disallow"]
        assert [finding.line for finding in strays] == lines, variant
        assert all(finding.severity.value == "error" for finding in strays)


@clause("R5")
def test_rules_of_several_default_records_apply_together() -> None:
    body = (
        "User-agent: *\nUser-agent: *\nDisallow: /x\n\nUser-agent: tamarin\nDisallow: /t\n\nUser-agent: *\n\n"
        "User-agent: potto\nUser-agent: *\nDisallow: /y\n"
    )
    assert forbidden(body, "/x /t /y /z", "Indri") == "/x /y"
    assert forbidden(body, "/x /t /y /z", "Tamarin") == "/t"
    seconds = [finding for finding in RobotsTxt.parse(body).findings if finding.kind == "second-default"]
    assert [finding.line for finding in seconds] == [8, 11]
    assert all("at line 1 " in finding.message for finding in seconds)
    decision = RobotsTxt.parse(body.encode()).decide(HOST + "/y", "Indri")
    assert decision.rule == (12, "/y")
    assert decision.record is not None
    assert decision.record.line == 1
    assert decision.record.names == ("*", "*", "*", "potto", "*")
    assert decision.record.rules == ((3, "/x"), (12, "/y"))


@clause("R6")
@pytest.mark.parametrize("names", ["User-agent: *\nUser-agent: leo", "User-agent: leo\nUser-agent: *"])
def test_a_record_may_have_star_and_names(names: str) -> None:
    body = f"{names}\nDisallow: /x\n\nUser-agent: *\nDisallow: /y\n"
    assert forbidden(body, "/x /y /z", "Leo") == "/x"
    assert forbidden(body, "/x /y /z", "Tamarin") == "/x /y"
    assert RobotsTxt.parse(body).records[0].is_default


# --- A: records for a robot


@clause("A1")
@pytest.mark.parametrize(
    ("robot", "name"),
    [
        ("", ""),
        ("  Golden Tamarin\t", "Golden Tamarin"),
        ("Tamarin_(Leo)/1.0 libfetch/3.1", "Tamarin_(Leo)"),
        ("/1.2", ""),
        ("Tamarin\t1.2.3", "Tamarin"),
        ("Tamarin \t (x)", "Tamarin"),
        ("Tamarin V1.2b [tamarin.example]", "Tamarin"),
        ("Tamarin 2", "Tamarin 2"),
        ("Tamarin 1.2 beta", "Tamarin 1.2 beta"),
        ("Tamarin 1.", "Tamarin 1."),
        ("Tamarin1.2", "Tamarin1.2"),
        ("1.2", "1.2"),
        ("Tamarin\xa01.2", "Tamarin\xa01.2"),
        ("Tamarin \u0661.2", "Tamarin \u0661.2"),
        ("(Tamarin)", "(Tamarin)"),
        ("Mozilla/5.0 ( compatible;  Golden Tamarin ; x)", "Golden Tamarin"),
        ("mozilla/4.0 (COMPATIBLE; Tamarin 1.2", "Tamarin"),
        ("Mozilla/5.0 (X11; Linux) Gecko/2010 Firefox/1.0", "Mozilla"),
        ("Mozilla/5.0 (incompatible; Tamarin/1.2)", "Mozilla"),
        ("Mozilla/5.0 (compatible; ; Tamarin/1.2)", "Mozilla"),
        ("Mozilla/5.0 (compatible; ) (compatible; Tamarin/1.2)", "Tamarin"),
        ("NotMozilla/5.0 (compatible; Tamarin/1.2)", "NotMozilla"),
        (
            "Mozilla/5.0 AppleWebKit/537.36 (KHTML; compatible; Tamarin/1.2; potto) Chrome/1 Potto/3",
            "Tamarin",
        ),
        (b"\xe9/1", "\udce9"),
    ],
)
def test_the_name_in_a_header(robot: str | bytes, name: str) -> None:
    assert RobotsTxt.parse("").decide(HOST, robot).robot == name


@clause("A1", "A4")
def test_the_robot_star_gets_the_default_record() -> None:
    body = (
        "User-agent: leo\nDisallow: /leo\n\nUser-agent: foo*\nDisallow: /foo\n\nUser-agent: *\nDisallow: /x\n"
    )
    assert forbidden(body, "/leo /foo /x", "*") == "/x"
    assert forbidden("User-agent: leo\nDisallow: /", "/", "*") == ""
    assert forbidden("User-agent: */1.0\nDisallow: /", "/", "*") == ""


@clause("A2", "A5")
@pytest.mark.parametrize(
    ("value", "robot", "named"),
    [
        ("Tamarin", "Tamarin", True),
        ("TAMARIN", "tamarin/1.0", True),
        ("tamarin", "Golden_Tamarin_(Leo)/1.0 libfetch/3.1", True),
        ("(leo)", "Golden_Tamarin_(Leo)/1.0 libfetch/3.1", True),
        ("libfetch", "Golden_Tamarin_(Leo)/1.0 libfetch/3.1", False),
        ("golden_tamarin", "Tamarin", False),
        ("tamarin2", "Tamarin", False),
        ("Tamarin/9.9", "Tamarin/1.0", True),
        ("Tamarin 9.9", "Tamarin/1.0", True),
        ("Tamarin/9.9 (with a remark)", "Tamarin", True),
        ("Mozilla/5.0 (compatible; Tamarin/9.9)", "Tamarin", True),
        ("Golden Tamarin", "Golden Tamarin/1.0", True),
        ("Golden  Tamarin", "Golden Tamarin/1.0", False),
        ("ΩΜΕΓΑ", "ωμεγα", True),
        ("t", "Potto", True),
        ("foo*", "foo*bot", True),
        ("1.0", "Potto/1.0", False),
    ],
)
def test_a_value_names_robots_by_a_part_of_their_name(value: str, robot: str, named: bool) -> None:
    assert forbidden(f"User-agent: {value}\nDisallow: /x\n", "/x", robot) == ("/x" if named else "")


@clause("A3")
def test_only_the_first_record_that_names_the_robot_applies() -> None:
    body = (
        "User-agent: *\nDisallow: /all\n\nUser-agent: tamarin\nDisallow: /short\n\n"
        "User-agent: GoldenTamarin\nDisallow: /exact\n\nUser-agent: tamarin\nDisallow: /again\n"
    )
    assert forbidden(body, "/all /short /exact /again", "GoldenTamarin") == "/short"
    taken = [finding.line for finding in RobotsTxt.parse(body).findings if finding.kind == "name-taken"]
    assert taken == [7, 10]


@clause("A3")
def test_records_apply_in_file_order_by_any_of_their_names() -> None:
    body = "User-agent: potto\nUser-agent: tam\nDisallow: /1\n\nUser-agent: tamarin\nDisallow: /2\n"
    assert forbidden(body, "/1 /2") == "/1"
    assert forbidden(body, "/1 /2", "Marin") == ""


@clause("A5")
@pytest.mark.parametrize("value", ["", " \t ", "# potto", "/1.0", "/"])
def test_an_empty_value_names_no_robot(value: str) -> None:
    body = f"User-agent:{value}\nDisallow: /x\n\nUser-agent: *\nDisallow: /y\n"
    for robot in ("Tamarin", "", "Potto/1.0", "*"):
        assert forbidden(body, "/x /y", robot) == "/y"
    assert kinds(body) == ["empty-name"]


@clause("A5")
@pytest.mark.parametrize(
    "value", ["Tam*", "*in", "**", "* *", "*Tamarin*", "*.*", "Tam*/1.0", "T*n 1.0", "*/1.0", "*\x0c"]
)
def test_a_star_within_a_name_is_literal(value: str) -> None:
    body = f"User-agent: {value}\nDisallow: /x\n"
    assert forbidden(body, "/x") == ""
    assert RobotsTxt.parse(body).decide(HOST + "/x", "Tamarin").reason is Reason.NO_RECORD
    assert "star-in-name" in kinds(body)


@clause("A5")
@pytest.mark.parametrize("value", ["Tamarin Potto", "Tamarin, Potto", "Potto\tTamarin", "* Tamarin"])
def test_several_names_in_a_line_are_one_name(value: str) -> None:
    body = f"User-agent: {value}\nDisallow: /x\n"
    assert forbidden(body, "/x", "Tamarin") == ""
    assert forbidden(body, "/x", f"Big {value}") == "/x"
    assert "several-names" in kinds(body)
    assert not RobotsTxt.parse(body, multivalue=True).allowed(HOST + "/x", "Tamarin")


# --- U: URLs


@clause("U1")
@pytest.mark.parametrize(
    ("rule", "yes", "no"),
    [
        pytest.param(
            "/nest",
            "/nest /nest/ /nest.html /nest/egg /nestling /nest?e=1 /nest#e",
            "/Nest /a/nest /nes",
            id="word",
        ),
        pytest.param(
            "/nest/", "/nest/ /nest/egg /nest/?e=1", "/nest /nest.html /nest?e=1 //nest/", id="folder"
        ),
        pytest.param("/", "/ /a /a/b /?q //", "/robots.txt", id="all"),
        pytest.param("/nest?e=", "/nest?e= /nest?e=1", "/nest /nest?f=1 /nest/?e=1 /nest?E=1", id="query"),
        pytest.param("/nest.html", "/nest.html /nest.html?x", "/nestxhtml /nest.htm", id="dot is a dot"),
        pytest.param("/a+b(c)[", "/a+b(c)[", "/aab(c)[ /ab", id="no regular expression"),
        pytest.param("//nest", "//nest //nest/a", "/nest", id="two slashes"),
        pytest.param("//garden.example/a", "//garden.example/a", "/a", id="two slashes are no whole URL"),
        pytest.param("/nest%23egg", "/nest%23egg", "/nest#egg /nest?q#egg", id="fragment"),
        pytest.param("/Nest/ÉGG", "/Nest/%C3%89GG", "/nest/%C3%89GG /Nest/%C3%A9GG", id="case"),
    ],
)
def test_a_rule_is_a_prefix(rule: str, yes: str, no: str) -> None:
    body = f"{ALL}Disallow: {rule}\n"
    assert forbidden(body, yes) == yes
    assert forbidden(body, no) == ""


@clause("U1")
@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("http://garden.example", False),
        ("http://garden.example?q", False),
        ("http://garden.example#f", False),
        ("http://garden.example/#/nest", False),
        ("/", False),
        ("/#f", False),
        ("//garden.example", False),
        ("  http://garden.example/ \n", False),
        ("http://garden.example/robots.txt#f", True),
    ],
)
def test_an_empty_path_means_the_root(url: str, allowed: bool) -> None:
    assert RobotsTxt.parse(f"{ALL}Disallow: /\n").allowed(url, "Tamarin") is allowed


@clause("U1")
def test_the_order_of_rules_does_not_matter() -> None:
    rules = ["/b/", "/a", "/a/b", "/c", "/b", "/a-b", "/aa", "/", "//"]
    for number in range(1, len(rules)):
        for some in (rules[:number], rules[number - 1 :: -1]):
            body = ALL + "".join(f"Disallow: {rule}\n" for rule in some)
            for target in ("/", "/a", "/a/b/c", "/a-", "/b", "/bb", "/b/b", "/c", "/d", "/~", "/ab", "//x"):
                expected = any(target.startswith(rule) for rule in some)
                assert bool(forbidden(body, target)) is expected, (some, target)


@clause("U1")
def test_of_equal_rules_the_first_is_named() -> None:
    robots = RobotsTxt.parse(f"{ALL}Disallow: /x\nDisallow: /nest\nDisallow: nest\nDisallow: /%6Eest\n")
    assert robots.decide("/nest/egg", "Tamarin").rule == (3, "/nest")


@clause("U2")
@pytest.mark.parametrize("rules", [["", "/x"], ["/x", ""], ["", "/x", ""], [" ", "/x", "# y"]])
def test_an_empty_rule_lifts_no_restriction(rules: list[str]) -> None:
    body = ALL + "".join(f"Disallow: {rule}\n" for rule in rules)
    assert forbidden(body, "/x /x/y / /y") == "/x /x/y"


@clause("U3")
@pytest.mark.parametrize(
    ("rule", "yes", "no", "found"),
    [
        ("/*.gif$", "/*.gif$ /*.gif$x", "/a.gif /.gif /*.gif /%2A.gif%24", True),
        ("/*", "/* /*a", "/ /a", True),
        ("*", "/* /*a", "/ /a", True),
        ("/a$", "/a$ /a$b", "/a", True),
        ("/a$b", "/a$b", "/a", False),
        ("/?", "/? /?q", "/ /a /a?", False),
        ("/a?b", "/a?b", "/a /ab /aab", False),
    ],
)
def test_star_and_dollar_are_literal(rule: str, yes: str, no: str, found: bool) -> None:
    body = f"{ALL}Disallow: {rule}\n"
    assert forbidden(body, yes) == yes
    assert forbidden(body, no) == ""
    assert ("wildcard" in kinds(body)) is found


@clause("U4")
@pytest.mark.parametrize(
    ("rule", "url", "allowed"),
    [
        ("http://garden.example/nest/", "http://garden.example/nest/egg", False),
        ("http://garden.example/nest/", "http://garden.example/nest", True),
        ("http://garden.example/nest/", "http://garden.example:80/nest/", False),
        ("http://garden.example:80/nest/", "http://garden.example/nest/", False),
        ("HTTP://Garden.EXAMPLE/nest/", "http://garden.example/nest/", False),
        ("http://garden.example/Nest/", "http://garden.example/nest/", True),
        ("https://garden.example:443/nest/", "https://garden.example/nest/", False),
        ("http://garden.example", "http://garden.example/nest/", False),
        ("http://garden.example?q", "http://garden.example/?q=1", False),
        ("http://garden.example/nest?q", "http://garden.example/nest?q=1", False),
        ("http://u:p@garden.example/nest/", "http://garden.example/nest/", False),
        ("http://garden.example/%6Eest/", "http://garden.example/nest/", False),
        ("http://garden.example/né", "http://garden.example/n%C3%A9", False),
        ("http://gärten.example/x", "http://xn--grten-gra.example/x", False),
        ("http://xn--grten-gra.example/x", "http://gärten.example/x", False),
        ("https://garden.example/nest/", "http://garden.example/nest/", True),
        ("http://garden.example:8080/nest/", "http://garden.example/nest/", True),
        ("http://garden.example/nest/", "http://garden.example:8080/nest/", True),
        ("http://www.garden.example/", "http://garden.example/", True),
        ("http://garden.example.org/", "http://garden.example/", True),
        ("http://other.example/", "http://garden.example/http://other.example/", True),
        ("http://garden.example/nest/", "/nest/", True),
        ("http://garden.example/nest/", "//garden.example/nest/", True),
        ("http://garden.example/nest\x1f", "http://garden.example/nest", False),
        ("http://garden.example/ne\tst", "http://garden.example/nest", False),
        ("ftp://garden.example/", "http://garden.example/", True),
        ("http://", "http://garden.example/", True),
        ("http:///nest/", "http://garden.example/nest/", True),
        ("http://garden.example:99999/", "http://garden.example/", True),
        ("http://garden.example:x/", "http://garden.example/", True),
        ("mailto:jo@garden.example", "http://garden.example/mailto:jo@garden.example", True),
        ("MailTo:jo", "http://garden.example/MailTo:jo", True),
    ],
)
def test_whole_urls_apply_to_their_origin(rule: str, url: str, allowed: bool) -> None:
    body = f"{ALL}Disallow: {rule}\n".encode()
    assert RobotsTxt.parse(body).allowed(url, "Tamarin") is allowed
    assert set(kinds(body)) & {"whole-url", "foreign-url"}


@clause("U4")
def test_whole_urls_and_paths_apply_together() -> None:
    body = f"{ALL}Disallow: /a\nDisallow: http://garden.example/b\nDisallow: http://other.example/c\n"
    assert forbidden(body, "/a /b /c /d") == "/a /b"
    assert RobotsTxt.parse(body).decide(HOST + "/b", "Tamarin").rule == (3, "http://garden.example/b")


@clause("U4")
@pytest.mark.parametrize(
    "scheme",
    ["about", "blob", "data", "file", "ftp", "gopher", "javascript", "mailto", "news", "sms", "tel", "urn"],
)
def test_values_of_schemes_without_a_host_are_ignored(scheme: str) -> None:
    for value in (f"{scheme}:x", f"{scheme.upper()}:x"):
        body = f"{ALL}Disallow: {value}\n"
        assert forbidden(body, f"/{value} /x /") == ""
        assert kinds(body) == ["foreign-url"]


@clause("U5")
@pytest.mark.parametrize(
    ("rule", "yes", "no"),
    [
        ("help", "/help /help.html /help/a", "/a/help /"),
        ("help/a", "/help/a", "/help /help/b"),
        ("Help:Contents", "/Help:Contents", "/Contents /Help"),
        ("new\u017f:x", "/new\u017f:x /new%C5%BF:x", "/x"),
        ("?q", "/?q /?q=1", "/ /a?q"),
        (".git", "/.git /.git/x", "/git /"),
        ("./help", "/help /./help", "/ /hel /a/help"),
        ("../help", "/help", "/"),
        ("*help", "/*help", "/help /ahelp"),
        ("http:/x", "/http:/x", "/x"),
        ("http:x", "/http:x", "/x"),
        ("http:\x18//garden.example/x", "/http:%18//garden.example/x", "/x"),
        ("1x://y", "/1x://y", "/y"),
    ],
)
def test_relative_values_start_at_the_root(rule: str, yes: str, no: str) -> None:
    body = f"{ALL}Disallow: {rule}\n"
    assert forbidden(body, yes) == yes
    assert forbidden(body, no) == ""
    assert "relative-path" in kinds(body)


@clause("U6")
@pytest.mark.parametrize(
    ("rule", "yes", "no"),
    [
        pytest.param(
            "/~tam/", "/~tam/ /%7Etam/ /%7etam/ /%7e%74am/ /%7Etam%2fx/../../~tam/", "/tam/", id="tilde"
        ),
        pytest.param("/%7Etam/", "/~tam/ /%7Etam/ /%7etam/", "/%257Etam/", id="rule with escape"),
        pytest.param("/%7etam/", "/~tam/ /%7Etam/ /%7etam/", "/%7Ftam/", id="rule in lower case"),
        pytest.param("/a%2Fb", "/a%2Fb /a%2fb", "/a/b", id="%2F is not a slash"),
        pytest.param("/a/b", "/a/b /%61/b /a/%62", "/a%2Fb /a%2fb", id="nor a slash %2F"),
        pytest.param("/a%2fb", "/a%2Fb /a%2fb", "/a/b", id="%2f"),
        pytest.param("/a%3Fb", "/a%3Fb /a%3fb", "/a?b", id="%3F is not a question mark"),
        pytest.param("/a?b", "/a?b /%61?b /a?%62", "/a%3Fb /a%3fb", id="nor one %3F"),
        pytest.param("/a%2Bb", "/a%2Bb", "/a+b /a%20b", id="reserved"),
        pytest.param(
            "/nest/egg", "/nest/egg /./nest/egg /nest/./egg /x/../nest/egg /../nest/egg", "/nest", id="dots"
        ),
        pytest.param(
            "/nest/egg", "/nest/%2e/egg /x/%2E%2e/nest/egg /%2e/nest/.%2e/nest/egg", "/egg", id="%2e"
        ),
        pytest.param(
            "/nest/", "/nest/. /nest/x/.. /nest/./ /x/../nest/ /nest/x/%2e%2e", "/nest /x/..", id="last"
        ),
        pytest.param("/x/../nest/", "/nest/ /x/../nest/ /y/../nest/", "/x/ /", id="dots in a rule"),
        pytest.param(
            "/nest/", "/nest/../egg /n%65st/../egg /nest/%2E./egg", "/egg", id="dots unresolved too"
        ),
        pytest.param("/nest/./egg", "/nest/egg /nest/./egg", "/nest/", id="dot in a rule"),
        pytest.param(
            "/nest/..", "/nest/../ /nest/..a /nest/%2E%2Ea", "/ /nest/a /nest/.a", id="dots end a rule"
        ),
        pytest.param("/nest/.", "/nest/.htaccess /nest/./ /nest/..", "/nest/ /nest/a", id="dot ends a rule"),
        pytest.param(
            "/nest/%2e", "/nest/.htaccess /nest/%2Ehtaccess", "/nest/ /nest/a", id="%2e ends a rule"
        ),
        pytest.param("/nest/../", "/ /a /nest/a", "/robots.txt", id="slash after dots"),
        pytest.param("/nest/..?", "/?a /nest/..?b", "/ /nest?a", id="query after dots"),
        pytest.param("/a?b=/../c", "/a?b=/../c", "/a?b=/c /c", id="no dots in a query"),
        pytest.param("/a?b=/c", "/a?b=/c", "/a?b=/./c /a?b=/x/../c", id="nor resolved there"),
        pytest.param("//nest", "//nest /x/..//nest", "/nest", id="empty segments stay"),
        pytest.param("/a b", "/a%20b", "/a+b /a /ab", id="blank"),
        pytest.param("/a\tb", "/a%09b", "/a%20b /ab", id="tab"),
        pytest.param("/a%20b", "/a%20b", "/a+b /a", id="escaped blank"),
        pytest.param("/é", "/%C3%A9 /%c3%a9 /é", "/%E9 /e /É", id="beyond ASCII"),
        pytest.param("/%C3%A9", "/%C3%A9 /%c3%a9 /é", "/%E9", id="escaped"),
        pytest.param("/%c3%a9", "/%C3%A9 /%c3%a9 /é", "/%E9", id="escaped, lower case"),
        pytest.param("/a%", "/a% /a%25 /a%25x", "/a", id="lone %"),
        pytest.param("/a%25", "/a% /a%25", "/a", id="escaped %"),
        pytest.param("/%7Etam%2", "/~tam%20 /~tam%2 /%7etam%2f", "/~tam", id="escape cut off"),
        pytest.param("/nest%c", "/nest%C3%A9 /nest%c3 /nesté", "/nest%d0", id="cut off, lower case"),
        pytest.param("/a%zz", "/a%zz /a%25zz", "/a", id="no escape"),
        pytest.param("/a%2", "/a%2 /a%20 /a%2F /a%252", "/a /a%30", id="half an escape"),
        pytest.param(
            '/a"<>[\\]^`{|}', '/a"<>[\\]^`{|} /a%22%3C%3E%5B%5C%5D%5E%60%7B%7C%7D', "/a", id="not allowed"
        ),
        pytest.param("/a%7Cb", "/a|b /a%7cb", "/ab", id="not allowed, escaped"),
        pytest.param("/%41%3a", "/A%3A /%41%3A", "/A: /a%3A", id="case of letters"),
    ],
)
def test_no_spelling_bypasses_a_rule(rule: str, yes: str, no: str) -> None:
    body = f"{ALL}Disallow: {rule}\n"
    assert forbidden(body, yes) == yes
    assert forbidden(body, no) == ""


@clause("U6", "U1")
@pytest.mark.parametrize(
    ("rule", "target"),
    [
        ("/é%7", "/é%7Ex"),
        ("/a b/..", "/a b/../x"),
        ("/é/.", "/é/./x"),
        ("/\x7f/%4", "/\x7f/%41"),
        ("/😀?%6", "/😀?%61"),
    ],
    ids=ascii,
)
def test_rules_apply_as_written_if_url_and_rule_need_escapes(rule: str, target: str) -> None:
    assert target.startswith(rule)
    assert not RobotsTxt.parse(f"{ALL}Disallow: {rule}\n").allowed(HOST + target, "Tamarin")


@clause("U7")
@pytest.mark.parametrize("rule", ["/", "/robots.txt", "/robots", "robots.txt", HOST + "/robots.txt"])
def test_robots_txt_is_always_allowed(rule: str) -> None:
    body = f"{ALL}Disallow: {rule}\n"
    assert forbidden(body, "/robots.txt /robots.txt#x /./robots.txt /%72obots%2Etxt /x/../robots.txt") == ""
    others = "/robots.txt? /robots.txt?x /robots.txt.bak /robots.txt/"
    assert forbidden(body, others) == others
    assert RobotsTxt.parse(body).decide(HOST + "/robots.txt", "Tamarin").reason is Reason.ROBOTS_TXT


@clause("U7")
def test_only_robots_txt_of_the_root_is_always_allowed() -> None:
    others = "/Robots.txt /a/robots.txt //robots.txt /robots%2Ftxt"
    assert forbidden(f"{ALL}Disallow: /\n", others) == others


@clause("U8")
@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://garden.example/nest", ("http", "garden.example", 80)),
        ("HTTP://GARDEN.Example:80", ("http", "garden.example", 80)),
        ("http://jo:secret@garden.example:/x", ("http", "garden.example", 80)),
        ("http://gärten.example/", ("http", "xn--grten-gra.example", 80)),
        ("http://GÄRTEN.example/", ("http", "xn--grten-gra.example", 80)),
        ("https://garden.example", ("https", "garden.example", 443)),
        ("https://garden.example:443/", ("https", "garden.example", 443)),
        ("https://garden.example:80/", ("https", "garden.example", 80)),
        ("http://garden.example:8080/", ("http", "garden.example", 8080)),
        ("http://garden.example./", ("http", "garden.example.", 80)),
        ("http://[2001:DB8::1]:81/", ("http", "[2001:db8::1]", 81)),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, origin: tuple[str, str, int]) -> None:
    assert Origin.of(url) == origin


@clause("U9")
@pytest.mark.parametrize(
    "url",
    [
        "ftp://garden.example/",
        "data:text/html,x",
        "mailto:jo@garden.example",
        "file:///etc/hosts",
        "about:blank",
        "javascript:void(0)",
        "s3://nest/egg",
        "httpx://garden.example/",
        "http:///nest",
        "http:/nest",
        "https:",
    ],
)
def test_other_urls_have_no_robots_txt(url: str) -> None:
    robots = RobotsTxt.parse(f"{ALL}Disallow: /\nDisallow: {url}\n")
    assert robots.allowed(url, "Tamarin")
    decision = robots.decide(url, "Tamarin")
    assert (decision.allowed, decision.reason, decision.rule) == (True, Reason.NOT_WEB, None)
    assert Origin.of(url) is None


def forbids(meta: RobotsMeta) -> str:
    return " ".join(["noindex"] * (not meta.index) + ["nofollow"] * (not meta.follow))


def asked(content: str, name: str = "robots") -> str:
    """Return what a META tag forbids a robot Tamarin."""
    return forbids(RobotsMeta.read("Tamarin/1.0", [(name, content)]))


# The dialect's three examples with other names: file, and the forbidden paths of each robot.
PLACES = "/ /shed/rake /heap/ /tools/ /toads.html /t /maze/hedge/ /maze/hedge/deep/in /maze/hedg /maze/"
MULTIVALUE = {
    "all but one stay out": (
        "User-agent: *\nDisallow: /\n\nUser-agent: Tamarin\nDisallow: /shed/ /heap/\n",
        {"Tamarin": "/shed/rake /heap/", "Lemur": PLACES},
    ),
    "two may go anywhere": (
        "User-agent: Marmoset Lemur\n\nUser-agent: * Tamarin\nDisallow: /t\n",
        {"Marmoset": "", "Lemur": "", "Tamarin": "/tools/ /toads.html /t", "Saki": "/tools/ /toads.html /t"},
    ),
    "comments and empty values": (
        """# For every monkey!
User-agent: *
# this is a maze
Disallow: /maze/hedge/ #and all that grows there
Disallow: # nothing at all
Disallow: #nor here
# Who reads this will find the way.
""",
        {"Tamarin": "/maze/hedge/ /maze/hedge/deep/in"},
    ),
}


@clause("D1")
@pytest.mark.parametrize("example", MULTIVALUE)
def test_examples_of_the_multi_value_dialect(example: str) -> None:
    text, expected = MULTIVALUE[example]
    for _, body in variants(text):
        robots = RobotsTxt.parse(body, multivalue=True)
        for robot, forbidden_to_it in expected.items():
            found = [place for place in PLACES.split() if not robots.allowed(HOST + place, robot)]
            assert " ".join(found) == forbidden_to_it
    findings = RobotsTxt.parse(text, multivalue=True).findings
    assert [finding.kind for finding in findings if finding.kind != "no-disallow"] == []


@clause("D1")
def test_several_values_in_a_line_are_read_like_several_lines() -> None:
    text = "User-agent:\tTamarin \t Saki/2.0  # two\nDisallow: /a\t/b  /c%20d\nUser-agent: *\nDisallow: \n"
    robots = RobotsTxt.parse(text.encode(), multivalue=True)
    assert [(record.names, [tuple(rule) for rule in record.rules]) for record in robots.records] == [
        (("Tamarin", "Saki/2.0"), [(2, "/a"), (2, "/b"), (2, "/c%20d")]),
        (("*",), [(4, "")]),
    ]
    assert robots.records[0].line == 1
    decision = robots.decide(f"{HOST}/c d/e", "saki")
    assert (decision.rule, decision.record) == ((2, "/c%20d"), robots.records[0])
    assert robots.decide(f"{HOST}/b", "tamarin").rule == (2, "/b")
    assert [finding.kind for finding in robots.findings] == ["version-in-name", "no-blank-line"]


@clause("D1")
def test_a_comma_at_the_end_of_a_value_is_removed() -> None:
    robots = RobotsTxt.parse("User-agent: Rex, Tamarin; Saki\nDisallow: /a, /b;c /d,e\n", multivalue=True)
    assert robots.records[0].names == ("Rex", "Tamarin", "Saki")
    assert [rule.value for rule in robots.records[0].rules] == ["/a", "/b;c", "/d,e"]


@clause("M1", "M2")
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("noindex", "noindex"),
        ("NoIndex", "noindex"),
        ("NOFOLLOW", "nofollow"),
        ("NOINDEX,NOFOLLOW", "noindex nofollow"),
        (" noindex ,\tnofollow\n", "noindex nofollow"),
        (",,noindex,,", "noindex"),
        ("noindex nofollow", "noindex nofollow"),
        ("noarchive;noindex", "noindex"),
        ("\xa0noindex\u3000nofollow", "noindex nofollow"),
        ("", ""),
        (" , ", ""),
        ("index", ""),
        ("index, follow", ""),
        ("all", ""),
        ("none", "noindex nofollow"),
        ("index, none", "noindex nofollow"),
        ("none, index, follow", "noindex nofollow"),
        ("follow, nofollow", "nofollow"),
        ("nofollow, follow", "nofollow"),
        ("index, noindex", "noindex"),
        ("noindex, follow", "noindex"),
        ("noindex, ALL", ""),
        ("all, none", ""),
        ("noarchive, no-index, noindexes, xnofollow", ""),
        ("noindexnofollow", ""),
        ("max-image-preview: none", ""),
        ("max-image-preview:none, noindex", "noindex"),
        ("noindex, max-x : all", "noindex"),
        ("max-snippet:-1 nofollow", "nofollow"),
        ("unavailable_after: 25 Jun 2010 15:00:00 PST, nofollow", "nofollow"),
        ("noindex:", "noindex"),
        (": noindex", "noindex"),
    ],
)
def test_what_the_terms_of_a_meta_tag_mean(content: str, expected: str) -> None:
    for name in ("robots", " Robots\n"):
        assert asked(content, name) == expected


@clause("M3", "A2")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tamarin", "noindex"),
        (" TAMARIN/2.0 ", "noindex"),
        ("tama", "noindex"),
        ("tamarins", ""),
        ("golden_tamarin", ""),
        ("potto", ""),
        ("robot", ""),
        ("*", ""),
        ("", ""),
        ("description", ""),
    ],
)
def test_a_meta_tag_may_name_one_robot(name: str, expected: str) -> None:
    assert asked("noindex", name) == expected


@clause("M3", "M2")
def test_tags_and_headers_apply_together() -> None:
    lenient = [("robots", "all"), ("tamarin", "index, follow")]
    for tags, headers in (
        ([*lenient, ("tamarin", "noindex"), ("robots", "nofollow")], []),
        ([("robots", "none"), *lenient], ["all"]),
        (lenient, ["noindex", "tamarin: nofollow", "all", "tamarin: all"]),
        ([*lenient, ("robots", "noindex")], ["index, nofollow, follow"]),
    ):
        assert forbids(RobotsMeta.read("Tamarin", tags, headers)) == "noindex nofollow"
    assert forbids(RobotsMeta.read("Tamarin", [*lenient, ("potto", "none")], ["potto: none"])) == ""


@clause("M3", "M1")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", ""),
        ("noindex", "noindex"),
        ("NOINDEX, nofollow", "noindex nofollow"),
        ("none", "noindex nofollow"),
        ("all, noindex", "noindex"),
        ("tamarin: nofollow", "nofollow"),
        ("Tamarin:nofollow", "nofollow"),
        ("tamarin : noindex, nofollow", "noindex nofollow"),
        ("potto: noindex, nofollow", ""),
        ("*: noindex", "noindex"),
        ("noindex, potto: nofollow", "noindex"),
        ("potto: noindex, tamarin: nofollow", "nofollow"),
        ("tamarin: nofollow, potto: noindex", "nofollow"),
        ("potto:, noindex", ""),
        ("tamarin:", ""),
        ("noindex: tamarin", "noindex"),
        ("unavailable_after: 25 Jun 2010 15:00:00 PST", ""),
        ("unavailable_after: 25 Jun 2010 15:00:00 PST, noindex", "noindex"),
        ("unavailable_after: Friday, 25-Jun-10 15:00:00 UTC, noindex", "noindex"),
        ("unavailable_after: 2010-06-25T15:00:00Z, nofollow", "nofollow"),
        ("unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT+02:00, none", "noindex nofollow"),
        ("potto: unavailable_after: 25 Jun 2010 15:00:00 PST, noindex", ""),
        ("tamarin: unavailable_after: 25 Jun 2010 15:00:00 PST, noindex", "noindex"),
        ("max-snippet: -1, max-image-preview: none, max-video-preview:0, nofollow", "nofollow"),
        ("potto: max-image-preview: large, nofollow", ""),
        ("x-later: 5, nofollow", "nofollow"),
        (":::, noindex", "noindex"),
    ],
)
def test_an_x_robots_tag_header_is_read(value: str, expected: str) -> None:
    # Headers joined by a proxy forbid the same as separate ones, if the first names no robot.
    for headers in ([value], ["all", value], [f"all, {value}"]):
        assert forbids(RobotsMeta.read("Tamarin/1.0", headers=headers)) == expected


@clause("M4")
@pytest.mark.parametrize(
    ("tags", "state", "url"),
    [
        ([], "STATIC", None),
        ([("document-state", "dynamic")], "DYNAMIC", None),
        ([("DOCUMENT-STATE", " Dynamic ")], "DYNAMIC", None),
        ([("document-state", "static")], "STATIC", None),
        ([("document-state", "often")], "STATIC", None),
        ([("robots", "dynamic")], "STATIC", None),
        ([("document-state", "dynamic"), ("document-state", "static")], "DYNAMIC", None),
        ([("Url", f" {HOST}/nest\n")], "STATIC", f"{HOST}/nest"),
        ([("url", " "), ("url", "/one"), ("url", "/two")], "STATIC", "/one"),
    ],
)
def test_document_state_and_url_are_available(
    tags: list[tuple[str, str]], state: str, url: str | None
) -> None:
    meta = RobotsMeta.read("Tamarin", tags)
    assert (meta.document_state, meta.url) == (state, url)
    assert forbids(meta) == ""


# --- the page


def headings() -> list[str]:
    """Return the clauses that docs/standard.md explains, from its headings."""
    return re.findall(r"^### ([A-Z]\d+) – \S", DOCS.read_text(encoding="utf-8"), re.MULTILINE)


def test_every_clause_is_explained_once_in_order_and_tested() -> None:
    expected = [
        f"{part}{n}"
        for part, last in zip("FRAUDM", (9, 6, 5, 9, 1, 4), strict=True)
        for n in range(1, last + 1)
    ]
    assert headings() == expected
    assert sorted(TESTED) == sorted(expected)
    assert {kind.clause for kind in KINDS.values()} <= set(expected)


def test_code_cites_clauses_of_the_page() -> None:
    package = DOCS.parent.parent / "scrapy_norobots" / "standard"
    for path in package.glob("*.py"):
        cited = set(re.findall(r"\b[FRAUM][1-9]\b", path.read_text(encoding="utf-8")))
        assert cited <= set(headings()), path.name
