"""What several test files share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crawling import MODES
from tests.redisserver import NoRedisError, RedisServer
from tests.sites.certificate import make_certificate


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    """Each of the ways in which Scrapy can run."""
    return str(request.param)


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis server of the test's own."""
    try:
        server = RedisServer(tmp_path)
    except NoRedisError as exc:
        pytest.skip(str(exc))
    with server:
        yield server


@pytest.fixture(scope="session")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for this machine, signed by itself, and its key."""
    return make_certificate(tmp_path_factory.mktemp("tls"))
