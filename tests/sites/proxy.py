"""`ForwardProxy`: a real HTTP proxy for http URLs; it passes requests on and keeps a log of them.

Names that it is given in `hosts` are resolved by it to a site of the tests, so that a crawl can use any name,
and default ports, without DNS and without leaving this machine.
"""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from urllib.parse import urlsplit

from tests.sites.site import Answer, Hit, Site

_NOT_PASSED_ON = {"proxy-authorization", "connection", "proxy-connection"}


class ForwardProxy(Site):
    """A context manager, as `Site` is; `hosts` maps host names to the sites that they are."""

    def __init__(self, hosts: Mapping[str, Site] | None = None) -> None:
        super().__init__()
        self._hosts = dict(hosts or {})

    def answer(self, hit: Hit) -> Answer:
        """Pass a request on and its answer back."""
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
