"""`Raising`: a spider that breaks one feature of the plugin, or removes all of them."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

from scrapy import Spider
from scrapy.settings import Settings

from scrapy_norobots import features
from scrapy_norobots.events import Events
from scrapy_norobots.settings import Config
from tests.helpers.spiders.pages import Pages

# Settings that enable all features; the folder of evidence comes from the test.
ALL_ON: dict[str, Any] = {"NOROBOTS_CRAWL_DELAY_MAX": 0.1, "NOROBOTS_META": True, "NOROBOTS_USAGE": True}


class BugError(Exception):
    """What a broken feature raises."""


def raise_bug(event: object) -> None:
    raise BugError(type(event).__name__)


class Recording(Events):
    """Remembers which events were subscribed to; those named in `broken` raise."""

    def __init__(self, broken: str = "") -> None:
        super().__init__()
        self.kinds: list[str] = []
        self._broken = broken

    def on(self, kind: Any, function: Any) -> None:
        self.kinds.append(kind.__name__)
        super().on(kind, raise_bug if kind.__name__ == self._broken else function)


def subscriptions() -> list[tuple[str, str]]:
    """Return each feature with each event to which it subscribes."""
    settings = Settings({**ALL_ON, "NOROBOTS_EVIDENCE": "folder"})
    found = []
    for feature in features.FEATURES:
        events = Recording()
        crawler = MagicMock(settings=settings, spider=Spider("spider"))
        feature.subscribe(crawler, Config.from_settings(settings), events)
        found += [(feature.__name__.rpartition(".")[2], kind) for kind in sorted(set(events.kinds))]
    return found


class Raising(Pages):
    """Breaks the `feature` whenever it gets an `event`; without a `feature`, removes all.

    A spider is created before the middleware, so this is early enough.
    """

    def __init__(
        self, requests: list[str | dict[str, Any]], feature: str = "", event: str = "", **kwargs: Any
    ) -> None:
        super().__init__(requests, **kwargs)
        if not feature:
            features.FEATURES = ()  # type: ignore[assignment]
            return
        module = getattr(features, feature)
        subscribe = module.subscribe

        def break_one(crawler: Any, config: Any, events: Events) -> None:
            recording = Recording(event)
            recording._functions = events._functions
            recording.started = events.started
            subscribe(crawler, config, recording)

        module.subscribe = break_one
