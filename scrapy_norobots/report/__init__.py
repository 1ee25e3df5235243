"""What a crawl reports: log lines and stats while it runs, a summary and report files at its end.

`CrawlReport` is the way in. It counts in `Counters`, in bounded memory; at the end `facts` puts the counts
into words, `listing` lists robots.txt files, and `page` renders the HTML file. Imports run one way:
ineffective <- counters <- listing <- facts <- page <- crawl, with files beside them.
"""

from scrapy_norobots.report.crawl import CrawlReport, spider_name

__all__ = ["CrawlReport", "spider_name"]
