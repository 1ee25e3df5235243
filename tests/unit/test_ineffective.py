"""Lines of a robots.txt without effect: found at its start, and said in a sentence."""

from __future__ import annotations

import pytest

from scrapy_norobots.features.report.ineffective import IneffectiveRules


def test_ineffective_lines_are_the_findings_of_severity_error() -> None:
    body = (
        b"User-agent: *\nDisallow: /a\nCrawl-delay: 3\nDisalow: /attic/\n\n"
        b"Disallow: /cellar/\nDisallow: /loft/\n"
    )
    ineffective = IneffectiveRules.of(body)
    assert ineffective is not None
    assert ineffective.lines == 3
    assert ineffective.kinds == "misspelt-field (line 4), stray-disallow (line 6 and 1 more)"
    assert ineffective.text.partition(" (")[2].startswith("line 4, 'Disalow: /attic/': The field is unknown")
    assert "; line 6 and 1 more, 'Disallow: /cellar/': The line is in no record" in ineffective.text
    assert IneffectiveRules.of(b"User-agent: *\nDisallow: /a\nAllow: /b\nSitemap: x\n") is None
    assert IneffectiveRules.of(b"") is None


@pytest.mark.parametrize("line_end", [b"\n", b"\r", b"\r\n"])
def test_only_the_start_of_a_long_file_is_searched(line_end: bytes) -> None:
    fine = line_end.join([b"User-agent: *", *([b"Disallow: /a"] * 6_000)])
    assert len(fine) > 2 * 32 * 1024
    assert IneffectiveRules.of(fine) is None  # no line was cut in two
    assert IneffectiveRules.of(fine + line_end + b"Disalow: /b" + line_end) is None
    ineffective = IneffectiveRules.of(b"Disalow: /b" + line_end + fine)
    assert ineffective is not None
    assert ineffective.lines == 1


def test_a_file_of_one_long_line_is_not_searched() -> None:
    assert IneffectiveRules.of(b"Disalow: /" + 100_000 * b"x") is None


def test_the_start_of_a_file_in_utf_16_is_text() -> None:
    ineffective = IneffectiveRules.of(("\ufeffDisalow: /b\n" + 50_000 * "# x\n").encode("utf-16-le"))
    assert ineffective is not None
    assert ineffective.kinds == "misspelt-field (line 1)"


def test_a_line_in_another_encoding_has_no_effect() -> None:
    ineffective = IneffectiveRules.of(b"User-agent: *\nDisallow: /a\n" + "Disallow: /b\n".encode("utf-16-be"))
    assert ineffective is not None
    assert ineffective.kinds == "nul (line 3)"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-32-be"])
@pytest.mark.parametrize("marks", [0, 1, 2])
def test_the_rules_of_a_file_in_any_encoding_have_effect(encoding: str, marks: int) -> None:
    body = ("\ufeff" * marks + "User-agent: *\nDisallow: /a\n").encode(encoding)
    assert IneffectiveRules.of(body) is None


def text_of(body: bytes, *, multivalue: bool = False) -> str:
    ineffective = IneffectiveRules.of(body, multivalue=multivalue)
    return "None" if ineffective is None else ineffective.text


def said(body: str, *, multivalue: bool = False) -> str:
    """Return what is said of a file, up to the details."""
    return text_of(body.encode(), multivalue=multivalue).partition(" (")[0]


ALL = "so the strict reading allows pages that the site meant to forbid"
STRAY = "User-agent: *\nDisallow: /a\n\nDisallow: /b\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (STRAY, f"1 of 2 Disallow lines, {ALL}"),
        ("Disallow: /b\n", f"1 of 1 Disallow line, {ALL}"),
        (STRAY + "hello\n", f"1 of 2 Disallow lines, {ALL}"),
        ("hello\n", "1 line"),
        ("hello\nDisallow: /\n", f"1 of 1 Disallow line, {ALL}"),
        ("hello\nthere\n", "2 lines"),
        ("User-agent: *\nDisallow: /robots.txt\n", "None"),
        ("User-agent: *\nDisallow: /robots.txt\nhello\n", "1 line"),
    ],
)
def test_the_sentence_counts_rules_without_effect_or_else_lines(body: str, expected: str) -> None:
    assert said(body) == expected


def test_the_sentence_ends_with_the_first_line_of_each_kind() -> None:
    assert text_of(b"hello\nthere\n") == (
        "2 lines (line 1 and 1 more, 'hello': The line is neither a field nor a comment, so it is ignored)"
    )


def test_a_line_with_two_findings_is_one_line() -> None:
    ineffective = IneffectiveRules.of(b"Disallow: ftp://x/\n")
    assert ineffective is not None
    assert ineffective.kinds == "foreign-url (line 1), stray-disallow (line 1)"
    assert ineffective.lines == 1
    assert ineffective.text.startswith("1 of 1 Disallow line, ")


@pytest.mark.parametrize(("lines", "is_truncated"), [(2_000, False), (2_001, True)])
def test_a_file_that_is_longer_than_the_search_says_so(lines: int, is_truncated: bool) -> None:
    text = text_of(b"Disallow: /a\n" + b"#\n" * (lines - 2) + b"#")
    assert (" Disallow line at its start, so" in text) is is_truncated


def test_only_the_first_2000_lines_are_searched() -> None:
    for lines, found in ((1_999, True), (2_000, False)):
        assert (IneffectiveRules.of(b"#\n" * lines + b"Disalow: /b\n") is not None) is found


def test_several_values_in_a_line_have_their_effect_where_the_setting_allows_them() -> None:
    body = "User-agent: *\nDisallow: /a /b\n"
    assert said(body) == f"1 of 1 Disallow line, {ALL}"
    assert said(body, multivalue=True) == "None"


def test_text_of_a_site_is_escaped() -> None:
    assert r"'Disalow: /\x1b[31m\u202e'" in text_of("Disalow: /\x1b[31m\u202e\n".encode())


def test_a_rule_that_a_line_above_takes_from_its_robots_has_no_effect_either() -> None:
    body = b"User-agent: a\nDisallow: /a\n\nUser-agent: A\nDisallow: /b\nDisallow: /c\n"
    ineffective = IneffectiveRules.of(body)
    assert ineffective is not None
    assert ineffective.lines == 3
    assert ineffective.kinds == "name-taken (line 4), misplaced-rule (line 5 and 1 more)"
    assert ineffective.text.startswith("2 of 3 Disallow lines, ")
