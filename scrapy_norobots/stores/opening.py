"""Open the store that `NOROBOTS_STORE` names, and the turns of a fleet that shares a Crawl-delay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_norobots.stores import LARGEST_FILE, REDIS_SCHEMES, BrowsableStore

if TYPE_CHECKING:
    from scrapy_norobots.stores.redis import RedisStore

URLS = "sqlite:///path, redis://host:port/db, redis+sentinel://… or redis+cluster://…"
FORMS = f"memory, {URLS}"


def open_store(
    value: str,
    max_bytes: int,
    maxsize: int = LARGEST_FILE,
    *,
    has_asyncio: bool = True,
    must_exist: bool = False,
) -> BrowsableStore:
    """Return the store for a value of `NOROBOTS_STORE` other than ``memory``; nothing is opened yet.

    `max_bytes` limits the size of a store in SQLite. An entry with a robots.txt of more than `maxsize` bytes
    is a miss. `has_asyncio` says whether an asyncio event loop will run. With `must_exist`, the methods raise
    an exception if the store is missing or damaged; it is neither created nor repaired. Raises `ValueError`
    if the value is invalid, and `ImportError`, with the package to install, if one is missing.
    """
    scheme, colon, rest = value.partition("://")
    if scheme == "sqlite" and rest.startswith("/") and rest != "/":
        from scrapy_norobots.stores.sqlite import SqliteStore  # noqa: PLC0415  # needed for this store only

        return SqliteStore(rest[1:], max_bytes, maxsize, must_exist=must_exist)
    if scheme in REDIS_SCHEMES and colon:
        if not has_asyncio:
            raise ValueError("needs asyncio: use the asyncio reactor (TWISTED_REACTOR), or sqlite:///path")
        return _open_redis(value, maxsize)
    raise ValueError(f"unsupported store URL; expected {URLS if must_exist else FORMS}")


def open_turns(value: str) -> RedisStore:
    """Return the turns of the processes that share a store, for a value of `NOROBOTS_STORE`.

    Raises `ValueError` if the store is not in Redis, and `ImportError` as `open_store` does.
    """
    if value.partition("://")[0] not in REDIS_SCHEMES:
        raise ValueError(
            "is not a Redis store; expected redis://host:port/db, redis+sentinel://… or the like"
        )
    return _open_redis(value, LARGEST_FILE)


def _open_redis(value: str, maxsize: int) -> RedisStore:
    try:
        from scrapy_norobots.stores.redis import RedisStore  # noqa: PLC0415  # an optional dependency
    except ImportError as exc:
        raise ImportError(f"needs redis-py: pip install 'scrapy-norobots[redis]' ({exc})") from exc
    return RedisStore(value, maxsize)
