"""`Addon`: it changes what it must and nothing else, and the user's own settings win."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import Settings

from scrapy_norobots import Addon, NoRobotsMiddleware, RobotsMetaMiddleware
from tests.crawling import ADDON, MODES, crawl, run_crawl
from tests.sites import Site

OURS = "scrapy_norobots.NoRobotsMiddleware"
OURS_IN_FULL = "scrapy_norobots.middleware.NoRobotsMiddleware"
META = "scrapy_norobots.RobotsMetaMiddleware"
META_IN_FULL = "scrapy_norobots.metatag.RobotsMetaMiddleware"
BUILTIN = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"


def plain(settings: Settings) -> dict[str, Any]:
    """Settings as values that can be compared; classes as keys are named by their path."""

    def path(key: Any) -> Any:
        return f"{key.__module__}.{key.__qualname__}" if isinstance(key, type) else key

    return {
        name: {path(key): item for key, item in value.items()} if isinstance(value, Mapping) else value
        for name, value in settings.items()
    }


def applied(times: int = 1, **own: Any) -> dict[str, Any]:
    """What the add-on changes in the settings of a project, as a difference to them."""
    settings = Settings(own)
    before = plain(settings)
    for _ in range(times):
        Addon().update_settings(settings)
    return {name: value for name, value in plain(settings).items() if before.get(name) != value}


@pytest.mark.parametrize("times", [1, 2])
def test_it_changes_three_settings_and_no_more(times: int) -> None:
    assert applied(times) == {
        "ROBOTSTXT_OBEY": True,
        "DOWNLOADER_MIDDLEWARES": {OURS: 100, BUILTIN: None},
        "SPIDER_MIDDLEWARES": {META: 100},
    }


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({"my.Middleware": 7}, {"my.Middleware": 7, OURS: 100, BUILTIN: None}),
        ({BUILTIN: 450}, {BUILTIN: None, OURS: 450}),
        ({RobotsTxtMiddleware: 450}, {BUILTIN: None, OURS: 450}),
        ({BUILTIN: None}, {BUILTIN: None, OURS: 100}),
        ({OURS: 600}, {OURS: 600, BUILTIN: None}),
        ({OURS_IN_FULL: 600}, {OURS_IN_FULL: 600, BUILTIN: None}),
        ({NoRobotsMiddleware: 600}, {OURS_IN_FULL: 600, BUILTIN: None}),
        ({OURS: None}, {OURS: None}),
        ({"no.such.Middleware": 1}, {"no.such.Middleware": 1, OURS: 100, BUILTIN: None}),
    ],
    ids=[
        "others stay",
        "its place as a path",
        "its place as a class",
        "switched off",
        "ours placed",
        "ours by its full path",
        "ours as a class",
        "ours switched off",
        "a broken one",
    ],
)
@pytest.mark.parametrize("times", [1, 2])
def test_middlewares(own: dict[Any, Any], expected: dict[str, Any], times: int) -> None:
    changed = applied(times, DOWNLOADER_MIDDLEWARES=own)
    assert changed.get("DOWNLOADER_MIDDLEWARES", own) == expected
    # Where ours is switched off, Scrapy's own stays, and so does what the project says of it.
    assert ("ROBOTSTXT_OBEY" in changed) == (own != {OURS: None})


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({"my.Middleware": 7}, {"my.Middleware": 7, META: 100}),
        ({META: 600}, {META: 600}),
        ({META: None}, {META: None}),
        ({META_IN_FULL: 600}, {META_IN_FULL: 600}),
        ({RobotsMetaMiddleware: 600}, {META_IN_FULL: 600}),
    ],
    ids=["others stay", "placed", "switched off", "by its full path", "as a class"],
)
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("other", [{}, {OURS: None}], ids=["both", "the other one off"])
def test_spider_middlewares(
    own: dict[Any, Any], expected: dict[str, Any], times: int, other: dict[Any, Any]
) -> None:
    changed = applied(times, SPIDER_MIDDLEWARES=own, DOWNLOADER_MIDDLEWARES=other)
    assert changed.get("SPIDER_MIDDLEWARES", plain(Settings({"own": own}))["own"]) == expected


@pytest.mark.parametrize("setting", ["DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES"])
def test_it_leaves_the_projects_dictionary_alone(setting: str) -> None:
    own = {"my.Middleware": 7}
    Addon().update_settings(Settings({setting: own}))
    assert own == {"my.Middleware": 7}


@pytest.mark.parametrize("obey", [True, False])
def test_what_the_project_says_of_obeying_counts(obey: bool) -> None:
    settings = Settings({"ROBOTSTXT_OBEY": obey})
    Addon().update_settings(settings)
    assert settings.getbool("ROBOTSTXT_OBEY") is obey


ENABLED = {
    "add-on": ADDON,
    "add-on as a class": {"ADDONS": {"scrapy_norobots.addon.Addon": 0}},
    "by hand": {"ROBOTSTXT_OBEY": True, "DOWNLOADER_MIDDLEWARES": {OURS: 100, BUILTIN: None}},
    "over an order of the user's own": {**ADDON, "DOWNLOADER_MIDDLEWARES": {BUILTIN: 543}},
    "beside one that inherits": {**ADDON, "DOWNLOADER_MIDDLEWARES": {"tests.components.OurOwn": 100}},
}


@pytest.mark.parametrize(
    ("way", "spider"),
    [
        *((way, "tests.spiders.Pages") for way in ENABLED),
        ("add-on", "tests.spiders.OrdersTheClass"),
        ("add-on", "tests.spiders.SwitchesTheClassOff"),
    ],
)
def test_each_way_to_enable_it_gives_one_middleware_and_one_download(way: str, spider: str) -> None:
    with Site("User-agent: *\nDisallow: /back/\n") as site:
        seen = crawl(f"{site.url}/back/", f"{site.url}/", settings=ENABLED[way], spider=spider)
    assert [drop.type for drop in seen.drops] == ["RobotsForbidden"]
    assert site.targets() == ["/robots.txt", "/"]


@pytest.mark.parametrize("key", [BUILTIN, "tests.components.ScrapysOwn"])
def test_scrapys_own_beside_it_is_a_warning_that_names_its_key(key: str) -> None:
    by_hand = {OURS: 100, BUILTIN: None, key: 110}
    with Site("User-agent: *\nDisallow: /back/\n") as site:
        seen = crawl(f"{site.url}/", settings={"ROBOTSTXT_OBEY": True, "DOWNLOADER_MIDDLEWARES": by_hand})
    (line,) = seen.log_lines("WARNING: Scrapy's own robots.txt middleware is enabled too")
    assert line.endswith(f"set {key!r} to None in DOWNLOADER_MIDDLEWARES")


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
def test_what_stands_in_the_wrong_setting_is_an_error_that_names_the_right_one(
    setting: str, key: str, place: str
) -> None:
    with Site() as site:
        done = run_crawl(f"{site.url}/", settings={setting: {key: 100}})
    assert f"ValueError: {setting} = {{{key!r}: 100}}: {key!r} belongs into {place}" in done.stderr
    assert site.targets() == []


@pytest.mark.skipif(MODES[0] == "no reactor", reason="no module may import a reactor there")
def test_modules_that_import_the_reactor_are_not_imported_before_it_is_there() -> None:
    theirs = {
        "EXTENSIONS": {"tests.importing.Extension": 1},
        "DOWNLOADER_MIDDLEWARES": {"tests.importing.Middleware": 7},
        "SPIDER_MIDDLEWARES": {"tests.importing.Middleware": 7},
    }
    with Site("User-agent: *\nDisallow: /back/\n") as site:
        seen = crawl(f"{site.url}/", settings={**ADDON, **theirs})
    assert len(seen.pages) == 1


def test_it_stands_before_what_has_the_same_order() -> None:
    settings = Settings({"DOWNLOADER_MIDDLEWARES": {"my.Middleware": 100}})
    Addon().update_settings(settings)
    assert next(iter(settings.getdict("DOWNLOADER_MIDDLEWARES"))) == OURS


def test_a_spider_that_does_not_obey_wins_over_the_add_on() -> None:
    with Site("User-agent: *\nDisallow: /\n") as site:
        crawl(f"{site.url}/back/", spider="tests.spiders.Unruly")
    assert site.targets() == ["/back/"]
