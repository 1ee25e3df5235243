"""Download handlers, and what browsers and DNS resolvers of users do."""

from __future__ import annotations

from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.crawler import Crawler
from twisted.internet.defer import Deferred

from scrapy_norobots.scrapy_api import compat

if TYPE_CHECKING:
    from typing_extensions import Self


class RenderingByDefault(HTTP11DownloadHandler):
    """Renders every request, and says so in a header, unless the meta of the request forbids it."""

    if iscoroutinefunction(HTTP11DownloadHandler.download_request):

        async def download_request(self, request: Request, *args: Any) -> Any:
            return await super().download_request(_rendered(request), *args)

    else:  # before Scrapy 2.14

        def download_request(self, request: Request, *args: Any) -> Any:  # type: ignore[misc]
            return super().download_request(_rendered(request), *args)


def _rendered(request: Request) -> Request:
    if request.meta.get("render", True):
        request.headers["Rendered"] = "yes"
    return request


try:
    from scrapy.core.downloader.handlers._aiohttp import AiohttpDownloadHandler
except ImportError:  # before Scrapy 2.17
    pass
else:

    class AiohttpBesideReactor(AiohttpDownloadHandler):
        """Scrapy's handler with aiohttp, created when the event loop runs."""

        lazy = True


class NeverEnds:
    """A download handler that never returns a response and has no timeout."""

    lazy = True

    def __init__(self, crawler: Crawler) -> None:
        # Keep a reference, or the deferred would be garbage-collected.
        self._answers: list[Deferred[Any]] = []

    def _never(self) -> Deferred[Any]:
        self._answers.append(Deferred())
        return self._answers[-1]

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    if iscoroutinefunction(HTTP11DownloadHandler.download_request):

        async def download_request(self, request: Request, *args: Any) -> Any:
            return await compat.waiting_for(self._never())

        async def close(self) -> None:
            pass

    else:  # before Scrapy 2.14

        def download_request(self, request: Request, *args: Any) -> Any:  # type: ignore[misc]
            return self._never()


def is_no_document(request: Any) -> bool:
    """For scrapy-playwright: return whether the browser must not load a resource."""
    return bool(request.resource_type != "document")
