"""What a crawl says of itself: while it runs, of files with lines that count for nobody; at its end, in all.

`CrawlReport` is what the middleware knows. It counts in a `Tally`, in bounded memory; at the end `facts` puts
the counts into words and `page` makes the HTML file of them. Imports run one way:
faults <- tally <- facts <- page <- crawl, with files beside them.
"""

from scrapy_norobots.report.crawl import CrawlReport, spider_name

__all__ = ["CrawlReport", "spider_name"]
