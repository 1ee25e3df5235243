"""The settings on the page about deployment: each block runs as it is, with other addresses."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from scrapy_norobots.standard import Origin
from scrapy_norobots.stores.opening import open_store
from tests.helpers.running.crawling import FLEET, Crawl, crawl
from tests.helpers.running.redisserver import RedisCluster, RedisServer
from tests.helpers.sites import Site, page

PAGE = Path(__file__).parents[2] / "docs" / "deployment.md"
RULES = "User-agent: *\nDisallow: /back/\nCrawl-delay: 0.1\n"


def block(heading: str) -> dict[str, Any]:
    """Return the settings in the section of a heading."""
    [code] = re.findall(
        rf"^## {heading}\n(?:(?!^## ).)*?^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    settings: dict[str, Any] = {}
    exec(code, {}, settings)
    return settings


def crawl_with(settings: dict[str, Any], site: Site, queue: RedisServer | None = None) -> Crawl:
    """Crawl a site that forbids one of the links of its first page."""
    site.answers["/"] = page("/a", "/back/b")
    if queue is None:
        return crawl(f"{site.url}/", settings=settings, arguments={"follow": True})
    redis = pytest.importorskip("redis")
    with redis.Redis.from_url(queue.url) as client:
        client.rpush("fleet:start_urls", json.dumps({"url": f"{site.url}/"}))
    return crawl(
        settings={**settings, "MAX_IDLE_TIME_BEFORE_CLOSE": 1},
        arguments={"follow": True},
        **FLEET,
    )


def check(seen: Crawl, site: Site, settings: dict[str, Any]) -> None:
    """The crawl has obeyed, and the file is in the store."""
    assert site.pages() == ["/", "/a"]
    assert [drop.type for drop in seen.drops] == ["RobotsForbidden"]
    assert seen.stats["norobots/crawl_delay/kept"] == 1
    assert not seen.log_lines("WARNING", "NOROBOTS_")
    origin = Origin.of(site.url)
    assert origin is not None

    async def stored() -> Sequence[object]:
        store = open_store(settings["NOROBOTS_STORE"], 2**30)
        try:
            return await store.load(origin)
        finally:
            await store.close()

    assert len(asyncio.run(stored())) == 1


def test_the_settings_for_one_machine(tmp_path: Path) -> None:
    settings = block("One machine")
    assert settings["NOROBOTS_STORE"].startswith("sqlite:////")
    settings["NOROBOTS_STORE"] = f"sqlite:///{tmp_path}/robots.sqlite"
    with Site(RULES) as site:
        check(crawl_with(settings, site), site, settings)


@pytest.mark.parametrize("heading", ["Several machines", "A cluster"])
def test_the_settings_for_a_fleet(heading: str, redis_server: RedisServer, request: Any) -> None:
    pytest.importorskip("scrapy_redis", reason="scrapy-redis is not installed")
    settings = block(heading)
    settings["REDIS_URL"] = redis_server.url
    if heading == "A cluster":
        assert settings["NOROBOTS_STORE"].startswith("redis+cluster://")
        cluster: RedisCluster = request.getfixturevalue("redis_cluster")
        settings["NOROBOTS_STORE"] = cluster.url
    else:
        settings["NOROBOTS_STORE"] = settings["NOROBOTS_STORE"].replace(
            "redis-host:6379", f"127.0.0.1:{redis_server.port}"
        )
    with Site(RULES) as site:
        check(crawl_with(settings, site, redis_server), site, settings)
