"""What a crawl reports: log lines and stats while it runs, a summary and report files at its end.

`CrawlReport` counts in `Counters`, in bounded memory. At the end, `counters` makes plain data of the counts,
`listing` lists robots.txt files, `summary` says in words what to do, and `page` renders the report. Imports
run one way: ineffective <- summary, listing <- counters <- page <- crawl.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_norobots.features.report.crawl import CrawlReport

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_norobots.events import Events
    from scrapy_norobots.settings import Config


def subscribe(crawler: Crawler, config: Config, events: Events) -> None:
    """Report on a crawl. Raises `ValueError` if a path of ``NOROBOTS_REPORT`` cannot be written."""
    CrawlReport(crawler, config, events.started).subscribe(events)
