"""The internal names of Scrapy that this plugin needs, and that Scrapy may change at any time.

`INTERNALS` lists the names that show when a download slot can send a request, and `missing_internals` returns
those that a running crawl lacks. A comment below it lists others, without which less is lost. `compat` uses
those of the engine; the functions below, `RobotsDownloader`, `Slots`, `Lines`, `LoadLimits`, `SlotDelays`,
`Turn` and `Fetcher` use the others.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from inspect import Parameter, signature
from operator import attrgetter
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from scrapy.core import downloader as scrapy_downloader
from scrapy.core.downloader import Downloader
from scrapy.exceptions import ScrapyDeprecationWarning

from scrapy_norobots.scrapy_api import compat

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler

# Names by owner. If one of these is missing, requests go on before their slot can send them, and wait there.
INTERNALS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "engine": ("downloader",),
        "engine._slot": ("closing", "nextcall.schedule"),
        "downloader": (
            "active",  # requests that have entered and not left
            "handlers._get_handler",
            "slots",
            "_get_slot",
            "get_slot_key",
        ),
        "slot": (
            "active",  # requests that DownloaderAwarePriorityQueue counts as in progress
            "concurrency",
            "delay",  # seconds
            "download_delay",  # returns the delay before the next request, in seconds
            "lastseen",  # when the slot last sent a request, by `now`
            "queue",
            "transferring",
        ),
    }
)

# Other internal names are looked for each time they are used, because less is lost without them:
# - `downloader.middleware.middlewares` and `engine._slot.scheduler.df`, in `compat`: without the second, no
#   request is dropped when it is scheduled; without the first, none waits in `RobotsScheduler` either;
# - `downloader._enqueue_request`, `total_concurrency` and `DOWNLOAD_SLOT`, in `RobotsDownloader`;
# - `downloader._process_queue`: without it, a slot with a delay sends no request that has waited for
#   robots.txt before the response to the previous one;
# - `slot.jitter`: without it, as until Scrapy 2.18, a delay is taken to vary by half;
# - those of `_POOLS`: without them, a download of robots.txt may wait for a connection.

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
    """Return the names of `INTERNALS` that a running crawl lacks, as ``owner.name``; deprecated ones too."""
    downloader = getattr(crawler.engine, "downloader", None)
    owners: dict[str, Any] = {
        "engine": crawler.engine,
        "engine._slot": compat.engine_slot(crawler),
        "downloader": downloader if isinstance(downloader, Downloader) else None,
    }
    missing = []
    with warnings.catch_warnings():
        warnings.simplefilter("error", ScrapyDeprecationWarning)
        with suppress(AttributeError, TypeError, ScrapyDeprecationWarning):
            owners["slot"] = scrapy_downloader.Slot(1, 0.0, 0)
        for owner, names in INTERNALS.items():
            for name in names:
                try:
                    attrgetter(name)(owners.get(owner))
                except (AttributeError, ScrapyDeprecationWarning):
                    missing.append(f"{owner}.{name}")
    return missing


def slot_of(downloader: Downloader, request: Request, spider: Spider | None) -> Any:
    """Return the download slot of a request."""
    slot = downloader.slots.get(downloader.get_slot_key(request))
    return named_slot_of(downloader, request, spider)[1] if slot is None else slot


def named_slot_of(downloader: Downloader, request: Request, spider: Spider | None) -> tuple[str, Any]:
    """Return the name of the download slot of a request, and the slot."""
    find = downloader._get_slot  # noqa: SLF001
    needs_spider = _needs_spider(getattr(find, "__func__", find))
    found: tuple[str, Any] = find(request, spider) if needs_spider else find(request)
    return found


def has_slot_of_host(request: Request) -> bool:
    """Return whether the download slot in a request's meta is a host of the request, as Scrapy sets it.

    A redirected request keeps the slot of the first host.
    """
    slot = request.meta.get("download_slot")
    try:
        urls = (request.url, *(request.meta.get("redirect_urls") or ()))
        return slot is not None and slot in {urlsplit(url).hostname for url in urls}
    except (AttributeError, TypeError, ValueError):  # users may put anything there
        return False


@cache
def _needs_spider(find: Callable[..., object]) -> bool:
    """Return whether a function requires the spider, as before Scrapy 2.14."""
    spider = signature(find).parameters.get("spider")
    return spider is not None and spider.default is Parameter.empty


def crawl_delay_of(slot: Any) -> float:
    """Return the `Crawl-delay` that a slot keeps, in seconds; 0 if it keeps none."""
    return float(getattr(slot, "norobots_crawl_delay", 0.0))


def least_own_delay(slot: Any) -> float:
    """Return the shortest delay that Scrapy may choose for a slot, in seconds, without a `Crawl-delay`.

    Scrapy varies `Slot.delay` at random, up or down, by at most the fraction `Slot.jitter` of it. Until
    Scrapy 2.18, the fraction is 0.5, or 0 without `RANDOMIZE_DOWNLOAD_DELAY`.
    """
    return max(0.0, float(slot.delay) * (1 - getattr(slot, "jitter", 0.5)))


def least_delay(slot: Any) -> float:
    """Return the shortest possible delay between two requests of a slot, in seconds."""
    crawl_delay: float = getattr(slot, "norobots_crawl_delay", 0.0)
    return max(least_own_delay(slot), crawl_delay) if slot.delay else crawl_delay  # most slots have none


class SlotTurns(Protocol):
    """When slots have a turn among the processes of a fleet."""

    def seconds(self, slot: Any) -> float:
        """Return after how many seconds to ask again whether a slot may send a request; 0 if it may now."""


def seconds_to_turn(slot: Any) -> float:
    """Return after how many seconds to look again at a slot whose own delays are over; 0 if it may send."""
    turns: SlotTurns | None = getattr(slot, "norobots_turns", None)
    return 0.0 if turns is None else turns.seconds(slot)


def set_crawl_delay(slot: Any, seconds: float, turns: SlotTurns | None = None) -> None:
    """Make a slot keep a `Crawl-delay` in addition to its own delay, and wait for its turns; 0 for none.

    A slot accepts no further attributes, so the delay is an attribute of its class.
    """
    cls: type[Any] = type(slot)
    own: Any = cls.__base__ if hasattr(cls, "norobots_crawl_delay") else cls
    slot.__class__ = _slot_class(own, seconds, turns) if seconds else own


def _slot_class(own: type[Any], seconds: float, turns: SlotTurns | None) -> type[Any]:
    class CrawlDelaySlot(own):  # type: ignore[misc]
        __slots__ = ()  # without it, a slot could not change its class
        norobots_crawl_delay = seconds
        norobots_turns = turns

        def download_delay(self) -> float:
            delay = max(float(super().download_delay()), self.norobots_crawl_delay)
            passed = now() - float(self.lastseen)
            if passed < delay or not self.queue:  # Scrapy also calls this if nothing waits
                return delay
            wait = seconds_to_turn(self)
            return passed + wait if wait else delay

    return CrawlDelaySlot


def open_files_max() -> int | None:
    """Return how many files this process may open; None if there is no limit, or none is known."""
    try:
        import resource  # noqa: PLC0415  # not on Windows
    except ImportError:
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if limit == resource.RLIM_INFINITY else limit


def download_handler(crawler: Crawler, scheme: str) -> object | None:
    """Return the download handler of a URL scheme; None if it is not known."""
    handlers: Any = getattr(getattr(crawler.engine, "downloader", None), "handlers", None)
    return handlers._get_handler(scheme) if hasattr(handlers, "_get_handler") else None  # noqa: SLF001


def widen_pool(downloader: Downloader, scheme: str, by: int) -> None:
    """Let the download handler of a URL scheme open more connections, if it has a limit of its own."""
    for path, name in _POOLS:
        try:
            pool = attrgetter(path)(downloader.handlers._get_handler(scheme))  # noqa: SLF001
            limit = getattr(pool, name)
        except Exception:  # noqa: S112  # another handler, or another Scrapy
            continue
        if isinstance(limit, int) and limit > 0:
            setattr(pool, name, limit + by)
