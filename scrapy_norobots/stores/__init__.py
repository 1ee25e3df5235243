"""Stores: where snapshots outlive the process, and where several processes share them.

`Store` is the contract. A store keeps, for each origin, the snapshots that its access was judged from, and
a lock, so that of all processes that share the store one downloads a robots.txt while the others wait for
it. It knows nothing of rules or freshness; memory is in front of it, and it is asked only for origins that
are not there. `BrowsableStore` adds what a command needs that looks into a store. `open_store` opens the
store that `NOROBOTS_STORE` names; `hold_lock` holds a lock for the time of a download.
"""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from scrapy_norobots import compat

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from scrapy_norobots.snapshot import Snapshot
    from scrapy_norobots.standard import Origin

MEMORY = "memory"
_REDIS_SCHEMES = ("redis", "rediss", "unix")
# A password may hold an "@" of its own, though it should not: the last one counts.
_PASSWORD = re.compile(r"(?<=://)([^:@/]*):.*@")
_PASSWORD_IN_QUERY = re.compile(r"(?<=[?&]password=)[^&]*")

FORMS = "memory, sqlite:///path or redis://host:port/db"

# How long a lock lasts, and how often its holder extends it, in seconds: that of a dead process soon expires.
LOCK_SECONDS = 30.0
_EXTEND_EVERY = LOCK_SECONDS / 3


class Store(Protocol):
    """Keeps snapshots.

    All methods may raise whatever the store's own library raises when it fails. An entry that cannot be read
    is a miss, and no error.
    """

    async def load(self, origin: Origin) -> tuple[Snapshot, ...]:
        """Return the snapshots of an origin, oldest first; none if there are none, or none to be read."""

    async def save(self, snapshots: Sequence[Snapshot], until: float) -> None:
        """Keep snapshots of one origin in place of those before, until a time in seconds since the epoch."""

    async def acquire_lock(self, origin: Origin, seconds: float) -> bool:
        """Acquire the lock of an origin, and return whether this user of the store holds it now.

        It expires after `seconds`, should its holder have died. The holder may acquire it again, which
        extends it.
        """

    async def release_lock(self, origin: Origin) -> None:
        """Release the lock of an origin, unless another user of the store holds it."""

    async def close(self) -> None:
        """Free all resources. The store is not used after that."""


class BrowsableStore(Store, Protocol):
    """A store whose entries can be listed and deleted, which ``scrapy robots-store`` needs and no crawl."""

    def items(self) -> AsyncIterator[tuple[Origin, tuple[Snapshot, ...]]]:
        """Yield each origin and its snapshots, oldest first; no snapshots if the entry cannot be read.

        Reads a few entries at a time, so that memory does not grow with the store. Entries that are saved or
        deleted meanwhile may be missing or may come twice. A store says itself whether the origins are
        sorted. Keys that are not origins are skipped.
        """

    async def delete(self, origin: Origin) -> bool:
        """Delete the entry of an origin, and return whether there was one; locks stay as they are."""


def open_store(
    value: str, max_bytes: int, *, has_asyncio: bool = True, must_exist: bool = False
) -> BrowsableStore:
    """Return the store that a value of `NOROBOTS_STORE` other than ``memory`` names.

    It connects to nothing and opens nothing yet. `max_bytes` bounds a store that does not bound itself;
    `has_asyncio` says whether an asyncio event loop will run. With `must_exist`, the store is opened to be
    looked into: calls raise if it is missing or damaged, and it is neither created nor repaired. Raises
    `ValueError` that says what is wrong with the value, and `ImportError` that says what to install.
    """
    scheme, colon, rest = value.partition("://")
    if scheme == "sqlite" and colon:
        path = rest.removeprefix("/")
        if not rest.startswith("/") or not path:
            raise ValueError("names no file; write sqlite:///relative/path or sqlite:////absolute/path")
        from scrapy_norobots.stores.sqlite import SqliteStore  # noqa: PLC0415  # only who uses it needs it

        return SqliteStore(path, max_bytes, must_exist=must_exist)
    if scheme in _REDIS_SCHEMES and colon:
        if not has_asyncio:
            raise ValueError("needs asyncio: use the asyncio reactor (TWISTED_REACTOR), or sqlite:///path")
        try:
            from scrapy_norobots.stores.redis import RedisStore  # noqa: PLC0415  # an extra
        except ImportError as exc:
            raise ImportError(f"needs redis-py: pip install 'scrapy-norobots[redis]' ({exc})") from exc
        return RedisStore(value)
    raise ValueError(f"is no store; write {FORMS}")


@asynccontextmanager
async def hold_lock(store: Store, origin: Origin) -> AsyncIterator[bool]:
    """Hold the lock of an origin inside the ``async with``, if it is free; yield whether it is held."""
    if not await store.acquire_lock(origin, LOCK_SECONDS):
        yield False
        return
    extending = compat.spawn(_extend_lock(store, origin))
    can_await = True
    try:
        yield True
    except BaseException as exc:
        can_await = isinstance(exc, Exception)  # not while the event loop is torn down: the lock expires
        raise
    finally:
        compat.cancel(extending)
        if can_await:
            await store.release_lock(origin)


async def _extend_lock(store: Store, origin: Origin) -> None:
    while True:
        await compat.sleep(_EXTEND_EVERY)
        await store.acquire_lock(origin, LOCK_SECONDS)


def without_password(value: str) -> str:
    """Return a value of `NOROBOTS_STORE` that may be shown."""
    if value.startswith("sqlite:"):
        return value
    return _PASSWORD_IN_QUERY.sub("***", _PASSWORD.sub(r"\1:***@", value))
