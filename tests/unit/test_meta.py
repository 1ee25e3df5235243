"""What tags and headers ask of a robot; `test_clauses` has what M1 to M4 say of them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_norobots.standard import RobotsMeta


@given(st.text(), st.lists(st.text()))
def test_headers_and_tags_of_any_text(robot: str, texts: list[str]) -> None:
    plain = RobotsMeta.read(robot, pairwise(texts), texts)
    both = RobotsMeta.read(robot, pairwise(texts), [*texts, "none"])
    assert (both.index, both.follow) == (False, False)
    assert plain.index >= both.index
    assert plain.follow >= both.follow


def test_a_header_for_robots_is_for_everybody() -> None:
    assert not RobotsMeta.read("FooBot", headers=["otherbot: nofollow, robots: noindex"]).index
    assert RobotsMeta.read("FooBot", headers=["otherbot: nofollow, robots: noindex"]).follow


@pytest.mark.parametrize("name", ["author", "Description", " generator "])
def test_what_all_pages_have_is_no_robots_name(name: str) -> None:
    assert RobotsMeta.read(f"{name.strip()}Bot/1.0", [(name, "None")]).index


def test_the_first_that_forbids_is_named() -> None:
    tags = [("robots", "index"), ("Robots", "noindex"), ("robots", "none"), ("potto", "none")]
    meta = RobotsMeta.read("Tamarin", tags, ["nofollow"])
    assert meta.noindex_by == '<meta name="Robots" content="noindex">'
    assert meta.nofollow_by == '<meta name="robots" content="none">'
    assert (
        RobotsMeta.read("Tamarin", [("robots", "index")], ["all", "none"]).nofollow_by == "X-Robots-Tag: none"
    )


@pytest.mark.parametrize(
    "source",
    [{"tags": [("robots", "none \x1b[31m" + 999 * " x")]}, {"headers": ["none, \u202e" + 999 * "x"]}],
    ids=list,
)
def test_what_forbids_is_named_in_a_short_line(source: dict[str, list[str]]) -> None:
    meta = RobotsMeta.read("Tamarin", **source)  # type: ignore[arg-type]
    assert meta.noindex_by is not None
    assert meta.noindex_by == meta.nofollow_by
    assert meta.noindex_by.isprintable()
    assert len(meta.noindex_by) < 250
