"""Spiders for the crawls of the tests, by what they are for.

Crawls name them by path, as in ``pages.Pages``, the default, and the base
of almost all others: it sends the requests of a job, and records the pages and the requests that failed. What
a spider sees of a crawl is in its notes, which the test reads when the crawl is over.
"""
