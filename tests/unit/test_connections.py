"""Host names are looked up before robots.txt is downloaded, not too many at a time."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.settings import Settings, default_settings

from scrapy_norobots.scrapy_api import compat, connections
from scrapy_norobots.scrapy_api.connections import HostNames

pytestmark = pytest.mark.skipif(
    not hasattr(default_settings, "TWISTED_REACTOR_ENABLED"),
    reason="this version of Scrapy awaits no Deferred where no reactor runs",
)
URL = "http://town.example/robots.txt"


class HandlerOfUser:
    """A download handler of a project."""


class HandlerOfScrapy:
    """Passes for one of Scrapy's."""

    __module__ = "scrapy.core.downloader.handlers.http11"


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "getproxies", dict)


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that were looked up."""
    names: list[str] = []

    async def resolve(host: str) -> None:
        names.append(host)

    monkeypatch.setattr(compat, "resolve", resolve)
    return names


def names_of_crawl(handler: object = None, **settings: Any) -> HostNames:
    handlers = SimpleNamespace(_get_handler=lambda scheme: handler or HandlerOfScrapy())
    engine = SimpleNamespace(downloader=SimpleNamespace(handlers=handlers))
    crawler: Any = SimpleNamespace(settings=Settings(settings), engine=engine)
    return HostNames(crawler)


async def look_up(*requests: Request, handler: object = None, **settings: Any) -> None:
    names = names_of_crawl(handler, **settings)
    for request in requests:
        await names.look_up(request)


async def test_the_names_of_hosts_are_looked_up_to_which_this_process_connects(
    looked_up: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    direct = Request(URL), Request("https://ann:secret@Garden.Example:8443/robots.txt")
    addresses = [Request(f"http://{host}/") for host in ("127.0.0.1", "127.0.0.1:8080", "[::1]:8080")]
    await look_up(*direct, *addresses, Request(URL, meta={"proxy": "http://proxy.example:8080"}))
    await look_up(Request(URL), handler=HandlerOfUser())
    assert looked_up == ["town.example", "garden.example"]
    monkeypatch.setattr(connections, "getproxies", lambda: {"http": "http://proxy.example:8080"})
    await look_up(Request(URL))
    assert looked_up[2:] == []
    await look_up(Request(URL, meta={"proxy": None}), HTTPPROXY_ENABLED=False)
    assert looked_up[2:] == ["town.example"]


@pytest.mark.parametrize(("threads", "expected"), [(3, 3), (1, 1), (0, 1)])
async def test_no_more_names_are_looked_up_at_a_time_than_there_are_threads(
    threads: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = most = done = 0

    async def resolve(host: str) -> None:
        nonlocal now, most, done
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.005)
        now -= 1
        done += 1

    monkeypatch.setattr(compat, "resolve", resolve)
    names = names_of_crawl(REACTOR_THREADPOOL_MAXSIZE=threads)
    requests = [Request(f"http://town{number}.example/robots.txt") for number in range(12)]
    await asyncio.gather(*(names.look_up(request) for request in requests))
    assert (most, done) == (expected, 12)


@pytest.mark.parametrize(
    "error", [socket.gaierror("no such name"), OSError("no network"), UnicodeError("no")]
)
async def test_failures_are_ignored_and_keep_no_thread(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def getaddrinfo(host: str, *_: object, **__: object) -> None:
        asked.append(host)
        raise error

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    names = names_of_crawl(REACTOR_THREADPOOL_MAXSIZE=1)
    for number in range(3):
        await asyncio.wait_for(names.look_up(Request(f"http://town{number}.example/robots.txt")), 30)
    assert asked == ["town0.example", "town1.example", "town2.example"]


async def test_a_look_up_that_is_cancelled_keeps_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def resolve(host: str) -> None:
        asked.append(host)
        if host == "slow.example":
            await asyncio.Event().wait()

    monkeypatch.setattr(compat, "resolve", resolve)
    names = names_of_crawl(REACTOR_THREADPOOL_MAXSIZE=1)
    slow = asyncio.ensure_future(names.look_up(Request("http://slow.example/robots.txt")))
    await asyncio.sleep(0.01)
    slow.cancel()
    await asyncio.wait_for(names.look_up(Request(URL)), 30)
    assert asked == ["slow.example", "town.example"]
