"""`ExpiredRules`: which requests go by rules that have expired since they were loaded for these requests.

A request whose rules expire before it is sent waits for a new robots.txt. If no request went by expired
rules, a file whose lifetime is shorter than such a wait would be loaded for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from scrapy import Request

    from scrapy_norobots.rules.access import Access
    from scrapy_norobots.standard import Origin


class ExpiredRules:
    """The requests of one crawl that go by expired rules: one for each robots.txt that was loaded again."""

    def __init__(self) -> None:
        self._used_up: set[Origin] = set()  # here one request has gone, and others must not
        self._accesses: WeakKeyDictionary[Request, Access] = WeakKeyDictionary()

    def has_begun_to_load(self, origin: Origin) -> None:
        """Take note that the robots.txt of an origin is loaded again."""
        self._used_up.discard(origin)

    def lets_go(self, request: Request, origin: Origin, latest: Access, *, has_reloaded: bool) -> bool:
        """Return whether a request goes by the latest access of its origin, which has expired.

        `has_reloaded` says whether robots.txt has already been loaded again for the request.
        """
        if latest.lifetime > 0 and (not has_reloaded or origin in self._used_up):
            return False
        self._used_up.add(origin)
        self._accesses[request] = latest
        return True

    def pop(self, request: Request) -> Access | None:
        """Return the expired access that a request goes by, once; None if it goes by none."""
        return self._accesses.pop(request, None)
