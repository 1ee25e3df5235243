"""`statements`: the syntax of one, and which statements of a robots.txt apply to a URL and a robot."""

from __future__ import annotations

import re
import sys
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_norobots.features.usage.statements import (
    LONGEST,
    NEEDS_LIBRARY,
    PURPOSES,
    REFUSALS,
    UNREAD,
    USES,
    WORDS,
    Statement,
    UsageStatements,
    read,
    stated,
)
from scrapy_norobots.standard import Origin
from scrapy_norobots.standard.patterns import matches
from tests.helpers.running.processes import ROOT

KINDS = ("content-usage", "content-signal", "license", "tdm-reservation", "tdm-policy", "noai", "noimageai")


def said(kind: str, value: str) -> Statement:
    return read(kind, "header", f"{kind}: {value}", value)


NO_DICTIONARY = "not a dictionary of RFC 9651: "
NO_WORD = "'train-ai' has another value than y or n, so it is unknown"


@pytest.mark.parametrize(
    ("value", "words", "problem"),
    [
        ("train-ai=n", {"train-ai": False}, ""),
        ("train-ai=y", {"train-ai": True}, ""),
        ("train-ai=n, search=y", {"train-ai": False, "search": True}, ""),
        ("train-ai=n,ai-use=n , search=y", {"train-ai": False, "ai-use": False, "search": True}, ""),
        ("train-ai=y, train-ai=n", {"train-ai": False}, ""),  # RFC 9651: the last one
        ("train-ai=n;since=2026", {"train-ai": False}, ""),  # parameters are ignored
        ("bots=n", {"bots": False}, ""),
        ("", {}, "states no preference"),
        ("train-ai = n", None, f"{NO_DICTIONARY}'train-ai' should be followed by"),
        *(
            (malformed, None, NO_DICTIONARY)
            for malformed in (
                *("Train-AI=n", "train-ai=n,", "train-ai=n; search=y; ", "train-ai=n search=y"),
                *('train-ai="n', "=n", "trän-ai=n"),
            )
        ),
        ("train-ai=no", {"train-ai": None}, NO_WORD),
        ("train-ai", {"train-ai": None}, NO_WORD),
        ('train-ai="n", search=y', {"train-ai": None, "search": True}, NO_WORD),
        ("train-ai=(n)", {"train-ai": None}, NO_WORD),
    ],
)
def test_content_usage(value: str, words: Any, problem: str) -> None:
    statement = said("content-usage", value)
    assert statement.value == words
    if not problem:
        assert statement.problem == ""
    else:
        assert statement.problem.startswith(problem)
        assert statement.says("ai-train") is None


@pytest.mark.parametrize(
    ("value", "words", "wrong"),
    [
        ("ai-train=no", {"ai-train": False}, None),
        (
            "search=yes, ai-input=yes, ai-train=no",
            {"search": True, "ai-input": True, "ai-train": False},
            None,
        ),
        ("search=yes,ai-train=no", {"search": True, "ai-train": False}, None),
        (
            "search=yes, ai-train=no, use=reference",
            {"search": True, "ai-train": False, "use": "reference"},
            None,
        ),
        ("Search=Yes, AI-Train=NO", {"search": True, "ai-train": False}, None),
        ("use=immediate", {"use": "immediate"}, None),
        ("use=full", {"use": "full"}, None),
        ("ai-train=no, ai-train=yes", {"ai-train": False}, None),
        ("ai-paint=no", {"ai-paint": False}, None),
        # What is malformed says what is clear in it.
        *(
            (wrong, None, wrong)
            for wrong in (
                *("", "no", "ai-train", "ai-train=maybe", "ai-train=n", "use=always", "use=no"),
                *("ai_train=no", "ai-train:no", "ai-train=yeſ"),
            )
        ),
        ("ai-train = no", {"ai-train": False}, "ai-train = no"),
        ("search=yes; ai-train=no", {"search": True, "ai-train": False}, "search=yes; ai-train=no"),
        ("search=yes ai-train=no", {"search": True, "ai-train": False}, "search=yes ai-train=no"),
        ("search=yes, ai-train=no,", {"search": True, "ai-train": False}, ""),
    ],
)
def test_content_signal(value: str, words: dict[str, Any] | None, wrong: str | None) -> None:
    statement = said("content-signal", value)
    assert statement.value == words
    problem = f"{wrong!r} is not word=yes or word=no; commas separate several of them"
    assert statement.problem == ("" if wrong is None else problem)


