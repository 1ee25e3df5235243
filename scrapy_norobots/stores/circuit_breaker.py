"""`CircuitBreaker`: keep the crawl running when its store fails.

The first failure is one WARNING and opens the circuit: for `PAUSE` seconds no call reaches the store. After
each pause, one call tests the store; when it works again, that is one WARNING too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, TypeVar

from twisted.internet.defer import CancelledError

from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.standard import Origin
from scrapy_norobots.standard.decision import printable
from scrapy_norobots.stores import Locked, Store, error_text

logger = logging.getLogger(__name__)

# How long a call may take, and how long the circuit stays open after a failure, in seconds.
TIMEOUT, PAUSE = 5.0, 5.0

_T = TypeVar("_T")


class CircuitBreaker:
    """A `Store` that wraps another. While the inner store fails, this one is empty and all locks are free.

    `name` is the name of the store in the log; `on_failure` is called for each failure.
    """

    def __init__(self, store: Store, name: str, on_failure: Callable[[], None]) -> None:
        self._store = store
        self._name = name
        self._on_failure = on_failure
        # The method that failed, until a call of it succeeds: a full disk can still be read.
        self._failing = ""
        self._open_until = 0.0

    async def load(self, origin: Origin) -> tuple[Snapshot, ...]:
        return await self._try("load", lambda: self._store.load(origin), ())

    async def lock(self, origin: Origin, seconds: float) -> Locked:
        return await self._try("lock", lambda: self._store.lock(origin, seconds), Locked(True, ()))

    async def save(self, snapshots: Sequence[Snapshot], until: float) -> None:
        await self._try("save", lambda: self._store.save(snapshots, until), None)

    async def unlock(self, origin: Origin) -> None:
        # Few crawls unlock, so the next lock too shows that it works again.
        await self._try("lock", lambda: self._store.unlock(origin), None)

    async def close(self) -> None:
        self._open_until = float("inf")
        with suppress(Exception):  # the crawl is over, and nothing is lost
            await compat.within(TIMEOUT, self._store.close())

    async def _try(self, method: str, call: Callable[[], Coroutine[Any, Any, _T]], fallback: _T) -> _T:
        if monotonic() < self._open_until:
            return fallback
        if is_test := bool(self._failing):  # the others do not wait for its result
            self._open_until = monotonic() + TIMEOUT + PAUSE
        try:
            result = await compat.within(TIMEOUT, call())
        except CancelledError:  # of Twisted: the caller no longer needs the result
            raise
        except Exception as exc:  # each library has its own errors
            self._failed(method, exc)
            return fallback
        if is_test:
            self._open_until = 0.0
            if method == self._failing:
                self._failing = ""
                logger.warning("%s works again and is in use", self._name)
        return result

    def _failed(self, method: str, exc: Exception) -> None:
        self._open_until = monotonic() + PAUSE
        self._on_failure()
        if not self._failing:
            logger.warning(
                "%s failed (%s): the crawl continues without the store, and tries it again every few seconds",
                self._name,
                printable(": ".join(filter(None, (type(exc).__name__, error_text(exc))))),
            )
        self._failing = method
