"""The store that a command reads: it must exist, and its failures are those of the command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from scrapy_norobots.commands.base import CommandError
from scrapy_norobots.stores import MEMORY, BrowsableStore, error_text, with_home, without_password
from scrapy_norobots.stores.opening import URLS, open_store


def open_existing(value: str, max_bytes: int, *, has_asyncio: bool = True) -> BrowsableStore:
    """Return the store for a value of `NOROBOTS_STORE`.

    Raises `ValueError` if the value is invalid, or if the store cannot be used.
    """
    if value == MEMORY:
        raise ValueError(f"memory: cannot be read by a command; expected {URLS}")
    try:
        return open_store(with_home(value), max_bytes, has_asyncio=has_asyncio, must_exist=True)
    except (ImportError, ValueError) as exc:
        raise ValueError(f"{without_password(value)}: {exc}") from None


@contextmanager
def failures_of(value: str) -> Iterator[None]:
    """Raise `CommandError`, which names the store, for an exception of the store inside the ``with``."""
    try:
        yield
    except Exception as exc:  # each library has its own errors
        problem = getattr(exc, "strerror", None) or error_text(exc) or type(exc).__name__
        raise CommandError(f"{without_password(value)}: {problem}") from exc
