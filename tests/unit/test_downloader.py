"""`scrapy_norobots.downloader` without a crawl."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import TextResponse
from scrapy.settings import Settings

from scrapy_norobots import NoRobotsMiddleware
from scrapy_norobots.downloader import INTERNALS, missing_internals, waiting_room
from tests.unit.test_circuit_breaker import can_wait_for_deferreds

needs_deferreds = pytest.mark.skipif(
    not can_wait_for_deferreds(), reason="this version of Scrapy awaits no Deferred where no reactor runs"
)


def mock_crawler(**settings: Any) -> MagicMock:
    """A crawler as a user's unit test of a middleware has it."""
    crawler = MagicMock()
    crawler.settings = Settings({"ROBOTSTXT_OBEY": True, "USER_AGENT": "FooBot", **settings})
    crawler.signals.send_catch_log_async = AsyncMock(return_value=[])
    body = b"User-agent: *\nDisallow: /back/\n"
    crawler.engine.download_async = AsyncMock(
        return_value=TextResponse("http://town.example/robots.txt", body=body)
    )
    return crawler


@needs_deferreds
def test_obeys_with_a_mock_engine(caplog: pytest.LogCaptureFixture) -> None:
    crawler = mock_crawler()

    async def check() -> None:
        middleware = NoRobotsMiddleware.from_crawler(crawler)
        assert await middleware.process_request(Request("http://town.example/open")) is None
        with pytest.raises(IgnoreRequest):
            await middleware.process_request(Request("http://town.example/back/"))

    asyncio.run(check())
    crawler.engine.download_async.assert_awaited_once()
    assert caplog.text.count("DOWNLOADER is not scrapy_norobots.RobotsDownloader") == 1


def test_a_mock_downloader_has_no_waiting_room() -> None:
    request = Request("http://town.example/")
    room = waiting_room(mock_crawler())
    assert not room.must_wait(request)
    with room.hold(None, request) as held:
        assert not asyncio.run(held.turn())


def test_an_engine_without_a_downloader_lacks_all_of_it() -> None:
    crawler = MagicMock()
    crawler.engine = object()
    missing = missing_internals(crawler)
    assert [name for name in missing if name.startswith("downloader.")] == [
        f"downloader.{name}" for name in INTERNALS["downloader"]
    ]
    assert not [name for name in missing if name.startswith("slot.")]
