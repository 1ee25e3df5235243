"""`Recent`: the requests that began to wait for a robots.txt a moment ago.

Each of them keeps a place of the crawl, as if it were being sent, if there was one left when it came. So
requests that come later do not overtake it, as long as its file comes soon.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy_norobots.waiting.slot_lines import Parked

# For so many seconds, the crawl keeps a place for a request whose robots.txt is being loaded, and takes no
# more requests of that origin. Most files come earlier; if one does not, nothing else waits for it.
PATIENCE = 1.0


class Recent:
    """The requests that began to wait in the last `PATIENCE` seconds; `places` is how many have a place."""

    def __init__(self) -> None:
        self._has_place: dict[Parked, bool] = {}
        self.places = 0

    def __len__(self) -> int:
        return len(self._has_place)

    @property
    def without_place(self) -> int:
        """How many have no place: the crawl looks ahead for them."""
        return len(self._has_place) - self.places

    @property
    def ends(self) -> float | None:
        """When the oldest of them is forgotten, in monotonic seconds; None if there is none."""
        return next(iter(self._has_place)).since + PATIENCE if self._has_place else None

    def add(self, parked: Parked, *, has_place: bool) -> None:
        """Add a request that begins to wait."""
        self._has_place[parked] = has_place
        self.places += has_place

    def has_place(self, parked: Parked) -> bool:
        """Return whether a request has a place."""
        self.forget_old()
        return self._has_place.get(parked, False)

    def forget(self, parked: Parked) -> None:
        """Forget a request, and free its place."""
        self.places -= self._has_place.pop(parked, False)

    def forget_old(self) -> None:
        """Forget those that came earlier."""
        now = monotonic()
        while (ends := self.ends) is not None and ends <= now:
            self.forget(next(iter(self._has_place)))
