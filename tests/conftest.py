"""Fixtures for several test files."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from scrapy.settings import default_settings
from scrapy.utils.reactor import is_asyncio_reactor_installed

from tests.helpers.running.crawling import MODES
from tests.helpers.running.redisserver import NoRedisError, RedisCluster, RedisSentinel, RedisServer
from tests.helpers.sites.certificate import make_certificate

_Several = TypeVar("_Several", RedisCluster, RedisSentinel)

# The time of an example depends on the load of the machine.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")

# Tests of crawls run in forks of a process; where there is no fork, as on Windows, only unit tests run.
collect_ignore = [] if hasattr(os, "fork") else ["crawls", "project", "unit/test_processes.py"]

try:
    is_asyncio_reactor_installed()
except RuntimeError:
    if not hasattr(default_settings, "TWISTED_REACTOR_ENABLED"):
        # Scrapy 2.13 and 2.14 need a reactor, but no longer install one if there is none.
        from twisted.internet import reactor  # noqa: F401


def pytest_collection_finish() -> None:
    """Let the garbage collector skip all tests and modules."""
    gc.freeze()


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    """Each mode in which Scrapy can run."""
    return str(request.param)


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis server for one test."""
    try:
        server = RedisServer(tmp_path)
    except NoRedisError as exc:
        pytest.skip(str(exc))
    with server:
        yield server


@pytest.fixture
def redis_cluster(tmp_path: Path) -> Iterator[RedisCluster]:
    """A Redis Cluster for one test."""
    yield from _several(RedisCluster, tmp_path)


@pytest.fixture
def redis_sentinel(tmp_path: Path) -> Iterator[RedisSentinel]:
    """A Redis with a replica and a Sentinel, for one test."""
    yield from _several(RedisSentinel, tmp_path)


def _several(kind: Callable[[Path], _Several], folder: Path) -> Iterator[_Several]:
    pytest.importorskip("redis")
    with ExitStack() as stack:
        for number in range(3):  # on a busy machine, servers may not start or meet in time
            own = folder / f"servers-{number}"
            own.mkdir()
            try:
                servers = stack.enter_context(kind(own))
            except NoRedisError as exc:
                pytest.skip(str(exc))
            except RuntimeError:
                if number == 2:
                    raise
            else:
                break
        yield servers


@pytest.fixture(scope="session")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for this machine, and its key."""
    return make_certificate(tmp_path_factory.mktemp("tls"))
