"""The User-Agent of a page request, as Scrapy's own middlewares would set it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.settings import Settings

from scrapy_norobots.scrapy_api.identity import Identity

URL = "http://town.example/"


def identity(spider: object = None, robot: str | None = None, **settings: Any) -> Identity:
    crawler = SimpleNamespace(settings=Settings(settings), spider=spider or SimpleNamespace(), engine=None)
    return Identity(crawler, robot)  # type: ignore[arg-type]  # as much of a crawler as is asked


SETTING = {"USER_AGENT": "Setting/1"}
SPIDER = SimpleNamespace(user_agent="Spider/1")
DEFAULT = {"DEFAULT_REQUEST_HEADERS": {"user-agent": "Default/1"}}


@pytest.mark.parametrize(
    ("settings", "spider", "headers", "expected"),
    [
        (SETTING, None, {}, b"Setting/1"),
        (SETTING, SPIDER, {}, b"Spider/1"),
        (SETTING | DEFAULT, SPIDER, {}, b"Default/1"),
        (SETTING | DEFAULT, SPIDER, {"USER-AGENT": "Request/1"}, b"Request/1"),
        (SETTING, SPIDER, {"User-Agent": ""}, b""),
        (SETTING | DEFAULT, SPIDER, {"User-Agent": None}, b""),
        (SETTING | {"DEFAULT_REQUEST_HEADERS": {"Accept": "*/*"}}, None, {}, b"Setting/1"),
        (SETTING | {"DEFAULT_REQUEST_HEADERS": {"User-Agent": None}}, None, {}, b"Setting/1"),
        (SETTING | {"DEFAULT_REQUEST_HEADERS": None}, None, {}, b"Setting/1"),
        (SETTING, SimpleNamespace(user_agent=None), {}, b""),
        (SETTING, SimpleNamespace(user_agent=b"Spider/2"), {}, b"Spider/2"),
        ({"USER_AGENT": None}, None, {}, b""),
        ({"USER_AGENT": "Обезьяна/1"}, None, {}, "Обезьяна/1".encode()),
        ({"USER_AGENT": "half a pair \ud800"}, None, {}, b"half a pair ?"),
    ],
    ids=[
        "setting", "spider", "default headers", "request", "empty header", "header that is None",
        "other default headers", "default header that is None", "no default headers",
        "spider without one", "bytes", "none", "not ASCII", "not Unicode",
    ],
)  # fmt: skip
def test_the_user_agent_is_looked_up_in_scrapys_order(
    settings: dict[str, Any], spider: object, headers: dict[str, Any], expected: bytes
) -> None:
    assert identity(spider, **settings).robot(Request(URL, headers=headers)) == expected


def test_rules_are_chosen_by_robotstxt_user_agent() -> None:
    named = identity(robot="Catalogue", **SETTING)
    assert named.robot(Request(URL, headers={"User-Agent": "Request/1"})) == "Catalogue"


@pytest.mark.parametrize("robot", [None, ""])
def test_without_a_name_rules_are_chosen_by_the_user_agent(robot: str | None) -> None:
    assert identity(robot=robot, **SETTING).robot(Request(URL)) == b"Setting/1"
