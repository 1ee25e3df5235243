"""Scrapy commands: ``robots-check``, ``robots-lint``, ``robots-audit`` and ``robots-store``.

Scrapy finds them by the package's entry points, inside and outside a project, and imports them whatever
command is run. So importing them must be fast and must install no reactor.
"""
