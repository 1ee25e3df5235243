"""Stores: keep snapshots between crawls, and share them between processes.

For each origin, a store keeps the snapshots that the access was judged from, and a lock: of all processes
that share the store, one downloads a robots.txt and the others wait for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol

from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Origin

MEMORY = "memory"
REDIS_SCHEMES = (
    "redis", "rediss", "unix", "redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel",
)  # fmt: skip
# A value without a password, even if it is misspelt: of a URL, host, port, and database or path.
_PLAIN = re.compile(r"[\w+]+://[\w.-]*(?::\d+)?(?:/[\w./-]*)?|sqlite:///[^:]*|[^:@]*")
# As redis-py 6 lists the options of a connection in some errors.
_PASSWORD_IN_ERROR = re.compile(r"(\bpassword=).*?(?=, ?\w+=|\)>|$)", re.DOTALL)

# The largest robots.txt that any crawl accepts, in bytes.
LARGEST_FILE = 256 * 1024 * 1024

# How long a lock lasts at least, in seconds: longer than most downloads. A process that holds it may die.
LOCK_SECONDS = 60.0


class NotAStoreError(Exception):
    """`NOROBOTS_STORE` names something that is not a store, and that was not changed."""


class Locked(NamedTuple):
    """Whether this `Store` object holds the lock of an origin, and all its snapshots, oldest first."""

    is_held: bool
    snapshots: tuple[Snapshot, ...]


class Store(Protocol):
    """Keeps snapshots and locks of origins.

    No call blocks the event loop; each is one round trip, if the store is a server. One that takes longer
    than `circuit_breaker.TIMEOUT` is cancelled. All methods may raise any exception of the store's library.
    An entry that cannot be read is a miss, not an error.
    """

    async def load(self, origin: Origin) -> tuple[Snapshot, ...]:
        """Return the snapshots of an origin, oldest first; empty if there are none that can be read."""

    async def lock(self, origin: Origin, seconds: float) -> Locked:
        """Acquire the lock of an origin, and load its snapshots, in one call.

        The lock expires after `seconds`, in case its holder dies. Its holder may acquire it again.
        """

    async def save(self, snapshots: Sequence[Snapshot], until: float) -> None:
        """Save the snapshots of one origin, in place of earlier ones, and release its lock, in one call.

        After `until`, in seconds since the epoch, they are no longer returned. The lock stays if another
        `Store` object holds it.
        """

    async def unlock(self, origin: Origin) -> None:
        """Release the lock of an origin, unless another `Store` object holds it."""

    async def close(self) -> None:
        """Free all resources, also if the call is cancelled. The store must not be used afterwards."""


class BrowsableStore(Store, Protocol):
    """A store whose entries can be listed and deleted. Needed by ``scrapy robots-store``."""

    def items(self) -> AsyncIterator[tuple[Origin, tuple[Snapshot, ...]]]:
        """Yield each origin and its snapshots, oldest first; no snapshots if the entry cannot be read.

        Those that are saved or deleted meanwhile may be missing or come twice. Expired ones are left out.
        """

    async def delete(self, origin: Origin) -> bool:
        """Delete the entry of an origin, and return whether there was one. Locks are not deleted."""


def with_home(value: str) -> str:
    """Return a value of `NOROBOTS_STORE` with the home directory in place of ``~``."""
    scheme, slashes, path = value.partition(":///")
    # Unlike pathlib's function, this one accepts "~name" without such a user
    return scheme + slashes + os.path.expanduser(path) if scheme == "sqlite" else value  # noqa: PTH111


def without_password(value: str) -> str:
    """Return a value of `NOROBOTS_STORE`; only its scheme if it may have a password."""
    if _PLAIN.fullmatch(value):
        return value
    scheme, slashes, _ = value.partition("://")
    return f"{scheme}{slashes}***" if scheme in ("sqlite", *REDIS_SCHEMES) else "***"


def error_text(exc: Exception) -> str:
    """Return the text of an exception of a store, with passwords replaced by ``***``."""
    return _PASSWORD_IN_ERROR.sub(r"\1***", str(exc))
