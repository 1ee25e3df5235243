"""All differences between Scrapy's versions, and between its ways to wait, are known here and only here.

Coroutines of Scrapy's components may await an `asyncio.Future` where asyncio runs (its reactor, or no
reactor at all) and a Twisted `Deferred` where another reactor does. Callers of this module write one
coroutine for both. What a version has is found out by looking for it, not by its number.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy import Spider, signals
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.robotstxt import RobotParser
    from twisted.internet.defer import Deferred

_T = TypeVar("_T")


def spawn(coroutine: Coroutine[Any, Any, None]) -> Deferred[None]:
    """Run a coroutine by itself, so that cancelling whoever started it does not cancel it.

    The caller keeps the result for as long as the coroutine runs: nothing else may refer to it.
    """
    return deferred_from_coro(coroutine)


def waiting_for(deferred: Deferred[_T]) -> Awaitable[_T]:
    """Return what a coroutine can await to get a deferred's result. Cancelling it cancels the deferred."""
    return maybe_deferred_to_future(deferred)


async def download(crawler: Crawler, request: Request) -> Response:
    """Download a request through the engine and all downloader middlewares.

    Raises what the download raises.
    """
    engine = crawler.engine
    assert engine is not None  # requests come from a running engine
    if hasattr(engine, "download_async"):  # Scrapy 2.14
        return await engine.download_async(request)
    return await waiting_for(engine.download(request))


async def send_robots_parsed(crawler: Crawler, parser: RobotParser, request: Request) -> None:
    """Send Scrapy's `robots_parsed` signal, where it has one (2.18)."""
    if hasattr(signals, "robots_parsed"):
        await crawler.signals.send_catch_log_async(
            signal=signals.robots_parsed, robotparser=parser, request=request
        )


def is_start_request(request: Request) -> bool:
    """Whether a request is one that the spider starts with, and not one that a page led to.

    Scrapy 2.13 marks them; before, they are those that the depth middleware has not seen.
    """
    if hasattr(Spider, "start"):
        return bool(request.meta.get("is_start_request"))
    return "depth" not in request.meta
