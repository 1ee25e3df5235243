"""Log lines about a crawl, and about its settings."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from scrapy_norobots.scrapy_api.log import LOGGED_MAX, Named, SettingError, crawl_log


def test_each_line_names_the_spider(caplog: pytest.LogCaptureFixture) -> None:
    crawler: Any = SimpleNamespace(spider=object())
    crawl_log(crawler, logging.getLogger("town"))(logging.WARNING, "%d pages", 3)
    (record,) = caplog.records
    assert record.getMessage() == "3 pages"
    assert record.__dict__["spider"] is crawler.spider


def test_lines_about_the_first_subjects_keep_their_level() -> None:
    named = Named()
    levels = [named.level(number, logging.WARNING) for number in range(LOGGED_MAX + 1)]
    assert levels == [logging.WARNING] * LOGGED_MAX + [logging.DEBUG]
    assert named.level(0, logging.INFO) == logging.INFO


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