URLS = ("https://town.example/license.xml", "http://town.example", "https://[::1]/a?b#c")
NO_URLS = (
    *(
        "",
        "/license.xml",
        "license.xml",
        "town.example/a",
        "<https://town.example/a>",
        "https://",
        "https:/a",
    ),
    *(
        "https://town.example/a b",
        "https://[::1/a",
        "//town.example/a",
        "mailto:a@town.example",
        "https://\x00",
    ),
)
NO_RESERVATIONS = ("", "2", "true", "yes", "-1", "1.0", "01", "1, 1", "?1", "\u0661")


@pytest.mark.parametrize(
    ("kind", "value", "parsed", "problem"),
    [
        *((kind, url, url, "") for kind in ("license", "tdm-policy") for url in URLS),
        *(
            (kind, text, None, "not an absolute URL")
            for kind in ("license", "tdm-policy")
            for text in NO_URLS
        ),
        ("tdm-reservation", "1", True, ""),
        ("tdm-reservation", "0", False, ""),
        *(("tdm-reservation", value, None, "neither 0 nor 1") for value in NO_RESERVATIONS),
    ],
)
def test_licenses_policies_and_reservations(
    kind: str, value: str, parsed: str | bool | None, problem: str
) -> None:
    statement = said(kind, value)
    assert (statement.value, statement.problem) == (parsed, problem)
    refused = {purpose for purpose in PURPOSES if statement.says(purpose) is not None}
    assert refused == ({"ai-train"} if parsed is True else set())


@pytest.mark.parametrize(
    ("kind", "value", "purposes"),
    [
        ("content-signal", "search=no", {"search"}),
        ("content-signal", "ai-input=no, ai-train=yes", {"ai-input"}),
        ("content-usage", "train-ai=n", {"ai-train"}),
        ("content-usage", "ai-use=n, search=n", {"ai-input", "search"}),
        ("content-usage", "ai=n", {"ai-input", "ai-train"}),
        ("content-usage", "ai=n, train-ai=y", {"ai-input", "ai-train"}),
        ("content-usage", "bots=n", set(PURPOSES)),
        ("content-usage", "train-genai=n", {"ai-train"}),
        ("tdm-reservation", "1", {"ai-train"}),
        ("noai", "", {"ai-train"}),
        ("noimageai", "", {"ai-train"}),
    ],
)
def test_each_vocabulary_has_words_for_the_purposes(kind: str, value: str, purposes: set[str]) -> None:
    statement = said(kind, value)
    assert {purpose for purpose in PURPOSES if statement.says(purpose) is False} == purposes


@pytest.mark.parametrize(
    ("value", "path", "is_read"),
    [
        ("train-ai=n", "", True),
        ("/a train-ai=n", "/a", True),
        ("/a\ttrain-ai=n", "/a", True),
        ("/a   train-ai=n, search=y", "/a", True),
        ("/a", "/a", False),
        ("/ train-ai=n", "/", True),
        ("*/a train-ai=n", "", False),
        ("", "", False),
    ],
)
def test_a_path_starts_with_a_slash_and_ends_at_a_blank(value: str, path: str, is_read: bool) -> None:
    (statement,) = UsageStatements(f"Content-Usage: {value}".encode()).all
    assert (statement.path, not statement.problem) == (path, is_read)


def test_a_statement_that_is_too_long_is_a_no_to_every_use() -> None:
    statement = said("content-signal", "search=yes, " * LONGEST)
    assert (statement.value, statement.problem) == (None, UNREAD)
    assert len(statement.text) == LONGEST
    assert [statement.says(purpose) for purpose in PURPOSES] == [False, False, False]
    assert said("license", "https://town.example/" + "a" * LONGEST).says("search") is None


