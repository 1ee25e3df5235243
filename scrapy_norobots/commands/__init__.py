"""Scrapy commands: ``robots-check``, ``-lint``, ``-audit`` and ``-store``, and Scrapy's own ``settings``.

Scrapy finds them by the package's entry points, inside and outside a project, and imports them whatever
command is run. So importing them must be fast and must install no reactor.
"""
