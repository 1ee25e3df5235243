"""The middleware and the scheduler with a mock for the crawler, as in users' unit tests."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest
from scrapy import Request
from scrapy.http import TextResponse
from scrapy.settings import Settings
from twisted.internet.defer import succeed

from scrapy_norobots import NoRobotsMiddleware, RobotsForbidden, RobotsScheduler
from tests.helpers.components.schedulers import MinimalScheduler
from tests.helpers.spiders.pages import Pages

SITE = "https://town.example"


def mock_crawler(**settings: Any) -> MagicMock:
    """Return a crawler whose engine downloads the same robots.txt from everywhere."""
    crawler = MagicMock(settings=Settings({"ROBOTSTXT_OBEY": True, **settings}), spider=Pages([]))
    crawler.signals.send_catch_log_async = AsyncMock()
    robots = TextResponse(f"{SITE}/robots.txt", body=b"User-agent: *\nDisallow: /back/\n")
    crawler.engine.download_async = AsyncMock(return_value=robots)
    crawler.engine.download = MagicMock(side_effect=lambda *_: succeed(robots))  # before Scrapy 2.14
    return crawler


def test_the_middleware_obeys_with_a_mock_crawler() -> None:
    async def work() -> None:
        middleware = NoRobotsMiddleware.from_crawler(mock_crawler())
        assert await middleware.process_request(Request(f"{SITE}/")) is None
        with pytest.raises(RobotsForbidden):
            await middleware.process_request(Request(f"{SITE}/back/"))

    asyncio.run(work())


def test_the_scheduler_without_the_middleware_passes_requests_through() -> None:
    crawler = mock_crawler()
    scheduler = RobotsScheduler.around(MinimalScheduler).from_crawler(crawler)
    scheduler.open(crawler.spider)
    requests = [Request(f"{SITE}/{number}") for number in range(3)]
    assert not scheduler.has_pending_requests()
    assert all(scheduler.enqueue_request(request) for request in requests)
    assert scheduler.has_pending_requests()
    assert [scheduler.next_request() for _ in range(4)] == [*requests, None]
    assert scheduler.close("finished") is None


def test_the_scheduler_has_the_attributes_of_the_one_that_it_wraps() -> None:
    scheduler = RobotsScheduler.around(MinimalScheduler).from_crawler(mock_crawler())
    scheduler.enqueue_request(Request(SITE))
    assert len(scheduler._requests) == 1
    assert not hasattr(scheduler, "df")
    assert len(scheduler) == 1  # a scheduler without a length has at least one request
