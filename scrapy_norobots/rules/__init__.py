"""What a download of robots.txt means: rules, or everything is allowed, or nothing is; and for how long.

`snapshot` is what is kept of a download; an `access` is what it lets a robot fetch. `parser` reads the rules
of the file, `delay_values` its delays. Nothing here does I/O. May import `standard` and `scrapy_api`.
"""
