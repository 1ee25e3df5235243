"""Evidence: what each robots.txt said when a page was requested, and what was decided by it.

`Evidence` is what a crawl calls; it puts records into a queue and never waits. A thread (`writer`) writes
them: the answers to requests for robots.txt as WARC records (`answers`), the decisions as lines of JSON
(`decisions`). `files` reads both again, and `audit` judges every decision anew. Imports run one way: fields
<- answers, decisions <- writer <- recorder, and fields <- files <- index <- audit.
"""

from scrapy_norobots.evidence.recorder import Evidence

__all__ = ["Evidence"]
