"""`ForwardProxy`: a real HTTP proxy for http URLs, which forwards and logs requests.

It resolves the names in `hosts` to sites of the tests, so that a crawl can use any name and default ports
without DNS, on this machine only.
"""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from urllib.parse import urlsplit

from tests.helpers.sites.site import Answer, Hit, Site

_NOT_PASSED_ON = {"proxy-authorization", "connection", "proxy-connection"}


class ForwardProxy(Site):
    """A context manager like `Site`; `hosts` maps host names to sites."""

    def __init__(self, hosts: Mapping[str, Site] | None = None) -> None:
        super().__init__()
        self._hosts = dict(hosts or {})

    def answer(self, hit: Hit) -> Answer:
        """Forward a request, and return its response."""
        url = urlsplit(hit.target)
        assert url.hostname is not None, "this is no request for a proxy"
        site = self._hosts.get(url.hostname)
        where = (site.host, site.port) if site else (url.hostname, url.port or 80)
        connection = http.client.HTTPConnection(*where, timeout=30)
        try:
            target = url._replace(scheme="", netloc="").geturl() or "/"
            headers = {name: value for name, value in hit.headers.items() if name not in _NOT_PASSED_ON}
            connection.request(hit.method, target, headers={**headers, "Via": "1.1 test-proxy"})
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
        kept = {name: value for name, value in response.getheaders() if name.lower() != "content-length"}
        return Answer(body, response.status, kept)
