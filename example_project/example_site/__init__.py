"""The web site of a library, served on this machine to be crawled.

``open_site`` serves a ``Library`` of generated pages and ``robots.txt`` on a local port.  The
``Site`` logs every request as a ``Visit``, and ``off_limits`` says whether a robot should have
sent it.  This package uses neither Scrapy nor the add-on, so it can check both.
``python -m example_site`` serves the site until Ctrl-C.
"""

from example_site.judge import OFF_LIMITS, off_limits, place
from example_site.pages import Library, Page
from example_site.server import Site, Visit, open_site

__all__ = ["OFF_LIMITS", "Library", "Page", "Site", "Visit", "off_limits", "open_site", "place"]
