"""Log lines about a crawl, and about its settings."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from scrapy_norobots.scrapy_api.log import LOGGED_MAX, CrawlLog, Named, SettingError
from scrapy_norobots.standard import Origin


def test_each_line_names_the_spider(caplog: pytest.LogCaptureFixture) -> None:
    crawler: Any = SimpleNamespace(spider=object())
    CrawlLog(crawler, logging.getLogger("town"))(logging.WARNING, "%d pages", 3)
    (record,) = caplog.records
    assert record.getMessage() == "3 pages"
    assert record.__dict__["spider"] is crawler.spider


def test_the_first_origins_are_named() -> None:
    named = Named()
    origins = [Origin("http", f"{number}.town.example", 80) for number in range(LOGGED_MAX + 1)]
    assert [named.take(origin) for origin in origins] == [True] * LOGGED_MAX + [False]
    assert named.is_full
    assert not named.take(origins[0])  # it has been named


@pytest.mark.parametrize("name", ["asyncio", "twisted"])
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (SettingError("NOROBOTS_TTL = %d: must be a number"), "NOROBOTS_TTL = %d: must be a number"),
        (ValueError("of a user"), "the task failed: 1"),
    ],
)
def test_only_the_traceback_of_an_invalid_setting_is_not_logged(
    name: str, error: ValueError, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    try:
        raise error
    except ValueError:
        logging.getLogger(name).exception("the task failed: %d", 1)
    (record,) = caplog.records
    assert record.getMessage() == text
    assert bool(record.exc_info) is not isinstance(error, SettingError)
