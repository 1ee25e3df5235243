"""Fixtures for several test files."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from scrapy.settings import default_settings
from scrapy.utils.reactor import is_asyncio_reactor_installed
from selenium import webdriver

from tests.helpers.running import crawling
from tests.helpers.running.browser import as_new, chromium
from tests.helpers.running.crawling import MODES
from tests.helpers.running.redisserver import RedisCluster, RedisSentinel, RedisServer, running
from tests.helpers.sites.certificate import make_certificate

# The time of an example depends on the load of the machine.
for profile, examples in {"long": 10_000, "tests": 30}.items():
    settings.register_profile(
        profile, max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile("tests")

# `make check` names tests/built, and so runs it.
collect_ignore = ["built"]
# Tests of crawls run in forks of a process; where there is no fork, as on Windows, only unit tests run.
if not hasattr(os, "fork"):
    collect_ignore += ["crawls", "project", "unit/test_processes.py"]

try:
    is_asyncio_reactor_installed()
except RuntimeError:
    if not hasattr(default_settings, "TWISTED_REACTOR_ENABLED"):
        # Scrapy 2.13 and 2.14 need a reactor, but no longer install one if there is none.
        from twisted.internet import reactor  # noqa: F401


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let workers mix tests that wait with tests that compute.

    Groups take longest, so they start first; unit tests take shortest, so the last ones are unit tests.
    """
    if hasattr(config, "workerinput"):
        some = random.Random(1994)  # the same order in each worker

        def place(item: pytest.Item) -> float:
            end = 1.0 if item.path.parent.name == "unit" else 0.8
            return -1.0 if item.get_closest_marker("xdist_group") else some.uniform(0, end)

        items.sort(key=place)


def pytest_collection_finish() -> None:
    """Let the garbage collector skip all tests and modules."""
    gc.freeze()


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each mode in which Scrapy can run; crawls run in it."""
    monkeypatch.setattr(crawling, "current_mode", request.param)
    return str(request.param)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run tests that are coroutine functions."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis server for one test."""
    with running(RedisServer, tmp_path) as server:
        yield server


@pytest.fixture
def redis_cluster(tmp_path: Path) -> Iterator[RedisCluster]:
    """A Redis Cluster for one test."""
    with running(RedisCluster, tmp_path) as servers:
        yield servers


@pytest.fixture
def redis_sentinel(tmp_path: Path) -> Iterator[RedisSentinel]:
    """A Redis with a replica and a Sentinel, for one test."""
    with running(RedisSentinel, tmp_path) as servers:
        yield servers


@pytest.fixture(scope="session")
def _browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as chrome:
        yield chrome


@pytest.fixture
def browser(_browser: webdriver.Chrome) -> webdriver.Chrome:
    """A browser as it is when it starts."""
    return as_new(_browser)


@pytest.fixture(scope="session")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for this machine, and its key."""
    return make_certificate(tmp_path_factory.mktemp("tls"))
