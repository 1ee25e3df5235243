"""Local servers for real crawls; each logs its requests."""

from tests.sites.proxy import ForwardProxy
from tests.sites.site import Answer, Hit, Site, page

__all__ = ["Answer", "ForwardProxy", "Hit", "Site", "page"]
