"""All that depends on the version of Scrapy, on its reactor, or on its internal names.

`compat` has the differences between versions and reactors, `internals` the internal names of Scrapy, and
`connections` those of download handlers. The others find what Scrapy knows: the User-Agent of a request, the
spider of a log line, the tags of a page. May import `standard` only.
"""
