"""`statements`: one statement about the use of pages; each syntax, and what is malformed."""

from __future__ import annotations

import re
import sys
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
                *("ai_train=no", "ai-train:no"),
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
