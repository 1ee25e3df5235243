"""Log lines about a crawl."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from scrapy_norobots.scrapy_api.log import LOGGED_MAX, CrawlLog, Named
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
