"""Stores: keep snapshots between crawls, and share them between processes.

`Store` is the contract. For each origin, a store keeps the snapshots that the access was judged from, and a
lock: of all processes that share the store, one downloads a robots.txt and the others wait for it. A store
knows nothing of rules or freshness, and is used only for origins that are not in memory. `BrowsableStore`
adds what ``scrapy robots-store`` needs. `opening` opens the store that `NOROBOTS_STORE` names; `HeldLock`
holds a lock during a download.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.scrapy_api import compat
from scrapy_norobots.standard import Origin

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred
    from typing_extensions import Self

MEMORY = "memory"
# The schemes of store URLs: those of a file, whose path follows, and those of Redis.
FILE_SCHEMES = ("sqlite",)
REDIS_SCHEMES = (
    "redis", "rediss", "unix", "redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel",
)  # fmt: skip
# A store URL: its scheme, all before the last "@", and the rest.
_STORE_URL = re.compile(r"([\w+]*://|[\w+]*$|)(.*@)?(.*)", re.DOTALL)
# Where a store is: hosts with ports, and a service or a database, or a path. In a misspelt URL, a password
# may be in its place.
_HOST = r"(?:[\w.-]+|\[[\w:.]+\])(?::\d+)?"
_PLACE = re.compile(rf"(?:{_HOST}(?:,{_HOST})*)?(?:/[\w./-]*)?")
# As redis-py 6 lists the options of a connection in some errors.
_PASSWORD_IN_ERROR = re.compile(r"(\bpassword=).*?(?=, ?\w+=|\)>|$)", re.DOTALL)

# The largest robots.txt that any crawl accepts, in bytes.
LARGEST_FILE = 256 * 1024 * 1024

# How long a lock lasts, and how often its holder extends it, in seconds; the lock of a dead process expires.
LOCK_SECONDS = 30.0
_EXTEND_EVERY = LOCK_SECONDS / 3


class NotAStoreError(Exception):
    """`NOROBOTS_STORE` names something that is not a store, and that was not changed."""


class Locked(NamedTuple):
    """Whether this `Store` object holds the lock of an origin, and all its snapshots, oldest first."""

    is_held: bool
    snapshots: tuple[Snapshot, ...]


class Store(Protocol):
    """Keeps snapshots and locks of origins.

    Each call is one round trip, if the store is a server. No call blocks the event loop: slow work runs in a
    thread, with `compat.in_thread` if the store does not need asyncio, which may not run. A call that takes
    longer than `circuit_breaker.TIMEOUT` is cancelled. All methods may raise any exception of the store's
    library. An entry that cannot be read is a miss, not an error.
    """

    #: How many calls may run at once. None may have to wait for the others until it is cancelled.
    concurrent_calls: int

    async def load(self, origin: Origin) -> tuple[Snapshot, ...]:
        """Return the snapshots of an origin, oldest first; empty if there are none that can be read."""

    async def lock(self, origin: Origin, seconds: float) -> Locked:
        """Acquire the lock of an origin, and load its snapshots, in one call.

        The lock expires after `seconds`, in case its holder dies. The holder may acquire it again to extend
        it.
        """

    async def save(self, snapshots: Sequence[Snapshot], until: float) -> None:
        """Save the snapshots of one origin, in place of earlier ones, and release its lock, in one call.

        They may be deleted after `until`, in seconds since the epoch. The lock stays if another `Store`
        object holds it.
        """

    async def unlock(self, origin: Origin) -> None:
        """Release the lock of an origin, unless another `Store` object holds it."""

    async def close(self) -> None:
        """Free all resources, also if the call is cancelled. The store must not be used afterwards."""


class BrowsableStore(Store, Protocol):
    """A store whose entries can be listed and deleted. Needed by ``scrapy robots-store``."""

    def items(self) -> AsyncIterator[tuple[Origin, tuple[Snapshot, ...]]]:
        """Yield each origin and its snapshots, oldest first; no snapshots if the entry cannot be read.

        Reads a few entries at a time, so memory does not grow with the store. Entries that are saved or
        deleted meanwhile may be missing or may come twice. Each kind of store documents whether the origins
        are sorted. Keys that are not origins are skipped.
        """

    async def delete(self, origin: Origin) -> bool:
        """Delete the entry of an origin, and return whether there was one. Locks are not deleted."""


class HeldLock:
    """The lock of an origin inside ``async with``, where it is extended, if it was free.

    `is_held` says whether it was, and `snapshots` are those that the origin had then.
    """

    def __init__(self, store: Store, origin: Origin) -> None:
        self._store = store
        self._origin = origin
        self._extending: Deferred[None] | None = None

    async def __aenter__(self) -> Self:
        self.is_held, self.snapshots = await self._store.lock(self._origin, LOCK_SECONDS)
        if self.is_held:
            self._extending = compat.spawn(_extend_lock(self._store, self._origin))
        return self

    async def save(self, snapshots: Sequence[Snapshot], until: float) -> None:
        self._stop_extending()
        await self._store.save(snapshots, until)

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # While the event loop is torn down, nothing can be awaited; the lock then expires.
        if self._stop_extending() and (error is None or isinstance(error, Exception)):
            await self._store.unlock(self._origin)

    def _stop_extending(self) -> bool:
        """Return whether the lock has been extended until now."""
        extending, self._extending = self._extending, None
        if extending is None:
            return False
        compat.cancel(extending)
        return True


async def _extend_lock(store: Store, origin: Origin) -> None:
    while True:
        await compat.sleep(_EXTEND_EVERY)
        await store.lock(origin, LOCK_SECONDS)


def with_home(value: str) -> str:
    """Return a value of `NOROBOTS_STORE` with the home directory in place of ``~``."""
    scheme, slashes, path = value.partition(":///")
    # Unlike pathlib's function, this one accepts "~name" without such a user
    return scheme + slashes + os.path.expanduser(path) if scheme in FILE_SCHEMES else value  # noqa: PTH111


def without_password(value: str) -> str:
    """Return a value of `NOROBOTS_STORE`, also a misspelt one, with ``***`` for what may be a password."""
    kind, _, path = value.partition(":")
    if kind in FILE_SCHEMES:
        return value if "@" not in path or (path.startswith("///") and ":" not in path) else f"{kind}:***"
    url = _STORE_URL.fullmatch(value)
    assert url  # it matches any text
    scheme, user, rest = url[1], url[2] or "", url[3]
    place, mark, _ = rest.partition("?")
    if (rest and not scheme) or "?" in user or not _PLACE.fullmatch(place):
        return f"{scheme if scheme.removesuffix('://') in REDIS_SCHEMES else ''}***"
    return f"{scheme}{'***@' if user else ''}{place}{'?***' if mark else ''}"


def error_text(exc: Exception) -> str:
    """Return the text of an exception of a store, with passwords replaced by ``***``."""
    return _PASSWORD_IN_ERROR.sub(r"\1***", str(exc))
