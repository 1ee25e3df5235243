"""Evidence: what each robots.txt said when a page was requested, and what the crawl decided by it.

`Evidence` in `recorder` puts records into a queue, and never waits. A thread (`writer`) writes them: answers
to requests for robots.txt as WARC records (`answers`), decisions as lines of JSON (`fields`, which has what
all others need to know about the files). `judging` makes every decision of a run again, and `audit` checks
that a run is whole.
"""

from scrapy_norobots.features.evidence.recorder import Evidence, EvidenceConfig, subscribe

__all__ = ["Evidence", "EvidenceConfig", "subscribe"]
