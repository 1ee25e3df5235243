"""The add-on and other ways to enable the plugin, in real crawls."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers.running.crawling import ADDON, MODES, crawl
from tests.helpers.sites import Site
from tests.unit.test_addon import BUILTIN, OURS

BY_HAND = {"ROBOTSTXT_OBEY": True, "DOWNLOADER_MIDDLEWARES": {OURS: 100, BUILTIN: None}}
BESIDE_ONE_THAT_INHERITS = {
    **ADDON,
    "DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.derived.OurOwn": 100},
}


@pytest.mark.parametrize(
    ("settings", "spider"),
    [
        (BY_HAND, "pages.Pages"),
        (BESIDE_ONE_THAT_INHERITS, "pages.Pages"),
        (ADDON, "configured.OrdersTheClass"),
        (ADDON, "configured.SwitchesTheClassOff"),
    ],
)
def test_each_way_to_enable_it_adds_one_middleware(settings: dict[str, Any], spider: str) -> None:
    with Site("User-agent: *\nDisallow: /back/\n") as site:
        urls = (f"{site.url}/back/", f"{site.url}/")
        seen = crawl(*urls, settings=settings, spider=spider)
    assert [drop.type for drop in seen.drops] == ["RobotsForbidden"]
    assert site.targets() == ["/robots.txt", "/"]


@pytest.mark.skipif(MODES[0] == "no reactor", reason="no module may import a reactor there")
def test_the_add_on_does_not_import_modules_that_install_a_reactor() -> None:
    theirs = {
        "EXTENSIONS": {"tests.helpers.components.importing.Extension": 1},
        "DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.importing.Middleware": 7},
        "SPIDER_MIDDLEWARES": {"tests.helpers.components.importing.Middleware": 7},
    }
    with Site("User-agent: *\nDisallow: /back/\n") as site:
        seen = crawl(f"{site.url}/", settings={**ADDON, **theirs})
    assert len(seen.pages) == 1


def test_a_spider_that_does_not_obey_wins_over_the_add_on() -> None:
    with Site("User-agent: *\nDisallow: /\n") as site:
        crawl(f"{site.url}/back/", spider="configured.Unruly")
    assert site.targets() == ["/back/"]
