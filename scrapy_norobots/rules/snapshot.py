"""Snapshots: the stored facts of one download of a robots.txt.

A snapshot has facts only. The module `access` decides what they mean for the origin, so a snapshot has the
same meaning after a restart and on another machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scrapy_norobots.standard import Origin

# The headers that make a later download conditional, and the headers of that download that repeat them.
_CONDITIONS = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One download of an origin's robots.txt, including redirects.

    - `url` is the URL of the last hop.
    - `time` is when the download ended, or when a later 304 confirmed it, in seconds since the epoch. After
      a 304, `first_time` is when the confirmed download ended; else 0. Stores do not keep it.
    - `status` is the HTTP status of the response, `headers` a few of its headers with lower-case names, and
      `body` its decoded bytes.
    - If there was no usable response, `status` is None, `error` says why, and `exception` is the exception;
      stores do not keep `exception`.
    - `failures` is the number of failed downloads in a row, including this one.
    - `local_failure` is true if this process or its proxy failed, and not the site; stores do not keep such a
      snapshot.
    - `proxy` is the proxy of the page request, if the download failed because of it; stores do not keep it.
    - `from_site` is true if this process received `body` from the site; False for a snapshot from a store.
    """

    origin: Origin
    url: str
    time: float
    status: int | None = None
    error: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    failures: int = 0
    local_failure: bool = False
    proxy: str = field(default="", compare=False, repr=False)
    exception: Exception | None = field(default=None, compare=False, repr=False)
    from_site: bool = field(default=False, compare=False, repr=False)
    first_time: float = field(default=0.0, compare=False, repr=False)

    def conditions(self, url: str) -> dict[str, str]:
        """Return the headers for a download of `url` that make it conditional; none if this is another file.

        Only a response to such a download may be a 304 (RFC 9110, 15.4.5). A value with other characters than
        those of ASCII text is left out: download handlers send it as other bytes, or refuse it.
        """
        found = (
            (name, self.headers.get(header, "")) for header, name in _CONDITIONS.items() if url == self.url
        )
        return {name: value for name, value in found if value and value.isascii() and value.isprintable()}

    @property
    def is_unknown_host(self) -> bool:
        """Whether the name of the host did not resolve, so that there may be no such host."""
        # A store keeps only this text, which begins with the class: Twisted's, or Scrapy's from 2.15 on.
        return not self.local_failure and self.error.startswith(("DNSLookupError", "CannotResolveHostError"))
