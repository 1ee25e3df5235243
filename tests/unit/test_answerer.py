"""`Answerer`, and the addresses of URLs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request

from scrapy_norobots.commands.answerer import _PLAIN, Answerer, address
from scrapy_norobots.rules.access import Judge, StatusPolicy
from scrapy_norobots.rules.snapshot import Freshness, Snapshot
from scrapy_norobots.standard import Origin, RobotsTxt


def requested(url: str) -> Any:
    return Request(url).url


@given(st.from_regex(_PLAIN, fullmatch=True))
def test_a_plain_url_is_sent_as_it_is(url: str) -> None:
    assert address(url)[1] == requested(url) == url


@given(st.text(st.sampled_from("htps:/aA.%-1[]@é \t#?;~"), max_size=40))
def test_an_address_is_that_of_a_request(rest: str) -> None:
    url = f"http://{rest}"
    try:
        expected = requested(url)
        origin = Origin.of(expected)
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            address(url)
    else:
        assert address(url) == (origin, expected)


def test_json_has_the_first_names_of_a_long_record() -> None:
    """Otherwise each answer for such a site would be as long as its file."""
    body = b"".join(b"User-agent: bot%dx%s\n" % (n, b"y" * 1000) for n in range(1000)) + b"Disallow: /\n"
    origin = Origin("http", "town.example", 80)
    judge = Judge(StatusPolicy.of("allow"), Freshness(0, 60, 60, 60), RobotsTxt)
    access = judge.judge(Snapshot(origin, origin.robots_url, 0, 200, body=body))
    answer = Answerer(["bot7x" + "y" * 1000], as_json=True).answer(f"{origin}/", f"{origin}/", access)
    assert answer.count("bot") < 60
    assert len(answer) < 20_000