def test_facts_leave_out_what_is_empty() -> None:
    facts = read("content-signal", "robots.txt", "Content-Signal: x", "x", line=3, place="group").facts()
    assert list(facts) == ["kind", "source", "line", "place", "text", "problem"]
    assert said("tdm-reservation", "0").facts()["value"] is False


def test_without_the_library_a_dictionary_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "http_sf", None)
    statement = said("content-usage", "train-ai=n")
    assert (statement.value, statement.problem) == (None, NEEDS_LIBRARY)
    assert said("content-signal", "ai-train=no").value == {"ai-train": False}


PIECES = st.sampled_from(
    [
        "train-ai", "ai-train", "search", "use", "=", "=n", "=no", "=yes", "=y", ",", ", ", ";", " ", "\t",
        '"', "(", ")", ":", "?1", "/", "https://", "town.example", "<", ">", "[", "]", "%", "\\", "@", "1",
        "\udc80", "\ud800",
    ]
)  # fmt: skip


@given(st.sampled_from(KINDS), st.lists(PIECES, max_size=20).map("".join) | st.text(max_size=50))
def test_any_text_is_read_without_an_exception(kind: str, text: str) -> None:
    statement = said(kind, text)
    assert statement.value is not None or statement.problem
    assert all(statement.says(purpose) in (True, False, None) for purpose in PURPOSES)
    assert stated([statement]) <= {kind, "malformed", *(f"no to {purpose}" for purpose in PURPOSES)}


# --- the statements of a file

ORIGIN = Origin("http", "town.example", 80)


def on(text: str | bytes, target: str = "/", robot: str = "FooBot") -> list[Any]:
    """The lines that apply."""
    body = text if isinstance(text, bytes) else text.encode()
    return [statement.line for statement in UsageStatements(body).on(target, robot)]


NO, LICENSE = "Content-Signal: ai-train=no\n", "License: https://a.example/\n"


def test_statements_have_their_line_text_and_place() -> None:
    body = (
        b"  content-signal : search=yes  # one\r\n"
        b"User-agent: *\nDisallow: /x\nContent-Usage: /a train-ai=n\n\n# end\nContent-Signal: ai-train=no\n"
        b"License: https://town.example/l.xml\n"
    )
    statements = UsageStatements(body).all
    assert [(one.line, one.kind, one.text, one.place, one.path) for one in statements] == [
        (1, "content-signal", "content-signal : search=yes  # one", "outside any group", ""),
        (4, "content-usage", "Content-Usage: /a train-ai=n", "group", "/a"),
        (7, "content-signal", "Content-Signal: ai-train=no", "after a blank line", ""),
        (8, "license", "License: https://town.example/l.xml", "", ""),
    ]
    assert [one.value for one in statements] == [
        {"search": True},
        {"train-ai": False},
        {"ai-train": False},
        "https://town.example/l.xml",
    ]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"User-agent: *\n{NO}", [2]),
        (f"User-agent: FooBot\n{NO}", [2]),
        (f"User-agent: foobot/2.0\n{NO}", [2]),
        (f"User-agent: Foo\n{NO}", []),  # a part of a product token is another token
        (f"User-agent: FooBot\nCrawl-delay: 5\nUser-agent: *\n{NO}", [4]),
        (f"User-agent: BarBot\n{NO}", []),
        (f"User-agent: BarBot\nUser-agent: FooBot\n{NO}", [3]),
        (f"User-agent: BarBot\n\nUser-agent: FooBot\n{NO}", [4]),
        (f"User-agent: FooBot\nDisallow: /x\nUser-agent: BarBot\n{NO}", []),
        # Only a rule ends a group.
        (f"User-agent: *\n{NO}\nUser-agent: FooBot\nDisallow:\n", [2]),
        (f"User-agent: *\n{NO}Disallow:\nUser-agent: FooBot\nDisallow:\n", []),
        (f"User-agent: FooBot\n{NO}\nUser-agent: *\n{NO}User-agent: foo\n{NO}", [2, 5, 7]),
        (f"User-agent: *\nSitemap: http://a/\nUser-agent: BarBot\n{NO}", [4]),
        # Outside any group, and after a blank line, a statement applies to every robot.
        (NO, [1]),
        (f"{NO}User-agent: FooBot\nDisallow:\n", [1]),
        (f"User-agent: BarBot\nDisallow:\n\n{NO}", [4]),
        (f"User-agent: BarBot\nDisallow:\n# no blank line\n{NO}", []),
        (f"User-agent: *\n\n{NO}", [3]),
        (f"<!DOCTYPE html>\nUser-agent: *\n{NO}", []),
        (f"User-agent: *\n# {NO}", []),
        # A license is for the whole file, and does not end the names of a group.
        (f"User-agent: BarBot\n{LICENSE}User-agent: FooBot\n{LICENSE}{NO}", [2, 4, 5]),
        (f"User-agent: FooBot\n{LICENSE}User-agent: BarBot\n{LICENSE}{NO}", [2, 4, 5]),
    ],
)
def test_groups(text: str, lines: list[int]) -> None:
    assert on(text) == lines


