"""Evidence: what each robots.txt said when a page was requested, and what the crawl decided by it.

A crawl uses `Evidence` only, and `Made` for a decision. It puts records into a queue, and never waits. A
thread (`writer`) writes them: the answers to requests for robots.txt as WARC records (`answers`), the
decisions as lines of JSON (`decisions`). `files` reads both, and `audit` makes every decision again. Imports
run one way: fields <- answers, decisions <- writer <- recorder, and fields <- files <- index <- audit, which
also imports decisions.
"""

from scrapy_norobots.evidence.decisions import Made
from scrapy_norobots.evidence.recorder import Evidence

__all__ = ["Evidence", "Made"]
