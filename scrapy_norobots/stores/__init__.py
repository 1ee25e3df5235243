"""Stores: where snapshots outlive the process, and where several processes share them.

`Store` is the contract. A store keeps, for each origin, the snapshots that what is known of it was judged
from, and hands out *claims*, so that of all who share the store one downloads a robots.txt while the
others wait for it. It knows nothing of rules or freshness; memory is in front of it, and it is asked only for
origins that are not there. `open_store` makes the store that `NOROBOTS_STORE` names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_norobots.snapshot import Snapshot
    from scrapy_norobots.standard import Origin

MEMORY = "memory"
_REDIS_SCHEMES = ("redis", "rediss", "unix")
# A password may hold an "@" of its own, though it should not: the last one counts.
_PASSWORD = re.compile(r"(?<=://)([^:@/]*):.*@")
_PASSWORD_IN_QUERY = re.compile(r"(?<=[?&]password=)[^&]*")

FORMS = "memory, sqlite:///path or redis://host:port/db"


class Store(Protocol):
    """Keeps snapshots.

    All methods may raise whatever the store's own library raises when it fails. What cannot be read of an
    entry is never raised: it is as if it was not there.
    """

    async def load(self, origin: Origin) -> tuple[Snapshot, ...]:
        """Return the snapshots of an origin, oldest first; none if there are none, or none to be read."""

    async def save(self, snapshots: Sequence[Snapshot], until: float) -> None:
        """Keep snapshots of one origin in place of those before, until a time in seconds since the epoch."""

    async def claim(self, origin: Origin, seconds: float) -> bool:
        """Whether the download of an origin's robots.txt is this store's user's now, and nobody else's.

        A claim ends when it is released, or by itself after `seconds`, should its user have died; who holds
        it can claim it anew.
        """

    async def release(self, origin: Origin) -> None:
        """End a claim; one that is another's by now stays."""

    async def close(self) -> None:
        """Give back all that the store uses. It is not used after that."""


def open_store(value: str, max_bytes: int, *, has_asyncio: bool = True) -> Store | None:
    """Return the store that a value of `NOROBOTS_STORE` names; None for ``memory``.

    Nothing is connected to or opened yet. `max_bytes` bounds a store that does not bound itself;
    `has_asyncio` says whether an asyncio event loop will run. Raises `ValueError` that says what is wrong
    with the value, and `ImportError` that says what to install.
    """
    if value == MEMORY:
        return None
    scheme, colon, rest = value.partition("://")
    if scheme == "sqlite" and colon:
        path = rest.removeprefix("/")
        if not rest.startswith("/") or not path:
            raise ValueError("names no file; write sqlite:///relative/path or sqlite:////absolute/path")
        from scrapy_norobots.stores.sqlite import SqliteStore  # noqa: PLC0415  # only who uses it needs it

        return SqliteStore(path, max_bytes)
    if scheme in _REDIS_SCHEMES and colon:
        if not has_asyncio:
            raise ValueError("needs asyncio: use the asyncio reactor (TWISTED_REACTOR), or sqlite:///path")
        try:
            from scrapy_norobots.stores.redis import RedisStore  # noqa: PLC0415  # an extra
        except ImportError as exc:
            raise ImportError(f"needs redis-py: pip install 'scrapy-norobots[redis]' ({exc})") from exc
        return RedisStore(value)
    raise ValueError(f"is no store; write {FORMS}")


def without_password(value: str) -> str:
    """Return a value of `NOROBOTS_STORE` that may be shown."""
    if value.startswith("sqlite:"):
        return value
    return _PASSWORD_IN_QUERY.sub("***", _PASSWORD.sub(r"\1:***@", value))
