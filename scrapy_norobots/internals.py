"""The internal names of Scrapy that this plugin uses, and that Scrapy may change at any time.

`INTERNALS` lists the names, and `missing_internals` returns those that a running crawl lacks. Only the
functions below and `RobotsDownloader` use them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from inspect import Parameter, signature
from operator import attrgetter
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from scrapy.core import downloader as scrapy_downloader
from scrapy.core.downloader import Downloader

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler

# Names by owner. If one of these is missing, requests that wait count against CONCURRENT_REQUESTS.
INTERNALS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "engine": (
            "downloader",
            "_slot.closing",  # `slot` before Scrapy 2.13
            "_slot.nextcall.schedule",
        ),
        "downloader": (
            "active",  # requests that have entered and not left
            "handlers._get_handler",
            "needs_backout",  # whether the engine should send no more requests for now
            "slots",
            "total_concurrency",
            "_get_slot",
        ),
        "slot": (
            "active",  # requests that DownloaderAwarePriorityQueue counts as in progress
            "concurrency",
            "delay",  # seconds
            "lastseen",  # when the slot last sent a request, by `now`
            "queue",
            "transferring",
        ),
    }
)

# The limit of connections of download handlers that need no reactor: path and name of the attribute. Other
# handlers have no limit of their own.
_POOLS = (
    ("_session.connector", "_limit"),  # aiohttp
    ("_client._transport._pool", "_max_connections"),  # httpx, until Scrapy 2.17
    ("_default_client._transport._pool", "_max_connections"),
)

# The clock of `Slot.lastseen`; until Scrapy 2.15, the time of day.
now: Callable[[], float] = getattr(scrapy_downloader, "time", monotonic)


def missing_internals(crawler: Crawler) -> list[str]:
    """Return the names of `INTERNALS` that a running crawl lacks, as ``owner.name``."""
    engine = crawler.engine
    downloader = getattr(engine, "downloader", None)
    owners = {
        "engine": engine,
        "downloader": downloader if isinstance(downloader, Downloader) else None,
        "slot": _any_slot(),
    }
    missing = []
    for owner, names in INTERNALS.items():
        for name in names:
            path = name if owner != "engine" or hasattr(engine, "_slot") else name.replace("_slot", "slot")
            try:
                attrgetter(path)(owners[owner])
            except AttributeError:
                missing.append(f"{owner}.{name}")
    return missing


def _any_slot() -> Any:
    try:
        return scrapy_downloader.Slot(1, 0.0, 0)
    except (AttributeError, TypeError):
        return None


def slot_of(downloader: Downloader, request: Request, spider: Spider | None) -> Any:
    """Return the download slot of a request."""
    find = downloader._get_slot  # noqa: SLF001
    needs_spider = _needs_spider(getattr(find, "__func__", find))
    return (find(request, spider) if needs_spider else find(request))[1]


@cache
def _needs_spider(find: Callable[..., object]) -> bool:
    """Return whether a function requires the spider, as before Scrapy 2.14."""
    spider = signature(find).parameters.get("spider")
    return spider is not None and spider.default is Parameter.empty


def widen_pool(downloader: Downloader, scheme: str, by: int) -> None:
    """Let the download handler of a URL scheme open more connections, if it has a limit of its own."""
    handler = downloader.handlers._get_handler(scheme)  # noqa: SLF001
    for path, name in _POOLS:
        try:
            pool = attrgetter(path)(handler)
            limit = getattr(pool, name)
        except Exception:  # noqa: S112  # another handler
            continue
        if isinstance(limit, int) and limit > 0:
            setattr(pool, name, limit + by)
