"""Local servers for real crawls; each keeps a log of what it was asked."""

from tests.sites.site import Answer, Hit, Site, page

__all__ = ["Answer", "Hit", "Site", "page"]
