"""`Sharing`: one download of a robots.txt for all who share a store.

What the store has of an origin counts, if it is fresh. If not, the first to claim the origin downloads its
robots.txt and saves what came of it, failures too; the others look again from time to time, but not for
longer than that download could take. A claim is short and renewed while the download goes on, so that the
origin of one who died is soon free again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from scrapy_norobots import compat

if TYPE_CHECKING:
    from scrapy_norobots.access import Access, Judge
    from scrapy_norobots.standard import Origin
    from scrapy_norobots.stores import Store

    # Gets what is known of an origin, and returns what is known after a download.
    Download = Callable[[Access | None], Awaitable[Access]]

logger = logging.getLogger(__name__)

# How long a claim lasts, and how often it is renewed, in seconds.
CLAIM = 30.0
_RENEWAL = CLAIM / 3

# How long to wait, in seconds, before looking again for what another downloads: at first, and at most; and
# how much waiting is worth a line in the log.
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0
_LONG_WAIT = 5.0


class Sharing:
    """A store, as the crawl uses it.

    `longest` is how many seconds a download can take; `is_closing` tells whether the crawl is about to end,
    and others should not be waited for.
    """

    def __init__(self, store: Store, judge: Judge, *, longest: float, is_closing: Callable[[], bool]) -> None:
        self._store = store
        self._judge = judge
        self._longest = longest
        self._is_closing = is_closing

    async def load(
        self,
        origin: Origin,
        known: Access | None,
        download: Download,
    ) -> tuple[Access, bool]:
        """Return what may be fetched at an origin, and whether it came from the store.

        `known` is what was known before, and is no longer fresh; `download` gets what is known by then.
        """
        waited, pause, has_told = 0.0, _FIRST_PAUSE, False
        while True:
            stored = await self._recall(origin, known)
            if stored is not None:
                # What came while we waited counts for us, however short its time is.
                if stored.lifetime > 0 or waited:
                    return stored, True
                known = stored
            if waited >= self._longest or self._is_closing():
                return await self._download(origin, known, download), False
            if await self._store.claim(origin, CLAIM):
                return await self._download_for_all(origin, known, download)
            if waited >= _LONG_WAIT and not has_told:
                has_told = True
                logger.info("Another process has claimed the robots.txt of %s; waiting for it", origin)
            await compat.sleep(pause)
            waited += pause
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def close(self) -> None:
        """Close the store."""
        await self._store.close()

    async def _recall(self, origin: Origin, known: Access | None) -> Access | None:
        """Return what the store has, if it is newer than what is known."""
        snapshots = await self._store.load(origin)
        now = time.time()
        if not snapshots or not all(self._judge.freshness.has_an_age(one, now) for one in snapshots):
            return None
        if known is not None and snapshots[-1].time <= known.snapshots[-1].time:
            return None
        return self._judge.recall(snapshots, now)

    async def _download_for_all(
        self,
        origin: Origin,
        known: Access | None,
        download: Download,
    ) -> tuple[Access, bool]:
        """Download what is claimed, and end the claim."""
        try:
            loaded = await self._download_while_claimed(origin, known, download)
        except Exception:
            await self._store.release(origin)
            raise
        await self._store.release(origin)
        return loaded

    async def _download_while_claimed(
        self,
        origin: Origin,
        known: Access | None,
        download: Download,
    ) -> tuple[Access, bool]:
        renewal = compat.spawn(self._renew(origin))
        try:
            stored = await self._recall(origin, known)
            if stored is not None and stored.lifetime > 0:
                return stored, True  # another has, between our look and our claim
            return await self._download(origin, stored or known, download), False
        finally:
            compat.cancel(renewal)

    async def _download(
        self,
        origin: Origin,
        known: Access | None,
        download: Download,
    ) -> Access:
        access = await download(known)
        if not access.snapshots[-1].local_failure:
            until = self._judge.freshness.kept_until(access.lifetime, access.snapshots[-1])
            await self._store.save(access.snapshots, until)
        return access

    async def _renew(self, origin: Origin) -> None:
        while True:
            await compat.sleep(_RENEWAL)
            await self._store.claim(origin, CLAIM)
