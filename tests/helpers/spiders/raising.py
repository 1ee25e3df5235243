"""`Raising`: a spider that breaks one feature of the plugin, or removes all of them."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest.mock import MagicMock

from scrapy import Spider
from scrapy.settings import Settings

from scrapy_norobots import features
from scrapy_norobots.events import Event, Events
from scrapy_norobots.settings import Config
from tests.helpers.spiders.pages import Pages

# Settings that enable all features; the folder of evidence comes from the test.
ALL_ON: dict[str, Any] = {"NOROBOTS_CRAWL_DELAY_MAX": 0.1, "NOROBOTS_META": True, "NOROBOTS_USAGE": True}


class BugError(Exception):
    """What a broken feature raises."""


def raise_bug(*_: object) -> None:
    raise BugError


class Recording:
    """The `events` of a crawl, which note who subscribes; those named `broken` raise."""

    def __init__(self, events: Events, broken: str = "") -> None:
        self.names: set[str] = set()
        self._events = events
        self._broken = broken

    def __getattr__(self, name: str) -> Any:
        event = getattr(self._events, name)
        return Subscribing(self, name, event) if isinstance(event, Event) else event

    def subscribe(self, name: str, event: Event[Any], function: Any) -> None:
        self.names.add(name)
        event.connect(raise_bug if name == self._broken else function)


class Subscribing(NamedTuple):
    """One event of `Recording`; a feature that sends it sends the real one."""

    recording: Recording
    name: str
    event: Event[Any]

    def connect(self, function: Any) -> None:
        self.recording.subscribe(self.name, self.event, function)

    def send(self, *args: Any) -> None:
        self.event.send(*args)


def subscriptions() -> list[tuple[str, str]]:
    """Return each feature with each event to which it subscribes."""
    found = []
    with TemporaryDirectory() as folder:
        spider_middlewares = {"scrapy_norobots.RobotsMetaMiddleware": 100}
        settings = Settings({**ALL_ON, "NOROBOTS_EVIDENCE": folder, "SPIDER_MIDDLEWARES": spider_middlewares})
        for feature in features.FEATURES:
            events: Any = Recording(Events())
            crawler = MagicMock(settings=settings, spider=Spider("spider"))
            feature.subscribe(crawler, Config.from_settings(settings), events)
            events.opened.send(MagicMock())
            found += [(feature.__name__.rpartition(".")[2], name) for name in sorted(events.names)]
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
            recording: Any = Recording(events, event)
            subscribe(crawler, config, recording)

        module.subscribe = break_one
