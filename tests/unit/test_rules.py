"""Rules: what they forbid, and which of them does, by its place in the record."""

from __future__ import annotations

import random

import pytest

from scrapy_norobots.standard import Origin
from scrapy_norobots.standard.rules import RuleSet, first_of_prefixes

HERE = Origin("http", "garden.example", 80)
THERE = Origin("https", "garden.example", 443)


def first_that_forbids(values: list[str], origin: Origin | None, target: str) -> int | None:
    """Return the index of the first value that forbids a target."""
    prefix = RuleSet(values).match(origin, target)
    return None if prefix is None else first_of_prefixes(values, origin)[prefix]


@pytest.mark.parametrize(
    ("values", "target", "index"),
    [
        ([], "/", None),
        ([""], "/", None),
        (["", "/a"], "/a", 1),
        (["/a"], "/", None),
        (["/a/b", "/a", "/a"], "/a/b", 1),
        (["help", "/help"], "/help/me", 0),
        (["/help", "help"], "/help/me", 0),
        (["/%61", "/a"], "/a", 0),
        (["/a", "/%61"], "/%61", 1),
        (["mailto:a", "/a"], "/a", 1),
        (["/"], "/robots.txt", None),
        (["/"], "/x/../%72obots.txt", None),
        (["/"], "/robots.txt?", 0),
        # forms of rule and target (U6)
        (["/é"], "/%c3%a9", 0),
        (["/%c3%a9"], "/é", 0),
        (["/a b"], "/a%20b", 0),
        (["/a|b"], "/a%7Cb", 0),
        (["/a%7cb"], "/a|b", 0),
        (["/b"], "/a/../b", 0),
        (["/a/../b"], "/b", 0),
        (["/b"], "/a/./b", None),
        (["/a"], "/\udce9", None),
        (["/%E9"], "/\udce9x", 0),
        (["/\udce9"], "/%e9", 0),
        (["/%25"], "/%", 0),
    ],
)
def test_a_target_is_forbidden_by_a_rule(values: list[str], target: str, index: int | None) -> None:
    for origin in (HERE, None):
        assert first_that_forbids(values, origin, target) == index


def test_whole_urls_apply_to_their_origin_after_any_question() -> None:
    values = ["/a", "http://garden.example/b", "HTTPS://garden.example:443/c", "http://garden.example/%61"]
    rules = RuleSet(values)
    for _ in range(2):
        assert rules.match(HERE, "/b") == "/b"
        assert rules.match(HERE, "/c") is None
        assert rules.match(THERE, "/c") == "/c"
        assert rules.match(THERE, "/b") is None
        assert rules.match(None, "/b") is None
        assert rules.match(THERE, "/a") == rules.match(None, "/%61") == "/a"
    assert first_of_prefixes(values, HERE) == {"/a": 0, "/b": 1, "/%61": 3}
    assert first_of_prefixes(values, THERE) == {"/a": 0, "/c": 2}
    assert first_of_prefixes(values, None) == {"/a": 0}
    assert RuleSet(["http://garden.example"]).match(HERE, "/x") == "/"
    assert RuleSet(["http://garden.example"]).match(HERE, "/robots.txt") is None


def test_rules_are_equal_if_they_forbid_the_same() -> None:
    values = ["/a", "help", "http://garden.example/b"]
    assert RuleSet(values) == RuleSet(values)
    assert RuleSet(values) != values
    assert (RuleSet(values) == values) is False
    assert RuleSet(values) != RuleSet(values[:2])
    assert RuleSet(["/a", "/b"]) == RuleSet(["/b", "/a", "/a/c"])
    assert RuleSet(["/a"]) != RuleSet(["/b"])
    asked = RuleSet(values)
    asked.match(HERE, "/b")
    assert asked == RuleSet(values)


@pytest.mark.parametrize("count", [1, 30, 3_000])
def test_look_ups_give_the_same_result_as_trying_each_rule(count: int) -> None:
    some = random.Random(count)

    def path(longest: int) -> str:
        return "/" + "".join(some.choices("ab/", k=some.randrange(longest)))

    values = [path(12) for _ in range(count)]
    rules = RuleSet(values)
    for _ in range(300):
        target = path(20)
        begins = [value for value in values if target.startswith(value)]
        assert rules.match(None, target) == (min(begins, key=len) if begins else None)
