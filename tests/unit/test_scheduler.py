"""`RobotsScheduler` with a mock for the crawler, as in users' unit tests."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import MagicMock

from scrapy import Request
from scrapy.settings import Settings

from scrapy_norobots import RobotsScheduler
from tests.helpers.components.schedulers import MinimalScheduler
from tests.helpers.spiders.pages import Pages

SITE = "https://town.example"


def mock_crawler() -> MagicMock:
    return MagicMock(settings=Settings({"ROBOTSTXT_OBEY": True}), spider=Pages([]))


def test_the_scheduler_has_the_attributes_of_the_one_that_it_wraps() -> None:
    scheduler = RobotsScheduler.around(MinimalScheduler).from_crawler(mock_crawler())
    scheduler.enqueue_request(Request(SITE))
    assert len(scheduler._requests) == 1
    assert scheduler.has_pending_requests()
    assert not hasattr(scheduler, "df")
    assert not hasattr(RobotsScheduler.__new__(RobotsScheduler), "_requests")  # as when it is copied
    # Python looks for such names to find out what an object can do.
    assert not hasattr(RobotsScheduler(MagicMock(), SimpleNamespace(__special__=8)), "__special__")
    assert len(scheduler) == 1  # a scheduler without a length has at least one request
