"""Local servers for real crawls; each logs its requests."""

from tests.helpers.sites.proxy import ForwardProxy
from tests.helpers.sites.site import Answer, Hit, Site, page

__all__ = ["Answer", "ForwardProxy", "Hit", "Site", "page"]
