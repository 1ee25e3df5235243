"""`Addon`: it changes only the settings that it must, and the user's settings win."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import SETTINGS_PRIORITIES, Settings

from scrapy_norobots import Addon, NoRobotsMiddleware, RobotsMetaMiddleware, RobotsScheduler
from scrapy_norobots.settings import DEFAULTS, Config
from tests.helpers.components.schedulers import MinimalScheduler

OURS = "scrapy_norobots.NoRobotsMiddleware"
OURS_IN_FULL = "scrapy_norobots.middleware.NoRobotsMiddleware"
META = "scrapy_norobots.RobotsMetaMiddleware"
META_IN_FULL = "scrapy_norobots.features.metatag.RobotsMetaMiddleware"
BUILTIN = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"


def plain(settings: Settings) -> dict[str, Any]:
    """Return settings as comparable values; classes as keys are replaced by their path."""

    def path(key: Any) -> Any:
        return f"{key.__module__}.{key.__qualname__}" if isinstance(key, type) else key

    return {
        name: {path(key): item for key, item in value.items()} if isinstance(value, Mapping) else value
        for name, value in settings.items()
    }


def applied(times: int = 1, **own: Any) -> dict[str, Any]:
    """Return the settings of a project that the add-on changes, without the defaults of its own."""
    settings = Settings(own)
    before = plain(settings)
    for _ in range(times):
        Addon().update_settings(settings)
    return {
        name: value
        for name, value in plain(settings).items()
        if before.get(name) != value and name not in DEFAULTS
    }


def test_it_registers_the_defaults_of_its_settings_beneath_all_others() -> None:
    settings = Settings({"NOROBOTS_TTL": 7})
    settings.set("NOROBOTS_TIMEOUT", 5, priority="default")  # by an add-on that came first
    Addon.update_pre_crawler_settings(settings)
    registered = {name: settings[name] for name in DEFAULTS}
    assert registered == {**DEFAULTS, "NOROBOTS_TTL": 7, "NOROBOTS_TIMEOUT": 5}
    assert settings.getpriority("NOROBOTS_RETRY_CLOSED") == SETTINGS_PRIORITIES["default"]
    assert Config.from_settings(settings).freshness.ttl == 7


@pytest.mark.parametrize("times", [1, 2])
def test_it_changes_five_settings_and_no_more(times: int) -> None:
    assert applied(times) == {
        "ROBOTSTXT_OBEY": True,
        "DOWNLOADER": "scrapy_norobots.RobotsDownloader",
        "SCHEDULER": "scrapy_norobots.RobotsScheduler",
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
)
@pytest.mark.parametrize("times", [1, 2])
def test_the_middleware_is_listed_in_place_of_scrapys_own(
    own: dict[Any, Any], expected: dict[str, Any], times: int
) -> None:
    changed = applied(times, DOWNLOADER_MIDDLEWARES=own)
    assert changed.get("DOWNLOADER_MIDDLEWARES", own) == expected
    assert changed["ROBOTSTXT_OBEY"]  # if the plugin's middleware is None, Scrapy's own obeys


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({"my.Middleware": 7}, {"my.Middleware": 7, META: 100}),
        ({META: 600}, {META: 600}),
        ({META: None}, {META: None}),
        ({META_IN_FULL: 600}, {META_IN_FULL: 600}),
        ({RobotsMetaMiddleware: 600}, {META_IN_FULL: 600}),
    ],
)
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("other", [{}, {OURS: None}], ids=["both", "the other one off"])
def test_the_meta_middleware_is_listed(
    own: dict[Any, Any], expected: dict[str, Any], times: int, other: dict[Any, Any]
) -> None:
    changed = applied(times, SPIDER_MIDDLEWARES=own, DOWNLOADER_MIDDLEWARES=other)
    assert changed.get("SPIDER_MIDDLEWARES", plain(Settings({"own": own}))["own"]) == expected


def test_it_comes_first_among_equal_orders_and_changes_no_dictionary_of_the_project() -> None:
    own = {"my.Middleware": 100}
    settings = Settings({"DOWNLOADER_MIDDLEWARES": own, "SPIDER_MIDDLEWARES": own})
    Addon().update_settings(settings)
    assert next(iter(settings.getdict("DOWNLOADER_MIDDLEWARES"))) == OURS
    assert own == {"my.Middleware": 100}


@pytest.mark.parametrize("own", ["my.Scheduler", MinimalScheduler], ids=["a path", "a class"])
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("priority", ["project", "spider", "cmdline"])
def test_the_scheduler_of_the_user_is_wrapped_once(own: type | str, times: int, priority: str) -> None:
    settings = Settings()
    settings.set("SCHEDULER", own, priority)
    for _ in range(times):
        Addon().update_settings(settings)
    scheduler = settings["SCHEDULER"]
    assert issubclass(scheduler, RobotsScheduler)
    assert scheduler.wrapped == own
    assert settings.getpriority("SCHEDULER") == SETTINGS_PRIORITIES[priority]


OFF = {"DOWNLOADER_MIDDLEWARES": {OURS: None}}


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("SCHEDULER", {"SCHEDULER": RobotsScheduler.around("my.Scheduler")}),
        ("SCHEDULER", {"SCHEDULER": "my.Own", **OFF}),
        ("DOWNLOADER", {"DOWNLOADER": "my.Own"}),
        ("DOWNLOADER", {"DOWNLOADER": "my.Own", **OFF}),
    ],
    ids=["our scheduler", "switched off", "downloader", "downloader, switched off"],
)
def test_what_is_ours_or_not_needed_stays(name: str, own: dict[str, Any]) -> None:
    assert name not in applied(**own)
