"""Fixtures for crawl tests."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.helpers.running.crawling import MODES
from tests.helpers.running.redisserver import RedisSentinel, RedisServer
from tests.helpers.samples.filled_stores import fill, snapshots


def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Mark the tests that run in each mode, so that they can be run alone."""
    for item in items:
        if "mode" in getattr(item, "fixturenames", ()):
            item.add_marker("each_mode")


@pytest.fixture
def _asyncio(request: pytest.FixtureRequest) -> None:
    """Skip a test of crawls that cannot use Redis."""
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    if parameters.get("mode", MODES[0]) == "select":
        pytest.skip("Redis needs asyncio")


@pytest.fixture
def redis_server(_asyncio: None, redis_server: RedisServer) -> RedisServer:
    """A Redis server for one test; skipped where crawls cannot use Redis."""
    return redis_server


@pytest.fixture
def redis_sentinel(_asyncio: None, redis_sentinel: RedisSentinel) -> RedisSentinel:
    """The same with a replica and a Sentinel."""
    return redis_sentinel


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with components that a check must not use: a pipeline, a feed, a job, and own requests."""
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = town.settings\n")
    (tmp_path / "town").mkdir()
    (tmp_path / "town" / "__init__.py").touch()
    (tmp_path / "town" / "settings.py").write_text(
        "BOT_NAME = 'town'\n"
        "ROBOTSTXT_OBEY = False\n"
        "USER_AGENT = 'FooBot/1.0'\n"
        "LOG_STDOUT = True\n"
        "JOBDIR = 'job'\n"
        "CLOSESPIDER_TIMEOUT = 1\n"
        "FEEDS = {'items.json': {'format': 'json', 'overwrite': True}}\n"
        "ITEM_PIPELINES = {'town.parts.Pipeline': 300}\n"
        "SPIDER_MIDDLEWARES = {'town.parts.Starter': 300}\n"
        "DOWNLOADER_MIDDLEWARES = {'town.parts.Signer': 300}\n"
    )
    (tmp_path / "town" / "parts.py").write_text(
        "from pathlib import Path\n"
        "class Pipeline:\n"
        "    def open_spider(self, spider): Path('opened').touch()\n"
        "    def process_item(self, item, spider): return item\n"
        "class Starter:\n"
        "    def __init__(self): Path('started').touch()\n"
        "class Signer:\n"
        "    def process_request(self, request, spider=None): request.headers['X-Signed'] = 'yes'\n"
    )
    (tmp_path / "items.json").write_text("[]")
    return tmp_path


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A filled store of each kind: its value."""
    if request.param == "sqlite":
        value = "sqlite:///robots.sqlite"
        fill(f"sqlite:///{tmp_path}/robots.sqlite", snapshots(time.time()))
        return value
    pytest.importorskip("redis")
    value = str(request.getfixturevalue("redis_server").url)
    fill(value, snapshots(time.time()))
    return value
