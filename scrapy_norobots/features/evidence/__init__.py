"""Evidence: what each robots.txt said when a page was requested, and what the crawl decided by it.

`Evidence` in `recorder` puts records into a queue, and never waits. A thread (`writer`) writes them: answers
to requests for robots.txt as WARC records (`answers`), decisions as lines of JSON (`decisions`). `judging`
makes every decision of a run again, and `audit` checks that a run is whole. `fields` has what all of them
need to know about the files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_norobots.features.evidence.recorder import Evidence, EvidenceConfig

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_norobots.events import Events
    from scrapy_norobots.settings import Config


def subscribe(crawler: Crawler, config: Config, events: Events) -> None:
    """Record the evidence of a crawl if ``NOROBOTS_EVIDENCE`` is set."""
    evidence = EvidenceConfig.from_settings(crawler.settings)
    if evidence.folder and crawler.spider is not None:  # the shell has no crawl to record
        Evidence(crawler, config, evidence).subscribe(events)
