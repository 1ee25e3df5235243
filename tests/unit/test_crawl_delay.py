"""`crawl_delay`: the delay that download slots of Scrapy keep."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.core.downloader import Downloader, Slot
from scrapy.settings import Settings
from scrapy.statscollectors import MemoryStatsCollector

from scrapy_norobots.events import Events, Load
from scrapy_norobots.features import crawl_delay
from scrapy_norobots.features.crawl_delay import SlotDelays, turns
from scrapy_norobots.rules.delay_values import CrawlDelay
from scrapy_norobots.rules.parser import AllRules
from scrapy_norobots.scrapy_api.internals import (
    crawl_delay_of,
    least_delay,
    least_own_delay,
    now,
    set_crawl_delay,
)
from scrapy_norobots.standard import Origin, RobotsTxt
from tests.helpers.samples.made_up import access

PLAIN, TLS, OTHER = (
    Origin("http", "town.example", 80),
    Origin("https", "town.example", 443),
    Origin("http", "a", 80),
)


class SlotsOnly(Downloader):
    """Has one slot for each host, and for each `download_slot`."""

    def __init__(self) -> None:
        self.slots: dict[str, Any] = {}

    def _get_slot(self, request: Request, spider: Any = None) -> tuple[str, Any]:
        name = request.meta.get("download_slot", request.url.split("/")[2])
        return name, self.slots.setdefault(name, Slot(8, 0.0, 0))


@pytest.fixture
def downloader(monkeypatch: pytest.MonkeyPatch) -> SlotsOnly:
    monkeypatch.setattr(crawl_delay, "missing_internals", lambda _: [])
    return SlotsOnly()


@pytest.fixture
def delays(downloader: SlotsOnly) -> SlotDelays:
    signals = SimpleNamespace(connect=lambda *_: None)
    crawler: Any = SimpleNamespace(
        engine=SimpleNamespace(downloader=downloader), signals=signals, spider=None, settings=Settings()
    )
    crawler.stats = MemoryStatsCollector(crawler)
    core: Any = None  # only requests that are sent need it
    return SlotDelays(crawler, Events(), core, 30)


def keep(delays: SlotDelays, request: Request, origin: Origin, seconds: float) -> Any:
    """Make the slot of a request keep the delay of an origin; return the slot."""
    assert delays._downloader is not None
    name, slot = delays._downloader._get_slot(request)
    delays._keep(name, slot, origin, seconds)
    return slot


def page(url: str = "http://town.example/", **meta: Any) -> Request:
    return Request(url, meta=meta)


def test_a_slot_keeps_at_least_its_crawl_delay_and_at_least_its_own_delay() -> None:
    slot = Slot(8, 4.0, 0.5)
    set_crawl_delay(slot, 5.0)
    random.seed(1994)
    drawn = [slot.download_delay() for _ in range(1000)]
    assert min(drawn) == 5.0
    assert 5.5 < max(drawn) <= 6.0
    assert least_delay(slot) == 5.0
    slot.delay = 60.0
    assert slot.download_delay() >= 30.0 == least_delay(slot)
    set_crawl_delay(slot, 0.0)
    assert type(slot) is Slot


class SlowTurns:
    """Turns that begin at once, and that a Redis far away gives."""

    taken = 0

    async def take(self, *_: object) -> float:
        self.taken += 1
        await asyncio.sleep(0.1)
        return 0.0


@pytest.mark.parametrize("delay", [0.0001, 0.01])
async def test_a_turn_can_be_used_if_redis_takes_longer_than_the_delay(
    delay: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowTurns()
    monkeypatch.setattr(turns, "open_turns", lambda _: slow)
    crawler: Any = SimpleNamespace(engine=None, spider=None, signals=SimpleNamespace(connect=lambda *_: None))
    turn = turns.Turn(turns.FleetTurns(crawler, "redis://town.example"), "town.example")
    slot = Slot(8, 0.0, 0)
    set_crawl_delay(slot, delay, turn)
    while slow.taken < 20 and turn.seconds(slot):
        await asyncio.sleep(0.001)
    assert slow.taken < 20


@pytest.mark.parametrize(("jitter", "least"), [(0, 10.0), (0.5, 5.0), (1, 0.0), (1.5, 0.0), (None, 5.0)])
def test_the_shortest_delay_depends_on_the_jitter(jitter: float | None, least: float) -> None:
    slot = SimpleNamespace(delay=10.0, **({} if jitter is None else {"jitter": jitter}))
    assert least_own_delay(slot) == least


@pytest.mark.parametrize("jitter", [0.0, 0.5, 0.75, 1.0])
def test_a_crawl_delay_counts_from_the_response_whatever_the_jitter(jitter: float) -> None:
    slot = Slot(1, 10.0, jitter)
    if not hasattr(slot, "jitter"):
        pytest.skip("this version of Scrapy has no jitter")
    set_crawl_delay(slot, 3.0)
    slot.lastseen = now() - 8  # the request
    crawl_delay._count_from_now(slot)
    response = now()
    assert slot.lastseen <= response
    random.seed(1994)
    assert min(slot.lastseen + slot.download_delay() for _ in range(1000)) > response + 2.9


@pytest.mark.parametrize("urls", [None, 5, "town", [None], [5], ["http://["]])
@pytest.mark.parametrize("more", [{}, {"download_slot": "own"}])
def test_a_request_may_have_any_redirect_urls(delays: SlotDelays, urls: object, more: dict[str, Any]) -> None:
    request = page(redirect_urls=urls, **more)
    delays.use_slot_of_host(request)
    assert request.meta == {"redirect_urls": urls, **more}


def test_the_first_request_need_not_wait_on_a_machine_that_has_just_started(delays: SlotDelays) -> None:
    """The clock is younger than the delay."""
    slot = keep(delays, page(), PLAIN, 2 * now())
    assert slot.lastseen + slot.download_delay() <= now()
    keep(delays, page(), OTHER, 4 * now())
    assert slot.lastseen + slot.download_delay() <= now()


def test_a_shorter_delay_of_another_origin_does_not_start_that_of_a_slot_again(delays: SlotDelays) -> None:
    slot = keep(delays, page(), PLAIN, 3.0)
    slot.lastseen = request = now() - 1
    keep(delays, page(), OTHER, 2.0)
    assert slot.lastseen == request


def test_collected_slots_are_forgotten(delays: SlotDelays, downloader: SlotsOnly) -> None:
    for number in range(1000):
        keep(delays, page(f"http://town{number}.example/"), OTHER, 2.0)
        downloader.slots.clear()
        assert len(delays._slots) <= 20
    keep(delays, page("http://slow.example/"), OTHER, 100.0).lastseen = now()
    downloader.slots.clear()
    for number in range(100):
        keep(delays, page(f"http://town{number}.example/"), OTHER, 2.0)
    assert "slow.example" in delays._slots, "its delay is not over"


def test_the_number_of_origins_of_one_slot_is_limited(
    delays: SlotDelays, downloader: SlotsOnly, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crawl_delay, "_ORIGINS_MAX", 10)
    for number in range(1000):
        keep(delays, page(download_slot="all"), Origin("http", f"town{number}.example", 80), 1.0 + number % 7)
        assert len(delays._slots["all"].delays) <= 10
    assert crawl_delay_of(downloader.slots["all"]) == 7.0


def test_the_first_turn_does_not_wait_for_the_clock_of_another_machine(
    delays: SlotDelays, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine that has downloaded the file is four minutes ahead."""
    monkeypatch.setattr(turns, "open_turns", lambda _: None)
    delays._fleet = turns.FleetTurns(delays._crawler, "redis://town.example")
    body = b"User-agent: *\nCrawl-delay: 2\n"
    found = access(body=body)
    assert isinstance(found.rules, RobotsTxt)
    ahead = replace(found.snapshot, time=time.time() + 240)
    of_fleet = replace(found, snapshot=ahead, rules=AllRules([found.rules], CrawlDelay(body)))
    delays.loaded(Load(of_fleet, None, "network", 0.1, page(), "FooBot"))
    turn = delays._slots["town.example"].turn
    assert turn is not None
    assert now() < turn.not_before <= now() + 2
