"""What a download of robots.txt means: rules, or everything is allowed, or nothing is; and for how long.

`snapshot` is what is kept of a download, `access` and `freshness` judge it, `parser` reads the file, and
`spellings` asks it about a URL. Nothing here does I/O. May import `standard` and `scrapy_api`.
"""
