"""`hold_lock`: the lock of an origin, held for as long as the work under it takes.

The lock is short and extended while the work goes on, so that the origin of a process that died is soon free.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from scrapy_norobots import compat

if TYPE_CHECKING:
    from scrapy_norobots.standard import Origin
    from scrapy_norobots.stores import Store

# How long a lock lasts, and how often it is extended, in seconds.
LOCK_SECONDS = 30.0
_EXTEND_EVERY = LOCK_SECONDS / 3


@asynccontextmanager
async def hold_lock(store: Store, origin: Origin) -> AsyncIterator[bool]:
    """Yield whether the lock of an origin is held inside the ``async with``."""
    if not await store.acquire_lock(origin, LOCK_SECONDS):
        yield False
        return
    extending = compat.spawn(_extend(store, origin))
    try:
        try:
            yield True
        finally:
            compat.cancel(extending)
    except Exception:
        await store.release_lock(origin)
        raise
    # After a cancellation nothing can be awaited, and the lock expires.
    await store.release_lock(origin)


async def _extend(store: Store, origin: Origin) -> None:
    while True:
        await compat.sleep(_EXTEND_EVERY)
        await store.acquire_lock(origin, LOCK_SECONDS)
