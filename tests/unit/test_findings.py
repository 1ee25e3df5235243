"""Findings: each kind where it belongs and nowhere else, and the table in the docs."""

from __future__ import annotations

import re

import pytest

from scrapy_norobots.standard import KINDS, RobotsTxt
from scrapy_norobots.standard.findings import _LATER_FIELDS, rules_of
from tests.helpers.running.processes import ROOT
from tests.helpers.samples.variants import LINE_ENDS, with_line_ends

DOCS = ROOT / "docs" / "standard.md"


def found(body: bytes | str) -> list[tuple[int, str]]:
    """Return line and kind of all findings of a file."""
    data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    return [(finding.line, finding.kind) for finding in RobotsTxt.parse(data).findings]


def of_name(value: str) -> list[str]:
    """Return the kinds of findings of a ``User-agent`` value, alone in its file."""
    findings = found(f"User-agent: {value}\nDisallow: /")
    assert all(line == 1 for line, _ in findings)
    return [kind for _, kind in findings]


def of_path(value: str) -> list[str]:
    """Return the kinds of findings of a ``Disallow`` value, alone in its record."""
    findings = found(f"User-agent: *\nDisallow: {value}")
    assert all(line == 2 for line, _ in findings)
    return [kind for _, kind in findings]


# kind: a short example, the line of the finding, and a part of its message.
EXAMPLES: dict[str, tuple[bytes | str, int, str]] = {
    "byte-order-mark": (b"\xef\xbb\xbf", 1, ""),
    "byte-order-marks": (b"\xef\xbb\xbf\xef\xbb\xbf", 1, ""),
    "utf-16": (b"\xff\xfe", 1, ""),
    "utf-32": (b"\xff\xfe\0\0", 1, ""),
    "no-mark": (b"#\0\n\0", 1, "UTF-16"),
    "not-utf-8": (b"# 1\n# \xe9\n# \xe9\n", 2, ""),
    "odd-line-break": ("# 1\n# \x0c\n", 2, ""),
    "misspelt-field": ("Dissallow: /", 1, "did you mean Disallow?"),
    "unknown-field": ("\nColour: green", 2, ""),
    "later-field": ("Allow: /", 1, ""),
    "nul": ("# 1\nhel\0lo: x", 2, ""),
    "no-colon": ("# 1\nhello", 2, ""),
    "html-page": ("\n<html>\n", 1, ""),
    "no-blank-line": ("User-agent: a\nDisallow: /\nUser-agent: b\nDisallow: /", 3, ""),
    "no-disallow": ("# 1\nUser-agent: a\nUser-agent: b\n", 2, ""),
    "stray-disallow": ("Disallow: /", 1, ""),
    "second-default": ("User-agent: *\nDisallow: /a\n\nUser-agent: *\nDisallow: /b", 4, "line 1"),
    "version-in-name": ("User-agent: Tamarin/1.0\nDisallow: /", 1, "'Tamarin'"),
    "name-taken": ("\nUser-agent: tam\nDisallow: /\n\nUser-agent: tamarin\nDisallow: /", 5, "line 2"),
    "empty-name": ("User-agent:\nDisallow: /", 1, ""),
    "star-in-name": ("User-agent: tam*\nDisallow: /", 1, ""),
    "several-names": ("User-agent: tamarin potto\nDisallow: /", 1, ""),
    "wildcard": ("User-agent: *\nDisallow: /*.gif$", 2, ""),
    "whole-url": ("User-agent: *\nDisallow: http://garden.example/a", 2, ""),
    "foreign-url": ("User-agent: *\nDisallow: ftp://garden.example/a", 2, ""),
    "relative-path": ("User-agent: *\nDisallow: nest", 2, ""),
    "unescaped": ("User-agent: *\nDisallow: /é", 2, "%XX"),
    "bad-escape": ("User-agent: *\nDisallow: /50%", 2, ""),
    "several-paths": ("User-agent: *\nDisallow: /a /b", 2, ""),
    "robots-txt": ("User-agent: *\nDisallow: /robots.txt", 2, ""),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_found(kind: str) -> None:
    body, line, says = EXAMPLES[kind]
    data = body.encode() if isinstance(body, str) else body
    (finding,) = RobotsTxt.parse(data).findings
    assert (finding.kind, finding.line) == (kind, line)
    assert (finding.severity, finding.clause) == KINDS[kind][:2]
    assert says in finding.message
    if not says:
        assert finding.message == KINDS[kind].meaning


def test_the_docs_list_the_later_fields() -> None:
    (fields,) = re.findall(
        r"`later-field`: (.+?)\.$", DOCS.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert re.findall(r"`(.+?)`", fields.lower()) == sorted(_LATER_FIELDS)


def test_rules_with_and_without_effect_are_counted() -> None:
    text = (
        "Disallow: /stray\nUser-agent: tam\nDisallow:\nDisallow: /a\nDissallow: /b\nDisallow /c\n"
        "Disallow: mailto:x\nDisallow: /robots.txt\nhm\nUser agent: x\n\n"
        "User-agent: tamarin\nUser-agent: TAM\nDisallow: /d\nDisallow:\n\n"
        "User-agent: tam\nUser-agent: potto\nDisallow: /e\n"
    )
    robots = RobotsTxt.parse(text)
    rules, idle = rules_of(robots.findings, robots.records)
    assert rules == [1, 4, 5, 6, 7, 8, 14, 19]
    assert idle == [1, 5, 6, 7, 8, 14]


def test_a_valid_file_has_no_findings() -> None:
    text = (
        "# Garden rules\n\nUser-agent: tamarin\nUser-agent: potto\nDisallow: /nest/ # eggs\n"
        "Disallow: /q?a=b\n# more\nDisallow: /50%25\nDisallow: //x\nDisallow: /a$b\n\n\n"
        "User-agent: *\nDisallow:\n  # end\n\t\n"
    )
    for ends in LINE_ENDS:
        assert found(with_line_ends(text, ends)) == []


IGNORED = {
    "later-field": [
        *(f"{name}: x" for name in sorted(_LATER_FIELDS)),
        *("SITEMAP: x", "NoIndex: x", "Content-Signal : x", " \tallow : x"),
    ],
    "misspelt-field": [
        *("Dissallow: x", "User agent: x", "useragent: x", "diallow: x", "User-agnet: x", "Disallowed: x"),
        *("-Disallow: x", "U s e r - a g e n t: x", "Disallow" + 100 * "-" + ": x"),
    ],
    "unknown-field": [
        "Noarchive: x",
        "http: x",
        ": x",
        "Agent: x",
        "Di: x",
        "é: x",
        "al-low: x",
        40 * "-" + "Disallow: x",
    ],
    "nul": ["\x00"],
}


@pytest.mark.parametrize(("kind", "line"), [(kind, line) for kind in IGNORED for line in IGNORED[kind]])
def test_ignored_lines_have_findings(kind: str, line: str) -> None:
    assert found(f"#\n{line}\n") == [(2, kind)]


# The kinds of findings, and values that have these.
NAMES = {
    "": ["Tamarin", "*", "* # all", "tamarin_(leo)"],
    "version-in-name": ["Tamarin/1.0", "Tamarin 1.0", "Tamarin (a remark)"],
    "empty-name": ["", "\t # x", "/1.0"],
    "star-in-name": ["**", "tam*"],
    "star-in-name several-names": ["* tamarin"],
    "several-names": ["tamarin potto", "tamarin\tpotto", "tamarin, potto"],
}
PATHS = {
    "": [
        *(
            "",
            "# none",
            "/",
            "/a?b=c&d#e",
            "/a/../b",
            "/%7e",
            "/a$b",
            "/?",
            "//a",
            "/%C3%a9%00",
            "/robots.txt.bak",
        ),
        *("/robots.txt/", "/robots.txt?a", "/robots.tx", "/robots", "/a/robots.txt"),
    ],
    "wildcard": ["/*", "/a$", "/a$ # x"],
    "relative-path wildcard": ["*", "a*"],
    "relative-path": ["a", "?a", "Help:x", "http:/a"],
    "whole-url": ["http://garden.example/", "https://garden.example:8080"],
    "whole-url wildcard": ["http://garden.example/*"],
    "whole-url unescaped": ["http://garden.example/é"],
    "foreign-url": [
        *("ftp://garden.example/", "FTP:x", "mailto:jo@garden.example", "mailto:*", "http://"),
        *("http://garden.example:x/", "x://y"),
    ],
    "unescaped": ["/a b", "/a\tb", "/é", "/\x00", "/\x7f", "/a b/c"],
    "several-paths": ["/a /b", "/a\t/b", "/a  b /c"],
    "bad-escape": ["/%", "/%4", "/%4g", "/%%41"],
    "robots-txt": ["/robots.txt", "/%72obots.txt"],
    "relative-path robots-txt": ["robots.txt"],
}


@pytest.mark.parametrize(("kinds", "value"), [(kinds, one) for kinds in NAMES for one in NAMES[kinds]])
def test_names_have_findings(kinds: str, value: str) -> None:
    assert of_name(value) == kinds.split()


@pytest.mark.parametrize(
    ("kinds", "value"), [(kinds, one) for kinds in PATHS for one in PATHS[kinds]], ids=ascii
)
def test_paths_have_findings(kinds: str, value: str) -> None:
    assert of_path(value) == kinds.split()


def test_bytes_that_are_not_utf8_have_one_finding() -> None:
    assert found(b"User-agent: *\nDisallow: /\xe9\nDisallow: /\xe8") == [
        (2, "not-utf-8"),
        (2, "unescaped"),
        (3, "unescaped"),
    ]
    assert found("\ufeff#".encode("utf-16-be")) == [(1, "utf-16")]
    assert found(b"#\xef\xbb\xbf") == []


@pytest.mark.parametrize("char", list("\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), ids=ascii)
def test_odd_line_breaks_are_found_in_comments_too(char: str) -> None:
    assert found(f"# a{char}b\nUser-agent: a # {char}{char}\nDisallow: /") == [
        (1, "odd-line-break"),
        (2, "odd-line-break"),
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("User-agent: a\nDisallow: /\n \t\nUser-agent: b\nDisallow: /", []),
        ("User-agent: a\nDisallow: /\n#\n\nUser-agent: b\nDisallow: /", []),
        ("User-agent: a\nDisallow: /\n\n#\nUser-agent: b\nDisallow: /", []),
        ("User-agent: a\nDisallow: /\n#\nUser-agent: b\nDisallow: /", [(4, "no-blank-line")]),
        (
            "User-agent: a\nDisallow: /\nUser-agent: b\n\nUser-agent: c\nDisallow: /",
            [(3, "no-blank-line"), (3, "no-disallow")],
        ),
        ("User-agent: a\nUser-agent: b\nDisallow: /\nDisallow: /", []),
        ("User-agent: a\nDisallow: /\n\nDisallow: /\nUser-agent: b\nDisallow: /", [(4, "stray-disallow")]),
        ("User-agent: a\n\nDisallow: /\n", [(1, "no-disallow"), (3, "stray-disallow")]),
        (
            "Disallow:\n\nDisallow: nest\n",
            [(1, "stray-disallow"), (3, "relative-path"), (3, "stray-disallow")],
        ),
    ],
)
def test_missing_blank_lines_are_found(body: str, expected: list[tuple[int, str]]) -> None:
    assert found(body) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["tamarin", "TAMARIN"], ["name-taken"]),
        (["tamarin/1", "tamarin/2"], ["version-in-name", "version-in-name", "name-taken"]),
        (["tam", "golden-tamarin"], ["name-taken"]),
        (["golden-tamarin", "tam"], []),
        (["tam", "potto"], []),
        (["t" * 40, "t" * 41], []),
        (["t" * 41, "t" * 41], ["name-taken"]),
        (["t", "a" * 39 + "t"], ["name-taken"]),
        (["", ""], ["empty-name", "empty-name"]),
        (["*", "tam"], []),
        (["*", "a*b"], ["star-in-name"]),
        (["tam\nUser-agent: tamarin\nUser-agent: tam"], []),
    ],
)
def test_names_taken_by_an_earlier_record_are_found(names: list[str], expected: list[str]) -> None:
    findings = found("\n\n".join(f"User-agent: {name}\nDisallow: /" for name in names))
    assert [kind for _, kind in findings] == expected


def test_the_first_record_that_has_taken_a_name_is_reported() -> None:
    record = "User-agent: {}\nDisallow: /\n\n"
    body = "".join(map(record.format, ["rin", "tam", "x\nUser-agent: tamarin"]))
    (finding,) = RobotsTxt.parse(body.encode()).findings
    assert (finding.kind, finding.line) == ("name-taken", 8)
    assert "at line 1," in finding.message


def test_an_html_page_has_one_finding_and_those_of_its_encoding() -> None:
    page = b"<html>\nDisallow: /\n\xe9 a: b\nUser-agent: x/1\n"
    assert found(page) == [(1, "html-page"), (3, "not-utf-8")]
    assert found(b"\xef\xbb\xbf" + page) == [(1, "byte-order-mark"), (1, "html-page"), (3, "not-utf-8")]
