"""A small-town library's web site on this machine, made to be crawled.

``open_site`` serves a ``Library`` of generated pages and ``robots.txt`` on a local port; the
``Site`` logs every request as a ``Visit``; ``off_limits`` judges where a robot should not go.
Nothing here knows of Scrapy or of the add-on, so that it can check on both.
``python -m example_site`` serves it until Ctrl-C.
"""

from example_site.judge import OFF_LIMITS, off_limits, place
from example_site.pages import Library, Page
from example_site.server import Site, Visit, open_site

__all__ = ["OFF_LIMITS", "Library", "Page", "Site", "Visit", "off_limits", "open_site", "place"]
