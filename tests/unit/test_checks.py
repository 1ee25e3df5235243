"""Component settings: which keys stand for a class, and enable it."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import Settings

from scrapy_norobots import NoRobotsMiddleware
from scrapy_norobots.checks import enabled_keys, keys_of

OURS = "scrapy_norobots.NoRobotsMiddleware"
OURS_IN_FULL = "scrapy_norobots.middleware.NoRobotsMiddleware"
BUILTIN = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"
THEIRS = "tests.helpers.components.derived.OurOwn"  # a subclass of NoRobotsMiddleware


class Subclass(NoRobotsMiddleware):
    """As a project may have it."""


def test_the_keys_of_a_class_are_itself_and_each_path_to_it() -> None:
    others: list[Any] = [
        BUILTIN,
        RobotsTxtMiddleware,
        Subclass,
        THEIRS,
        "scrapy.no.such",
        "scrapy_norobots.x",
    ]
    ours: list[Any] = [OURS, NoRobotsMiddleware, OURS_IN_FULL]
    assert keys_of(NoRobotsMiddleware, dict.fromkeys([*others, *ours, "scrapy_norobots.x", 7])) == ours
    assert keys_of(RobotsTxtMiddleware, dict.fromkeys([*ours, BUILTIN])) == [BUILTIN]


def test_looking_for_keys_imports_no_module_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tests.helpers.components.importing", raising=False)
    assert (
        keys_of(
            NoRobotsMiddleware,
            {"tests.helpers.components.importing.Middleware": 1, "scrapy_others.Middleware": 1},
        )
        == []
    )
    assert "tests.helpers.components.importing" not in sys.modules


ENABLED: dict[str, tuple[dict[Any, Any], list[Any]]] = {
    "by a path": ({OURS: 100}, [OURS]),
    "by its class": ({NoRobotsMiddleware: 100}, [NoRobotsMiddleware]),
    "by a subclass": ({Subclass: 100}, [Subclass]),
    "by the path of a subclass": ({THEIRS: 0}, [THEIRS]),
    "twice": ({OURS: 1, THEIRS: 2}, [OURS, THEIRS]),
    "switched off": ({OURS: None}, []),
    "another": ({"scrapy.downloadermiddlewares.retry.RetryMiddleware": 100}, []),
    "no class": ({"tests.helpers.running.project.make_project": 100}, []),
}


@pytest.mark.parametrize("case", ENABLED)
def test_enabled_keys_are_those_of_the_class_and_its_subclasses_that_have_an_order(case: str) -> None:
    listed, expected = ENABLED[case]
    settings = Settings({"DOWNLOADER_MIDDLEWARES": listed})
    assert enabled_keys(settings, "DOWNLOADER_MIDDLEWARES", NoRobotsMiddleware) == expected


def test_what_scrapy_enables_by_itself_is_enabled_until_the_user_switches_it_off() -> None:
    for listed, expected in (({}, [BUILTIN]), ({BUILTIN: None}, [])):
        settings = Settings({"DOWNLOADER_MIDDLEWARES": listed})
        assert enabled_keys(settings, "DOWNLOADER_MIDDLEWARES", RobotsTxtMiddleware) == expected
