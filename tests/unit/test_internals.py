"""`scrapy_norobots.scrapy_api.internals` without a crawl."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from scrapy.core.downloader import Downloader

from scrapy_norobots.scrapy_api.internals import (
    INTERNALS,
    missing_internals,
    open_files_max,
    widen_pool,
)


def test_an_engine_without_a_downloader_lacks_all_of_it() -> None:
    crawler = MagicMock()
    crawler.engine = object()
    missing = missing_internals(crawler)
    assert [name for name in missing if name.startswith("downloader.")] == [
        f"downloader.{name}" for name in INTERNALS["downloader"]
    ]
    assert not [name for name in missing if name.startswith("slot.")]


def test_a_pool_of_connections_is_widened_if_it_has_a_limit() -> None:
    bounded = SimpleNamespace(_session=SimpleNamespace(connector=SimpleNamespace(_limit=16)))
    unbounded = SimpleNamespace(_session=SimpleNamespace(connector=SimpleNamespace(_limit=0)))
    handlers = {"http": bounded, "https": unbounded, "ftp": object()}
    downloader = MagicMock(Downloader, handlers=SimpleNamespace(_get_handler=handlers.__getitem__))
    for scheme in handlers:
        widen_pool(downloader, scheme, 500)
    assert bounded._session.connector._limit == 516
    assert unbounded._session.connector._limit == 0


def test_the_limit_of_open_files_is_that_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource", reason="not on Windows")
    assert open_files_max() in (resource.getrlimit(resource.RLIMIT_NOFILE)[0], None)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert open_files_max() is None
    monkeypatch.setitem(sys.modules, "resource", None)  # as on Windows
    assert open_files_max() is None
