"""`Guarded`: a store that may fail, used so that the crawl never does.

The first failure is one WARNING; then the store is left alone for a while, and the crawl goes on from memory,
as it would without one. Each while, one call finds out whether it works again; when it does, that is one
WARNING too. No call takes longer than a few seconds, whatever the store does.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from twisted.internet.defer import DeferredSemaphore

from scrapy_norobots import compat
from scrapy_norobots.standard.decision import printable

if TYPE_CHECKING:
    from scrapy_norobots.snapshot import Snapshot
    from scrapy_norobots.standard import Origin
    from scrapy_norobots.stores import Store

logger = logging.getLogger(__name__)

# In seconds: how long a call may take, and how long a store that failed is left alone.
PATIENCE = 5.0
REST = 5.0

# How many calls may be under way. The others wait without running out of patience: a disk that is slow
# under the load of a crawl has not failed.
_AT_ONCE = 32

_T = TypeVar("_T")


class Guarded:
    """A store that fails quietly: it knows nothing then, and lets everybody download.

    `name` is what the log calls it, `on_failure` is told of each failure, `clock` tells seconds that never go
    back.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        on_failure: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._name = name
        self._on_failure = on_failure
        self._clock = clock
        self._room = DeferredSemaphore(_AT_ONCE)
        # What does not work. A full disk can be read, so that a look-up says nothing of it.
        self._failing: set[str] = set()
        self._rests_until = 0.0
        self._is_closed = False

    async def load(self, origin: Origin) -> tuple[Snapshot, ...]:
        """Return the snapshots of an origin, oldest first."""
        return await self._try("load", lambda: self._store.load(origin), ())

    async def save(self, snapshots: Sequence[Snapshot], until: float) -> None:
        """Keep snapshots of one origin, if that is possible."""
        await self._try("save", lambda: self._store.save(snapshots, until), None)

    async def claim(self, origin: Origin, seconds: float) -> bool:
        """Whether an origin's robots.txt may be downloaded here."""
        return await self._try("claim", lambda: self._store.claim(origin, seconds), True)

    async def release(self, origin: Origin) -> None:
        """End a claim."""
        await self._try("release", lambda: self._store.release(origin), None)

    async def close(self) -> None:
        """Close the store; that it cannot be closed is worth a line, and no more."""
        self._is_closed = True
        try:
            await compat.within(PATIENCE, self._store.close())
        except Exception as exc:
            logger.info("%s could not be closed: %s", self._name, _said(exc))

    async def _try(self, what: str, call: Callable[[], Coroutine[Any, Any, _T]], otherwise: _T) -> _T:
        if self._rests():
            return otherwise
        await compat.waiting_for(self._room.acquire())
        try:
            if self._rests():  # by now
                return otherwise
            if not self._failing:
                return await compat.within(PATIENCE, call())
            # This call finds out; the others do not wait for it.
            self._rests_until = self._clock() + PATIENCE + REST
            result = await compat.within(PATIENCE, call())
            self._works(what)
        except Exception as exc:
            self._fails(what, exc)
            return otherwise
        else:
            return result
        finally:
            self._room.release()

    def _rests(self) -> bool:
        return self._is_closed or self._clock() < self._rests_until

    def _works(self, what: str) -> None:
        self._rests_until = 0.0
        self._failing.discard(what)
        if not self._failing:
            logger.warning("%s works again and is used", self._name)

    def _fails(self, what: str, exc: Exception) -> None:
        self._rests_until = self._clock() + REST
        self._on_failure()
        if not self._failing:
            logger.warning(
                "%s failed (%s); the crawl goes on from memory, and it is tried again from time to time",
                self._name,
                _said(exc),
            )
        self._failing.add(what)


def _said(exc: Exception) -> str:
    return printable(": ".join(filter(None, (type(exc).__name__, str(exc)))))
