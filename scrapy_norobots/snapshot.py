"""Snapshots: what is kept of one download of a robots.txt.

A snapshot is plain facts, without any judgement: what they mean for the origin is `access`'s business,
and a snapshot means the same after a restart or on another machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scrapy_norobots.standard import Origin


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One download of an origin's robots.txt, redirects included.

    `url` is where the last hop went. Either `status` is the HTTP status of the answer there, with its
    `body` (decompressed bytes) and a few of its `headers` (lower-case names), or it is None and `error`
    says in words why no answer came; `exception` is what was raised then, in the process that saw it (no
    store keeps it). `time` is when the download ended, or a later one confirmed it, in seconds since the
    epoch. `failures` is how many downloads in a row have failed by then, this one included. With
    `local_failure`, this process or its proxy failed and not the site, so no store keeps the snapshot.
    `from_site` says that this process received `body` from the site; one that a store kept is without it.
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
    exception: Exception | None = field(default=None, compare=False, repr=False)
    from_site: bool = field(default=False, compare=False, repr=False)

    @property
    def is_unknown_host(self) -> bool:
        """Whether the name of the host did not resolve, so that there may be no such host."""
        # Told by the text, which a store keeps; Twisted's exception, and Scrapy's from 2.15 on.
        return not self.local_failure and self.error.startswith(("DNSLookupError", "CannotResolveHostError"))