@pytest.mark.parametrize(
    ("target", "lines"),
    [
        ("/", [2]),
        ("/a", [3, 4]),
        ("/ab/", [3, 4]),
        ("/a/b", [5]),
        ("/x.pdf", [6]),
        ("/%61/b", [5]),
        ("/z/../a", [3, 4]),
    ],
)
def test_the_longest_path_applies(target: str, lines: list[int]) -> None:
    text = (
        "User-agent: *\nContent-Usage: train-ai=n\nContent-Usage: /a train-ai=y\nContent-Usage: /a search=n\n"
        "Content-Usage: /a/b train-ai=y\nContent-Usage: /*.pdf$ train-ai=y\n"
    )
    assert on(text, target) == lines


def test_of_equally_long_paths_the_most_restrictive_decides() -> None:
    body = b"User-agent: *\nContent-Usage: /a train-ai=y\nContent-Usage: /a train-ai=n\n"
    body += b"Content-Usage: /a train-ai = n\nContent-Usage: /a* train-ai = y\n"  # malformed, so ignored
    decision = UsageStatements(body, ["ai-train"]).decide("http://town.example/a", "FooBot")
    assert decision.rule == (3, "Content-Usage: /a train-ai=n")


def test_a_line_for_every_robot_does_not_weaken_a_group() -> None:
    no, yes = "User-agent: *\nContent-Usage: /a train-ai=n\n", "Content-Usage: /a/b train-ai=y\n"
    own = UsageStatements(f"{no}\n{yes}".encode(), ["ai-train"])
    assert not own.forbids(
        ORIGIN, "/a/b", "FooBot"
    )  # by RFC 9309 the line is in the group, with a longer path
    other = UsageStatements(f"User-agent: BarBot\nDisallow:\n\n{yes}\n{no}".encode(), ["ai-train"])
    assert other.forbids(ORIGIN, "/a/b", "FooBot")


def test_too_many_statements_are_a_no_to_every_use() -> None:
    body = b"User-agent: *\n" + b"Content-Signal: search=yes\n" * 1_001
    statements = UsageStatements(body, ["search"])
    assert len(statements.all) == 1_001
    assert not statements.forbids(ORIGIN, "/robots.txt", "FooBot")
    assert statements.decide("http://town.example/", "FooBot").rule == (1_002, "Content-Signal: search=yes")
    assert not UsageStatements(body[:-30], ["search"]).forbids(ORIGIN, "/", "FooBot")
    with_paths = b"Content-Usage: / search=y\n" * 1_001
    assert UsageStatements(with_paths, ["search"]).forbids(ORIGIN, "/", "FooBot")


def test_a_path_with_too_many_stars_is_a_no_to_every_use() -> None:
    few, many = (b"User-agent: *\nContent-Usage: /%s search=y\n" % (b"*a" * count) for count in (20, 21))
    assert not UsageStatements(few, ["search"]).forbids(ORIGIN, "/", "FooBot")
    assert UsageStatements(many, ["search"]).forbids(ORIGIN, "/", "FooBot")
    longer_path = many + b"Content-Usage: / search=y\n"
    assert UsageStatements(longer_path, ["search"]).forbids(ORIGIN, "/", "FooBot")


