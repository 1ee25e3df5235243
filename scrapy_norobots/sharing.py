"""`Sharing`: one download of a robots.txt for all who share a store.

What the store has of an origin counts, if it is fresh. If not, the first to claim the origin downloads its
robots.txt and saves what came of it, failures too; the others look again from time to time, but not for
longer than that download could take. A claim that is not released, because its holder died, ends by itself.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from scrapy_norobots import compat

if TYPE_CHECKING:
    from scrapy_norobots.access import Access, Judge
    from scrapy_norobots.standard import Origin
    from scrapy_norobots.stores import Store

# How long to wait, in seconds, before looking again for what another downloads: at first, and at most.
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0


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
        download: Callable[[Access | None], Awaitable[Access]],
    ) -> tuple[Access, bool]:
        """Return what may be fetched at an origin, and whether it came from the store.

        `known` is what was known before, and is no longer fresh; `download` gets what is known by then.
        """
        began = time.time()
        patience = time.monotonic() + self._longest
        pause = _FIRST_PAUSE
        is_ours = False
        while True:
            stored = await self._recall(origin, known)
            if stored is not None:
                known = stored
                # What came while we waited counts for us, however short its time is.
                if stored.lifetime > 0 or stored.snapshots[-1].time >= began:
                    if is_ours:
                        await self._store.release(origin)
                    return stored, True
            if is_ours or time.monotonic() >= patience or self._is_closing():
                return await self._download(origin, known, download, is_ours), False
            is_ours = await self._store.claim(origin, self._longest)
            if not is_ours:
                await compat.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    async def close(self) -> None:
        """Close the store."""
        await self._store.close()

    async def _recall(self, origin: Origin, known: Access | None) -> Access | None:
        """Return what the store has, if it is newer than what is known."""
        snapshots = await self._store.load(origin)
        if not snapshots or (known is not None and snapshots[-1].time <= known.snapshots[-1].time):
            return None
        return self._judge.recall(snapshots, time.time())

    async def _download(
        self,
        origin: Origin,
        known: Access | None,
        download: Callable[[Access | None], Awaitable[Access]],
        is_ours: bool,
    ) -> Access:
        try:
            access = await download(known)
        except Exception:
            if is_ours:
                await self._store.release(origin)
            raise
        if not access.own_fault:
            until = self._judge.freshness.kept_until(access.lifetime, access.snapshots[-1])
            await self._store.save(access.snapshots, until)
        if is_ours:
            await self._store.release(origin)
        return access
