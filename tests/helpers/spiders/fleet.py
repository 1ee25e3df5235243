"""A spider for scrapy-redis: several processes of it share one queue, and all that it has seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_redis.spiders import RedisMixin

from scrapy_norobots.features.crawl_delay import turns
from tests.helpers.spiders.pages import Pages

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from typing_extensions import Self

# What scrapy-redis's documentation has users set.
SETTINGS = {
    "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
    "SCHEDULER_PERSIST": True,
    "MAX_IDLE_TIME_BEFORE_CLOSE": 1,
}


class Worker(RedisMixin, Pages):  # type: ignore[misc]  # scrapy-redis is untyped
    """One process of a fleet: takes what is in Redis, and puts there what it finds."""

    name = "fleet"

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider: Self = super().from_crawler(crawler, *args, **kwargs)
        spider.setup_redis(crawler)
        turns._TIMEOUT = 60.0  # on a busy machine, an answer of Redis takes longer than a second
        return spider
