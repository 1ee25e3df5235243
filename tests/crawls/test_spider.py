"""`CommandSpider`: a crawl without pages. `Pool`: how many items it works on at once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scrapy.settings import default_settings

from tests.helpers.running import processes
from tests.helpers.running.crawling import CAN_HAVE_NO_LIMIT, MODE_SETTINGS, MODES
from tests.helpers.running.items import Job


def run(items: int, mode: str = MODES[0], settings: dict[str, Any] | None = None, **job: Any) -> Job:
    if mode == "no reactor" and not hasattr(default_settings, "TWISTED_REACTOR_ENABLED"):
        pytest.skip("this version of Scrapy cannot run without a reactor")
    settings = {**MODE_SETTINGS[mode], **(settings or {})}
    given = json.dumps({"items": items, "mode": mode, "settings": settings, **job})
    done = processes.run("tests.helpers.running.items", input=given)
    assert done.returncode == 0, done.stderr
    return Job(**json.loads(done.stdout))


NO_LIMIT = [pytest.param(limit, 10, marks=CAN_HAVE_NO_LIMIT) for limit in (0, -1)]


@pytest.mark.parametrize(("limit", "most"), [(1, 1), (3, 3), (16, 10), *NO_LIMIT])
def test_items_are_worked_on_in_turn_as_many_at_a_time_as_requests(limit: int, most: int, mode: str) -> None:
    done = run(10, mode, {"CONCURRENT_REQUESTS": limit})
    assert sorted(done.done) == list(range(10))
    assert (done.most, done.prepared, done.error) == (most, 1, None)
    if limit == 1:
        assert done.done == list(range(10))


def test_without_items_the_crawl_ends(mode: str) -> None:
    done = run(0, mode)
    assert (done.prepared, done.done, done.error) == (1, [], None)


def test_an_invalid_setting_ends_the_crawl_with_its_text(mode: str) -> None:
    done = run(3, mode, invalid_setting="NOROBOTS_TTL = -1: must be a number of seconds")
    assert done.error == ["CommandError", "NOROBOTS_TTL = -1: must be a number of seconds"]
    assert (done.prepared, done.done) == (1, [])


@pytest.mark.parametrize(("limit", "finished"), [(1, [0, 1]), (3, [0, 1, 3, 4])])
def test_after_an_exception_no_item_is_begun_and_the_exception_propagates(
    limit: int, finished: list[int], mode: str
) -> None:
    done = run(10, mode, {"CONCURRENT_REQUESTS": limit}, fails_at=2)
    assert done.error == ["LookupError", "item 2"]
    assert sorted(done.done) == finished


def test_a_crawl_that_does_not_start_is_an_error(mode: str) -> None:
    done = run(3, mode, {"DOWNLOADER_MIDDLEWARES": {"no.such.Middleware": 1}})
    assert done.error == ["CommandError", "the crawl did not start; see the log"]
    assert done.prepared == 0
