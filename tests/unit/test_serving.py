"""Which requests for a robots.txt a snapshot can answer, and with what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from scrapy import Request, Spider

from scrapy_norobots.features.serving import answer, can_be_answered
from scrapy_norobots.rules.access import Judge, StatusPolicy
from scrapy_norobots.rules.snapshot import Freshness, Snapshot
from scrapy_norobots.standard import Origin, RobotsTxt

ORIGIN = Origin("http", "town.example", 80)
URL = ORIGIN.robots_url
JUDGE = Judge(StatusPolicy.of("koster1996"), Freshness(600, 86_400, 60, 7 * 86_400), RobotsTxt.parse)
FOUND = Snapshot(
    ORIGIN,
    "http://www.town.example/rules",
    0.0,
    200,
    headers={"content-type": "text/plain", "etag": '"\xe4"'},
    body=b"User-agent: *\n",
    from_site=True,
)


class Town(Spider):
    name = "town"

    def other(self, response: Any) -> None:
        """Callbacks are methods like this one."""


SPIDER = Town()


@pytest.mark.parametrize(
    "header",
    [
        "Authorization", "Cache-Control", "Cookie", "If-Match", "If-Modified-Since", "If-None-Match",
        "If-Unmodified-Since", "Pragma", "range",
    ],
)  # fmt: skip
def test_a_header_that_asks_for_something_else_cannot(header: str) -> None:
    assert not can_be_answered(Request(URL, headers={header: "x"}), SPIDER)


def test_a_stale_copy_is_no_answer() -> None:
    stale = JUDGE.judge(replace(FOUND, status=503, time=1.0), JUDGE.judge(FOUND))
    assert stale.stale
    assert answer(stale, Request(URL)) is None
