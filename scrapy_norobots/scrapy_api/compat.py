"""The differences between Scrapy's versions, except those of internal names, and between event loops.

Coroutines of Scrapy's components may await an `asyncio.Future` where asyncio runs (with its reactor, or
without a reactor) and a Twisted `Deferred` with any other reactor. Callers write one coroutine for both.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from inspect import isawaitable, iscoroutinefunction
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy import signals
from scrapy.core.downloader import Downloader
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.reactor import is_asyncio_reactor_installed
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.dupefilters import BaseDupeFilter
    from scrapy.http import Response
    from scrapy.robotstxt import RobotParser
    from scrapy.settings import BaseSettings
    from scrapy.statscollectors import StatsCollector

_T = TypeVar("_T")


# Runs a coroutine on its own: cancelling the caller does not cancel it. The caller must keep the result while
# the coroutine runs, because nothing else may refer to it.
spawn = deferred_from_coro

# Returns an awaitable for the result of a deferred. Cancelling the awaitable cancels the deferred.
waiting_for = maybe_deferred_to_future


async def fired(deferred: Deferred[Any]) -> None:
    """Wait until a deferred has fired, which must have no callbacks; at once if it has."""
    if not deferred.called:
        await waiting_for(deferred)


def cancel(spawned: Deferred[None]) -> None:
    """Cancel a spawned coroutine, and ignore its exceptions."""
    spawned.addErrback(lambda _: None)
    spawned.cancel()


def after(gate: Deferred[None], function: Callable[[], Any]) -> Any:
    """Call a function after a deferred has fired; return what Scrapy's downloader returns for a request."""
    if not iscoroutinefunction(Downloader._enqueue_request):  # noqa: SLF001  # until Scrapy 2.13
        return gate.addCallback(lambda _: function())

    async def call() -> Any:
        await waiting_for(gate)
        result = function()
        return await result if isawaitable(result) else result

    return call()


def finally_call(sent: Any, function: Callable[[], object]) -> Any:
    """Call a function when what Scrapy's downloader returns for a request has ended; return the same."""

    async def wait() -> Any:
        try:
            return await sent
        finally:
            function()

    return Deferred.fromCoroutine(wait()) if isinstance(sent, Deferred) else wait()  # until Scrapy 2.13


async def sleep(seconds: float) -> None:
    """Wait for some seconds without blocking the event loop."""
    if _asyncio_runs():
        await asyncio.sleep(seconds)
    else:
        await deferLater(_reactor(), seconds)


def call_later(seconds: float, function: Callable[[], object]) -> Callable[[], object]:
    """Call a function after some seconds. Return a function that cancels the call."""
    if _asyncio_runs():
        return asyncio.get_running_loop().call_later(seconds, function).cancel
    call = _reactor().callLater(seconds, function)
    return lambda: call.cancel() if call.active() else None


class LateError(Exception):
    """`unless` cancelled the coroutine, because it was late."""


