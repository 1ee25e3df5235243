"""The User-Agent of a page request; `test_fetch` in `crawls` shows the usual ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.settings import Settings

from scrapy_norobots.scrapy_api.identity import Identity

SETTING = {"USER_AGENT": "Setting/1"}
SPIDER = SimpleNamespace(user_agent="Spider/1")
DEFAULT = {"DEFAULT_REQUEST_HEADERS": {"user-agent": "Default/1"}}


@pytest.mark.parametrize(
    ("settings", "spider", "headers", "expected"),
    [
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
        "empty header", "header that is None", "other default headers", "default header that is None",
        "no default headers", "spider without one", "bytes", "none", "not ASCII", "not Unicode",
    ],
)  # fmt: skip
def test_unusual_user_agents_are_looked_up_as_scrapy_does(
    settings: dict[str, Any], spider: object, headers: dict[str, Any], expected: bytes
) -> None:
    crawler: Any = SimpleNamespace(
        settings=Settings(settings), spider=spider or SimpleNamespace(), engine=None
    )
    assert Identity(crawler, None).robot(Request("http://town.example/", headers=headers)) == expected
