"""What is checked before a crawl begins."""

from __future__ import annotations

import pytest

from tests.helpers.running.crawling import ADDON, crawl, run_crawl
from tests.helpers.sites import Site
from tests.unit.test_addon import BUILTIN, META, OURS, OURS_IN_FULL

SCRAPYS_OWN = "tests.helpers.components.derived.ScrapysOwn"


def test_scrapys_own_middleware_beside_it_is_a_warning() -> None:
    by_hand = {OURS: 100, BUILTIN: 110}
    with Site("User-agent: *\nDisallow: /back/\n") as site:
        seen = crawl(f"{site.url}/", settings={"ROBOTSTXT_OBEY": True, "DOWNLOADER_MIDDLEWARES": by_hand})
    (line,) = seen.log_lines("WARNING: Scrapy's own robots.txt middleware is enabled too")
    assert line.endswith(f"set {BUILTIN!r} to None in DOWNLOADER_MIDDLEWARES")


def test_meta_tags_without_their_middleware_are_a_warning() -> None:
    settings = {
        "ROBOTSTXT_OBEY": True,
        "NOROBOTS_META": True,
        "DOWNLOADER_MIDDLEWARES": {OURS: 100, BUILTIN: None},
    }
    with Site() as site:
        seen = crawl(f"{site.url}/", settings=settings)
    assert len(seen.log_lines("WARNING: ", "NOROBOTS_META", "SPIDER_MIDDLEWARES")) == 1


@pytest.mark.parametrize(
    ("spider", "listed"),
    [("pages.Pages", {SCRAPYS_OWN: 110}), ("configured.ListsASubclassOfScrapys", {})],
    ids=["by its path", "by its class"],
)
def test_a_subclass_of_scrapys_own_middleware_beside_it_is_a_warning(
    spider: str, listed: dict[str, int]
) -> None:
    settings = {**ADDON, "DOWNLOADER_MIDDLEWARES": listed}
    with Site("User-agent: *\nDisallow: /back/\n") as site:
        seen = crawl(f"{site.url}/", settings=settings, spider=f"tests.helpers.spiders.{spider}")
    assert len(site.robots_hits()) == 2
    (line,) = seen.log_lines("WARNING: ", "robots.txt middleware")
    assert f"{SCRAPYS_OWN}, a subclass of Scrapy's robots.txt middleware, is enabled too" in line
    assert "a request passes only if both allow it, and each robots.txt is downloaded twice" in line


@pytest.mark.parametrize(
    ("setting", "key", "place"),
    [
        ("ADDONS", OURS, "DOWNLOADER_MIDDLEWARES"),
        ("EXTENSIONS", OURS, "DOWNLOADER_MIDDLEWARES"),
        ("SPIDER_MIDDLEWARES", OURS_IN_FULL, "DOWNLOADER_MIDDLEWARES"),
        ("DOWNLOADER_MIDDLEWARES", META, "SPIDER_MIDDLEWARES"),
        ("DOWNLOADER_MIDDLEWARES", "scrapy_norobots.Addon", "ADDONS"),
        ("EXTENSIONS", "scrapy_norobots.Addon", "ADDONS"),
    ],
)
def test_a_component_in_the_wrong_setting_is_an_error(setting: str, key: str, place: str) -> None:
    with Site() as site:
        done = run_crawl(f"{site.url}/", settings={setting: {key: 100}})
    assert f"ValueError: {setting} = {{{key!r}: 100}}: {key!r} belongs in {place}" in done.stderr
    assert site.targets() == []


def test_a_subclass_that_overrides_hooks_of_scrapys_own_middleware_is_a_warning() -> None:
    with Site("User-agent: *\nDisallow: /back/\n") as site:
        settings = {**ADDON, "DOWNLOADER_MIDDLEWARES": {"tests.helpers.components.derived.HalfPorted": 100}}
        seen = crawl(f"{site.url}/", f"{site.url}/back/", settings=settings)
    assert seen.pages == [f"{site.url}/"]
    [line] = seen.log_lines("WARNING", "tests.helpers.components.derived.HalfPorted overrides")
    assert "so this has no effect: DOWNLOAD_PRIORITY, process_request_2. " in line