async def unless(is_late: Callable[[], bool], seconds: float, coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Return the result of a coroutine; cancel it and raise `LateError` once `is_late()` is true.

    `is_late` is called every `seconds`. Where asyncio runs, the coroutine runs in the task of the caller, so
    the result needs no extra iteration of the event loop. A coroutine that returns a result although it was
    cancelled is late too.
    """
    running: Any = asyncio.current_task() if _asyncio_runs() else deferred_from_coro(coroutine)
    given_up = False
    stop: Callable[[], object]

    def look() -> None:
        nonlocal given_up, stop
        given_up = is_late()
        if given_up:
            running.cancel()
        else:
            stop = call_later(seconds, look)

    stop = call_later(seconds, look)
    try:
        result: _T = await (running if isinstance(running, Deferred) else coroutine)
    except (asyncio.CancelledError, CancelledError):
        if not given_up:
            raise
    finally:
        stop()
    if not given_up:
        return result
    if hasattr(running, "uncancel"):  # a task, from Python 3.11 on
        running.uncancel()
    raise LateError


async def within(seconds: float, coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Return the result of a coroutine; after `seconds`, cancel it and raise `TimeoutError`."""
    try:
        return await unless(lambda: True, seconds, coroutine)
    except LateError:
        raise TimeoutError(f"no answer within {seconds:g} s") from None


async def resolve(host: str) -> None:
    """Resolve a host name as a download does, and ignore the result: Scrapy caches it."""
    if "twisted.internet.reactor" not in sys.modules or not _reactor().running:
        with suppress(OSError, UnicodeError):
            await asyncio.get_running_loop().getaddrinfo(host, None)
        return
    try:
        host.encode("idna")
    except UnicodeError:  # one of Twisted's resolvers would never say that it has ended
        return
    over: Deferred[None] = Deferred()
    receiver = SimpleNamespace(
        resolutionBegan=lambda resolution: None,
        addressResolved=lambda address: None,
        resolutionComplete=lambda: _call(over),
    )
    _reactor().nameResolver.resolveHostName(receiver, host)
    await waiting_for(over)


async def in_thread(executor: Executor, function: Callable[[], _T]) -> _T:
    """Run a function in a thread and return its result; the event loop is not blocked."""
    if _asyncio_runs():
        return await asyncio.get_running_loop().run_in_executor(executor, function)
    future = executor.submit(function)
    done: Deferred[None] = Deferred(lambda _: future.cancel())  # type: ignore[arg-type]  # ignores the result
    future.add_done_callback(lambda _: _reactor().callFromThread(_call, done))
    await done
    return future.result()


def _call(deferred: Deferred[None]) -> None:
    if not deferred.called:  # else the wait was cancelled
        deferred.callback(None)


def has_asyncio(crawler: Crawler) -> bool:
    """Return whether an asyncio event loop runs in the crawl."""
    return not crawler.settings.getbool("TWISTED_REACTOR_ENABLED", True) or is_asyncio_reactor_installed()


def _asyncio_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _reactor() -> Any:
    from twisted.internet import reactor  # noqa: PLC0415  # importing it installs it

    return reactor


def is_closing(crawler: Crawler) -> bool:
    """Return whether the crawl is closing or closed; with a mock engine, it is never closing."""
    slot = engine_slot(crawler)
    return slot is None or isinstance(getattr(slot, "closing", None), Deferred)


def is_under_way(crawler: Crawler, request: Request) -> bool:
    """Return whether a request has entered the downloader; true if the downloader does not tell."""
    active = getattr(downloader(crawler), "active", None)
    return active is None or request in active


async def download(crawler: Crawler, request: Request) -> Response:
    """Download a request through the engine and all downloader middlewares."""
    engine = crawler.engine
    assert engine is not None  # requests come from a running engine
    if hasattr(engine, "download_async"):  # Scrapy 2.14
        return await engine.download_async(request)
    return await waiting_for(engine.download(request))


def is_own_crawl(crawler: Crawler) -> bool:
    """Return whether a crawl runs its spider, and not a command such as ``scrapy fetch`` or ``shell``."""
    # The shell creates no spider before its engine; the other commands replace the start of theirs.
    of_start = getattr(getattr(crawler.spider, "start", None), "__module__", "")
    return crawler.spider is not None and not str(of_start).startswith("scrapy.commands.")


def close_spider(crawler: Crawler, reason: str) -> Deferred[None]:
    """Close the spider, as `CloseSpider` does; return what the caller keeps until that is done."""
    engine: Any = crawler.engine
    if hasattr(engine, "close_spider_async"):  # Scrapy 2.14
        return spawn(engine.close_spider_async(reason=reason))
    closed: Deferred[None] = engine.close_spider(crawler.spider, reason)
    return closed


async def send_robots_parsed(crawler: Crawler, parser: RobotParser, request: Request) -> None:
    """Send Scrapy's `robots_parsed` signal, if this version has it (2.18)."""
    if hasattr(signals, "robots_parsed"):
        await crawler.signals.send_catch_log_async(
            signal=signals.robots_parsed, robotparser=parser, request=request
        )


def components(settings: BaseSettings, name: str) -> Mapping[Any, Any]:
    """Return the component setting `name`, joined with its ``_BASE`` part as this version of Scrapy joins it.

    In Scrapy 2.13, a class and its import path are two components.
    """
    join = getattr(settings, "get_component_priority_dict_with_base", settings.getwithbase)
    return dict(join(name))


def stats(crawler: Crawler) -> StatsCollector:
    """Return the stats of a crawl."""
    assert crawler.stats is not None  # they are made before any component
    return crawler.stats


def downloader(crawler: Crawler) -> Any:
    """Return the crawler's downloader, an instance of any class."""
    assert crawler.engine is not None  # requests come from a running engine
    return crawler.engine.downloader


def downloader_middlewares(crawler: Crawler) -> tuple[Any, ...]:
    """Return the downloader middlewares of a crawl in order; an empty tuple before the crawl runs."""
    try:
        downloader = getattr(crawler.engine, "downloader", None)
    except RuntimeError:  # from Scrapy 2.19 on, there is no engine before the crawl starts
        return ()
    return tuple(getattr(getattr(downloader, "middleware", None), "middlewares", ()))


def downloader_middleware(crawler: Crawler, cls: type[_T]) -> _T | None:
    """Return the downloader middleware of a class or its subclass in a running crawl, or None."""
    return next((one for one in downloader_middlewares(crawler) if isinstance(one, cls)), None)


def dupefilter(crawler: Crawler) -> BaseDupeFilter | None:
    """Return the filter for duplicate requests of a running crawl, or None if there is none."""
    found = getattr(getattr(engine_slot(crawler), "scheduler", None), "df", None)
    return found if hasattr(found, "request_seen") else None


def look_for_next_request(crawler: Crawler) -> None:
    """Make the engine ask the scheduler for a request now, and not only at its next heartbeat."""
    slot = engine_slot(crawler)
    if slot is not None and hasattr(slot, "nextcall") and slot.closing is None:
        slot.nextcall.schedule()


def engine_slot(crawler: Crawler) -> Any | None:
    """Return what the engine keeps of a running crawl; None without a crawl."""
    return getattr(crawler.engine, "_slot", None)
