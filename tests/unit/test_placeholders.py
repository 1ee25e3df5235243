"""Placeholders in the paths of settings."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest
from scrapy import Spider

from scrapy_norobots.placeholders import expand

START = datetime(2024, 6, 30, 12, 0, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("template", "path"),
    [
        ("evidence", "evidence"),
        ("evidence/%(name)s", "evidence/town"),
        ("%(name)s/%(time)s", "town/2024-06-30T12-00-00+00-00"),
        ("%(part)03d of 100%%", "007 of 100%"),
        ("%(url)s", "http:--town.example-"),
        ("~/%(name)s", str(Path.home() / "town")),
    ],
)
def test_placeholders_are_attributes_of_the_spider_and_the_time(template: str, path: str) -> None:
    spider = Spider("town", part=7, url="http://town.example/")
    assert expand("NOROBOTS_EVIDENCE", template, spider, START) == path


@pytest.mark.parametrize("template", ["%(_job)s", "100%", "%(name)d", "town-%s"])
def test_an_unknown_placeholder_is_an_error_that_names_the_setting(template: str) -> None:
    problem = r"^NOROBOTS_EVIDENCE = '.*': unknown placeholder \(.*use %\(time\)s, "
    with pytest.raises(ValueError, match=problem):
        expand("NOROBOTS_EVIDENCE", template, Spider("town"), START)
