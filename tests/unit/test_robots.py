"""`robots`: which statements of a robots.txt apply to a URL and a robot."""

from __future__ import annotations

import re
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_norobots.features.usage.statements import UsageStatements
from scrapy_norobots.standard import Origin
from scrapy_norobots.standard.patterns import matches

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
    tracemalloc.start()
    statements = UsageStatements(no_statement)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert statements.size == 500
    assert taken < 10_000


@given(st.text("ab*$/", max_size=8), st.text("ab$/", max_size=10))
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
