"""`OriginCache`: an access stays in memory until it expires, or until there is no room."""

from __future__ import annotations

import pytest

from scrapy_norobots.load import loader
from scrapy_norobots.load.loader import OriginCache
from scrapy_norobots.rules.access import Access, AccessKind
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Origin


def origin(number: int) -> Origin:
    return Origin("http", f"{number}.town.example", 80)


SNAPSHOT = Snapshot(origin(0), origin(0).robots_url, 0.0, status=404)
FINE = Access(AccessKind.OPEN, SNAPSHOT, "4xx", lifetime=600)


def cache_of(*numbers: int, memory_max: int) -> OriginCache:
    cache = OriginCache(memory_max=memory_max)
    for number in numbers:
        cache.put(origin(number), FINE)
    return cache


def test_an_access_is_used_until_it_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(loader, "monotonic", lambda: now)
    cache = OriginCache(memory_max=10**6)
    cache.put(origin(1), FINE)
    now += 599.9
    assert cache.get(origin(1)) is FINE
    now += 0.1
    assert cache.get(origin(1)) is None
    assert cache.latest(origin(1)) is FINE


def test_memory_max_evicts_the_least_recently_used() -> None:
    cache = cache_of(1, 2, 3, memory_max=3 * FINE.size)
    cache.get(origin(1))
    cache.put(origin(4), FINE)
    assert [cache.get(origin(number)) is FINE for number in (1, 2, 3, 4)] == [True, False, True, True]


def test_one_origin_is_kept_however_large_it_is() -> None:
    assert cache_of(1, memory_max=1).get(origin(1)) is FINE
