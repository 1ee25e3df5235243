"""What a crawl reports: log lines and stats while it runs, a summary and report files at its end.

`CrawlReport` is the only class that other packages use. It counts in `Counters`, in bounded memory. At the
end, `facts` makes plain data of the counts, `listing` lists robots.txt files, and `page` renders the report
files. Imports run one way: ineffective <- counters <- listing <- facts <- page <- crawl; `crawl` also
imports files.
"""

from scrapy_norobots.report.crawl import CrawlReport, spider_name

__all__ = ["CrawlReport", "spider_name"]