def test_facts_are_limited() -> None:
    assert len(UsageStatements(NO.encode() * 50).facts("http://town.example/", "FooBot")) == 20


def test_a_file_without_statements_takes_little_memory() -> None:
    assert UsageStatements(b"User-agent: *\nDisallow: /a\n" * 1_000).size == 500
    names = b"".join(b"User-agent: %d\nDisallow: /a\n" % number for number in range(1_000))
    assert UsageStatements(names + NO.encode()).size > 100_000
    no_statement = b"# license\n" + b"User-agent: *\nDisallow: /a\n" * 1_000
    UsageStatements(no_statement)  # what Python makes at first use is not the file's
    tracemalloc.start()
    statements = UsageStatements(no_statement)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert statements.size == 500
    assert taken < 10_000


@given(st.text("ab*$/?", max_size=8), st.text("ab$/?", max_size=10))
def test_paths_match_as_in_rfc_9309(path: str, target: str) -> None:
    anchored = path.endswith("$")
    pattern = "".join(".*" if char == "*" else re.escape(char) for char in path.removesuffix("$"))
    expected = re.match(pattern + ("\\Z" if anchored else ""), target) is not None
    assert matches(path, target) == expected


LINES = st.sampled_from(
    [
        "User-agent: *", "User-agent: FooBot", "User-agent:", "Disallow: /a", "Disallow:", "", " \t", "# x",
        "x", "License: x", "License: https://town.example/", "Content-Signal: ai-train=no",
        "content-signal:search=yes", "Content-Usage: train-ai=n", "Content-Usage: /a* train-ai=y",
        "Content-Usage: /a$ search=n",
        "Content-Usage:", "Content-Usage: /%zz/../é train-ai=n", "Sitemap: x", "Content-Signal",
        "\ufeffContent-Signal: search=no",
    ]
)  # fmt: skip


@given(
    st.lists(LINES, max_size=15).map("\n".join).map(str.encode)
    | st.binary(max_size=60).map(b"License:".__add__),
    st.text(max_size=10).map("/".__add__),
    st.sampled_from(["FooBot", "BarBot", "*", ""]),
)
def test_any_file_is_read_without_an_exception(body: bytes, target: str, robot: str) -> None:
    statements = UsageStatements(body, ["search", "ai-train"])
    found = statements.on(target, robot)
    assert [one.line for one in found] == sorted({one.line or 0 for one in found})
    refused = any(one.says(purpose) is False for one in found for purpose in ("search", "ai-train"))
    if target != "/robots.txt":
        assert statements.forbids(ORIGIN, target, robot) == refused
    # A line at the end for every robot never takes a no back.
    more = UsageStatements(body + b"\n\nContent-Signal: ai-train=yes, search=yes\n", ["search", "ai-train"])
    if statements.all:
        assert more.forbids(ORIGIN, target, robot) >= statements.forbids(ORIGIN, target, robot)


# --- the docs

PAGE = (ROOT / "docs" / "usage.md").read_text()


def words_in(cell: str) -> set[str]:
    return set(re.findall(r"`([\w-]+)(?:: 1)?`", cell))


def test_the_docs_map_the_words_of_the_vocabularies_as_the_code_does() -> None:
    rows = {
        cells[0].strip("` "): cells[1:]
        for line in PAGE.splitlines()
        if len(cells := line.strip("|").split("|")) == 4
    }
    for purpose in PURPOSES:
        signal, usage, pages = map(words_in, rows[purpose])
        assert signal == {word for word, about in WORDS["content-signal"].items() if purpose in about}
        assert usage == {word for word, about in WORDS["content-usage"].items() if purpose in about}
        assert pages == {kind for kind, about in REFUSALS.items() if about == purpose}


def test_the_docs_have_every_value_of_the_word_use() -> None:
    assert set(re.findall(r"`use=(\w+)`", PAGE)) == set(USES)


def test_a_field_that_is_not_ascii_is_another_field() -> None:
    body = "License: http://town.example/\nLıcense: http://town.example/\nContent-ſignal: search=no\n"
    assert [one.kind for one in UsageStatements(body.encode()).all] == ["license"]
