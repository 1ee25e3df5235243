"""The plugin with one thing wrong, for tests that must see it: `Slipping` crawls with a slip in `SLIPS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scrapy import Request

from scrapy_norobots import middleware
from scrapy_norobots.loader import Loaded, RobotsLoader
from scrapy_norobots.standard import Origin, rules
from scrapy_norobots.standard.urls import split
from tests.spiders import Pages


def _no_normal_form(_urls: list[str]) -> None:
    rules.normal = lambda target, **_: target  # type: ignore[attr-defined]


def _one_file_for_both_schemes(urls: list[str]) -> None:
    """Where a host is crawled by both, the http file counts for https."""
    plain = {origin.host: origin for url in urls if (origin := Origin.of(url)) and origin.scheme == "http"}

    def split_carelessly(url: str) -> tuple[Origin | None, str | None]:
        origin, target = split(url)
        return (plain.get(origin.host, origin) if origin else None), target

    middleware.split = split_carelessly  # type: ignore[attr-defined]


def _each_for_itself(_urls: list[str]) -> None:
    async def load(loader: RobotsLoader, origin: Origin, request: Request, robot: str | bytes) -> Loaded:
        return await loader._load(origin, request, robot)

    RobotsLoader.load = load  # type: ignore[assignment, method-assign]


SLIPS: dict[str, Callable[[list[str]], None]] = {
    "no normal form": _no_normal_form,
    "one file for both schemes": _one_file_for_both_schemes,
    "each request asks for itself": _each_for_itself,
}


class Slipping(Pages):
    """Made before the middleware is, and so in time to spoil it."""

    def __init__(self, requests: list[str | dict[str, Any]], slip: str, **kwargs: Any) -> None:
        super().__init__(requests, **kwargs)
        SLIPS[slip]([request for request in requests if isinstance(request, str)])
