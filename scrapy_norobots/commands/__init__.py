"""Scrapy commands: ``scrapy robots-check``, ``scrapy robots-lint`` and ``scrapy robots-store``.

Scrapy finds them by the package's entry points, inside and outside a project, and loads them for whatever
command is run: importing them must stay cheap and must install no reactor.
"""
