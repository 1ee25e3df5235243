"""`scrapy_norobots.waiting_room` without a crawl."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest
from scrapy import Request, signals
from scrapy.http import TextResponse
from scrapy.settings import Settings

from scrapy_norobots import NoRobotsMiddleware, RobotsForbidden
from scrapy_norobots.downloader import RobotsDownloader
from scrapy_norobots.internals import missing_internals
from scrapy_norobots.waiting_room import waiting_room
from tests.unit.test_circuit_breaker import can_wait_for_deferreds

needs_deferreds = pytest.mark.skipif(
    not can_wait_for_deferreds(), reason="this version of Scrapy awaits no Deferred where no reactor runs"
)


ROBOTS = TextResponse("http://town.example/robots.txt", body=b"User-agent: foobot\nDisallow: /back/\n")


def mock_crawler(engine: Any = None, **settings: Any) -> MagicMock:
    """A mock crawler as in a user's unit test of a middleware."""
    crawler = MagicMock()
    crawler.settings = Settings({"ROBOTSTXT_OBEY": True, "USER_AGENT": "FooBot", **settings})
    crawler.signals.send_catch_log_async = AsyncMock(return_value=[])
    crawler.engine = engine or MagicMock()
    crawler.engine.download_async = AsyncMock(return_value=ROBOTS)
    return crawler


def check_that_it_obeys(crawler: Any) -> None:
    async def check() -> None:
        middleware = NoRobotsMiddleware.from_crawler(crawler)
        assert await middleware.process_request(Request("http://town.example/open")) is None
        with pytest.raises(RobotsForbidden) as caught:
            await middleware.process_request(Request("http://town.example/back/"))
        assert caught.value.decision.robot == "FooBot"  # and not the name of a mock spider

    asyncio.run(check())
    crawler.engine.download_async.assert_awaited_once()


@needs_deferreds
@pytest.mark.parametrize(
    "engine",
    [MagicMock(), MagicMock(spec=["download_async"]), SimpleNamespace()],
    ids=["mock", "mock without a downloader", "object"],
)
def test_obeys_with_a_mock_engine(engine: Any, caplog: pytest.LogCaptureFixture) -> None:
    check_that_it_obeys(mock_crawler(engine))
    assert caplog.text.count("DOWNLOADER is not scrapy_norobots.RobotsDownloader") == 1


@needs_deferreds
@pytest.mark.skipif(not hasattr(signals, "robots_parsed"), reason="Scrapy 2.18 sends that signal first")
def test_a_signal_that_cannot_be_sent_is_logged_and_the_request_continues(
    caplog: pytest.LogCaptureFixture,
) -> None:
    crawler = mock_crawler()
    crawler.signals = MagicMock()  # its return value cannot be awaited
    check_that_it_obeys(crawler)
    (record,) = (record for record in caplog.records if record.levelname == "ERROR")
    assert record.getMessage().startswith(
        "The robots_parsed signal could not be sent, but robots.txt is obeyed: TypeError("
    )
    assert record.exc_info


def test_a_mock_downloader_has_no_waiting_room() -> None:
    request = Request("http://town.example/")
    room = waiting_room(mock_crawler())
    assert not room.must_wait(request)
    with room.hold(None, request) as turn:
        assert not asyncio.run(turn())


@pytest.mark.parametrize("name", ["active", "total_concurrency"])
def test_a_downloader_without_an_internal_name_behaves_like_scrapys(name: str) -> None:
    """Only names that Scrapy's own methods do not use can be missing here."""
    crawler = mock_crawler()

    class Lacking(RobotsDownloader):
        def __getattribute__(self, wanted: str) -> Any:
            if wanted == name:
                raise AttributeError(wanted)
            return super().__getattribute__(wanted)

    downloader = Lacking.__new__(Lacking)
    downloader.is_in_use = False
    crawler.engine.downloader = downloader
    assert f"downloader.{name}" in missing_internals(crawler)
    room = waiting_room(crawler)
    assert not isinstance(room, RobotsDownloader)
    assert not downloader.is_in_use
