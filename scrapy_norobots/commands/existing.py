"""`ExistingStore`: a store that a command reads. It must exist, and its failures raise `CommandError`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from typing import TYPE_CHECKING, TypeVar

from scrapy_norobots.commands.base import CommandError
from scrapy_norobots.settings import expand_store
from scrapy_norobots.stores import MEMORY, open_store, without_password

if TYPE_CHECKING:
    from scrapy_norobots.snapshot import Snapshot
    from scrapy_norobots.standard import Origin

_T = TypeVar("_T")


class ExistingStore:
    """The store for a value of `NOROBOTS_STORE`: a `stores.BrowsableStore` without locks."""

    def __init__(self, value: str, max_bytes: int, *, has_asyncio: bool = True) -> None:
        """Raise `ValueError` if the value is invalid, or if the store cannot be used."""
        self._shown = without_password(value)
        if value == MEMORY:
            raise ValueError(
                "memory: cannot be read by a command; expected a SQLite file or a Redis database"
            )
        try:
            self._store = open_store(expand_store(value), max_bytes, has_asyncio=has_asyncio, must_exist=True)
        except (ImportError, ValueError) as exc:
            raise ValueError(f"{self._shown}: {exc}") from None

    async def items(self) -> AsyncIterator[tuple[Origin, tuple[Snapshot, ...]]]:
        """Yield each origin and its snapshots, oldest first; no snapshots if the entry cannot be read."""
        items = self._store.items()
        while (item := await self._try(anext(items, None))) is not None:
            yield item

    async def load(self, origin: Origin) -> tuple[Snapshot, ...]:
        """Return the snapshots of an origin, oldest first; empty if there are none or they cannot be read."""
        return await self._try(self._store.load(origin))

    async def delete(self, origin: Origin) -> bool:
        """Delete the entry of an origin, and return whether there was one."""
        return await self._try(self._store.delete(origin))

    async def close(self) -> None:
        """Free all resources."""
        await self._try(self._store.close())

    async def _try(self, call: Awaitable[_T]) -> _T:
        try:
            return await call
        except Exception as exc:  # each library has its own errors
            problem = getattr(exc, "strerror", None) or str(exc) or type(exc).__name__
            raise CommandError(f"{self._shown}: {problem}") from exc
