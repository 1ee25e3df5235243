"""Local servers for real crawls; each keeps a log of what it was asked."""

from tests.sites.proxy import ForwardProxy
from tests.sites.site import Answer, Hit, Site, page

__all__ = ["Answer", "ForwardProxy", "Hit", "Site", "page"]
