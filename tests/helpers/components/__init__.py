"""Components like those of users, by the setting that lists them.

These are middlewares, download handlers, schedulers, downloaders, and parsers of robots.txt. Most stand for
what real projects do: render pages, rotate proxies, log in first. Others fail in a way that the plugin must
survive.
"""
