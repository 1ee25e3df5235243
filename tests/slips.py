"""Inject a bug into the plugin, for tests that must detect it: `Slipping` crawls with a bug from `SLIPS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scrapy import Request

from scrapy_norobots import middleware
from scrapy_norobots.loader import Loaded, RobotsLoader
from scrapy_norobots.standard import Origin, rules
from scrapy_norobots.standard.urls import split
from tests.features import Items


def _no_normal_form(_urls: list[str]) -> None:
    rules.normal = lambda target, **_: target  # type: ignore[attr-defined]


def _one_file_for_both_schemes(urls: list[str]) -> None:
    """Apply the http file of a host to https too."""
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
    "each request downloads by itself": _each_for_itself,
}


class Slipping(Items):
    """Injects a bug; the spider is created before the middleware, so this is early enough."""

    def __init__(self, requests: list[str | dict[str, Any]], slip: str, **kwargs: Any) -> None:
        super().__init__(requests, **kwargs)
        SLIPS[slip]([request for request in requests if isinstance(request, str)])
