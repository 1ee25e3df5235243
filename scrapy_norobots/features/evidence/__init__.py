"""Evidence: what each robots.txt said when a page was requested, and what the crawl decided by it.

`Evidence` puts records into a queue, and never waits. A thread (`writer`) writes them: the answers to
requests for robots.txt as WARC records (`answers`), the decisions as lines of JSON (`decisions`), each of
which names the digest of the one before (`chain`), in numbered files (`parts`). `judges` says what judged.
`gzip_file`, `warc` and `line_reader` read them, `runs` knows which of them belong together, `judging` makes
every decision of a run again, and `audit` checks that a run is whole. Imports run one way: fields, chain,
parts <- answers, decisions <- writer <- recorder, and fields <- gzip_file <- warc <- index <- judging <-
audit, which also import decisions, judges and runs.
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
