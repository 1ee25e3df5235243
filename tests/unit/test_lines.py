"""Lines: decoding, splitting, and the patterns of the two fields."""

from __future__ import annotations

import pytest

from scrapy_norobots.standard.lines import (
    BLANK_LINE,
    DISALLOW,
    USER_AGENT,
    encoding_of,
    is_disallow,
    is_user_agent,
    numbered,
    to_lines,
    to_text,
    to_values,
    with_line_feeds,
)


def test_bytes_that_are_not_utf_8_survive_decoding() -> None:
    assert to_text(b"\xef\xbb\xbf/\xc3\xa9\xe9") == "/é\udce9"
    assert to_text("/é".encode("utf-16") + b"x") == "/é"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_all_byte_order_marks_at_the_start_are_removed(encoding: str) -> None:
    for marks in range(4):
        body = ("\ufeff" * marks + "User-agent: é\ufeff").encode(encoding)
        assert to_text(body) == to_text("\ufeff" * marks + "User-agent: é\ufeff") == "User-agent: é\ufeff"
        assert encoding_of(body) == (encoding, marks > 0)


@pytest.mark.parametrize(
    "body", [b"", b"U\0", b"U\0s", b"\0\0\0\0", b"# x\0\n\0", b"\0User-agent", b"U\0\0s", b"\0\0U\0"]
)
def test_other_nul_bytes_do_not_show_an_encoding(body: bytes) -> None:
    assert encoding_of(body) == ("utf-8", False)


def test_lines_end_at_cr_lf_and_cr_lf_only() -> None:
    assert to_lines("a\r\nb\rc\nd\x0be\x0cf\x85g\u2028h") == ["a", "b", "c", "d\x0be\x0cf\x85g\u2028h"]
    assert to_lines("\r\n\n\r\r\n") == ["", "", "", "", ""]
    assert with_line_feeds("a\n\rb") == "a\n\nb"


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("Disallow:/x", "/x"),
        ("\t dISALLOW \t:\t /x y \t# z", "/x y"),
        ("Disallow: /x:y", "/x:y"),
        ("Disallow:", ""),
        ("Disallow: \t", ""),
        ("Disallow: #/x", ""),
        ("Disallow: /x\x0c", "/x\x0c"),
    ],
)
def test_a_field_has_a_value(line: str, value: str) -> None:
    assert is_disallow(line)
    assert not is_user_agent(line)
    assert DISALLOW.findall("\n" + line) == [value]
    other = line.lower().replace("disallow", "user-AGENT")
    assert is_user_agent(other)
    assert USER_AGENT.findall("\n" + other) == [value]


@pytest.mark.parametrize(
    "line", ["", "Disallow", "Disallow# :", "# Disallow: /", "Di\u017fallow: /", "x Disallow: /"]
)
def test_other_lines_do_not_match_a_field(line: str) -> None:
    assert not is_disallow(line)
    assert not is_user_agent(line)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("\n\n", True),
        ("\na\n \t\nb", True),
        ("\na\n \t", True),
        ("\na", False),
        ("\n#\n #\n", True),
        ("\n#\n #", False),
    ],
)
def test_a_line_of_spaces_and_tabs_is_blank(text: str, found: bool) -> None:
    assert (BLANK_LINE.search(text) is not None) is found


def test_line_numbers_include_every_line() -> None:
    text = "\nDisallow: /a\n\n# x\nDisallow: /b\nDisallow: /b\nx\nDisallow:"
    assert list(numbered(DISALLOW, text, 0)) == [(1, "/a"), (4, "/b"), (5, "/b"), (7, "")]
    assert list(numbered(DISALLOW, text, 10))[-1] == (17, "")


@pytest.mark.parametrize(
    ("value", "values"),
    [("a", ["a"]), ("a, b;\tc", ["a", "b", "c"]), ("", [""]), (" , ", [""]), ("a,b", ["a,b"])],
)
def test_a_value_in_the_dialect_is_split(value: str, values: list[str]) -> None:
    assert to_values(value) == values
