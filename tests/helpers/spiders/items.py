"""Spiders that yield items."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any, ClassVar
from urllib.parse import urlsplit

from scrapy import signals
from scrapy.http import Response
from twisted.python.failure import Failure

from scrapy_norobots.scrapy_api import compat
from tests.helpers.spiders.pages import Pages


class Items(Pages):
    """Yields an item for each page, its URL or the given one, and records what the pipelines return."""

    listens: ClassVar = {"scraped": signals.item_scraped}

    def __init__(self, item: dict[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._item = item
        if item is not None:
            from scrapy.pipelines import media

            if not hasattr(media, "_MediaRequestFiltered"):
                # Older versions log a traceback for each file that any middleware drops.
                logging.getLogger(media.__name__).setLevel(logging.CRITICAL)

    def scraped(self, item: dict[str, Any]) -> None:
        self.notes["item"] = item

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        yield self._item or {"url": response.url}
        yield from super().parse(response)


class Collecting(Pages):
    """Yields an item per page, and requests for its links; ``marked`` ones have `dont_obey_robotstxt`.

    Records the items that were not dropped, and `robots_meta` of each page.
    """

    listens: ClassVar = {"scraped": signals.item_scraped}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.notes.update(items=[], asked={})

    def scraped(self, item: dict[str, str]) -> None:
        self.notes["items"].append(item["of"])

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        path = urlsplit(response.url).path
        asked = response.meta.get("robots_meta")
        self.notes["asked"][path] = asked and [asked.index, asked.follow, asked.document_state, asked.url]
        yield {"of": path}
        for request in super().parse(response):
            if "marked" in request.url:
                request.meta["dont_obey_robotstxt"] = True
            yield request
        yield None

    def dropped(self, failure: Failure) -> Iterator[Any]:  # type: ignore[override]
        super().dropped(failure)
        yield {"of": f"failure of {urlsplit(failure.request.url).path}"}  # type: ignore[attr-defined]


class CollectingSlowly(Collecting):
    """The same with an asynchronous callback."""

    async def parse(self, response: Response, **kwargs: Any) -> AsyncIterator[Any]:  # type: ignore[override]
        for each in super().parse(response):
            await compat.waiting_for(compat.spawn(_nothing()))
            yield each


async def _nothing() -> None:
    """Return something that a coroutine can await."""


class Considerate(Collecting):
    """Enables NOROBOTS_META in its own settings."""

    custom_settings = {"NOROBOTS_META": True}  # noqa: RUF012  # as users write it
