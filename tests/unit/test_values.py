"""Values of settings: what switches one off, in Python and on the command line; placeholders in paths."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest
from scrapy import Spider
from scrapy.settings import Settings

from scrapy_norobots.settings import DEFAULTS, read
from scrapy_norobots.values import expand

OFF = {
    **dict.fromkeys(("ALSO_OBEY", "ALSO_ROBOTS", "COPY_META", "PURPOSES", "REPORT"), ()),
    "EVIDENCE": "",
    "STORE": "memory",
}


def test_all_settings_that_are_not_numbers_flags_or_policies_can_be_switched_off() -> None:
    others = {name for name, default in DEFAULTS.items() if not isinstance(default, (bool, int))}
    assert {f"NOROBOTS_{name}" for name in OFF} == others - {"NOROBOTS_STATUS_POLICY"}


@pytest.mark.parametrize("name", OFF)
@pytest.mark.parametrize("value", [False, "False", "false", 0, "0"])
def test_false_switches_a_setting_off(name: str, value: object) -> None:
    assert read(Settings({f"NOROBOTS_{name}": value}), f"NOROBOTS_{name}") == OFF[name]


START = datetime(2024, 6, 30, 12, 0, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("template", "path"),
    [
        ("evidence", "evidence"),
        ("evidence/%(name)s", "evidence/town"),
        ("%(name)s/%(time)s", "town/2024-06-30T12-00-00+00-00"),
        ("%(part)03d of 100%%", "007 of 100%"),
        ("%%(part)", "%(part)"),
        ("%(url)s", "http:--town.example-"),
        ("~/%(name)s", str(Path.home() / "town")),
    ],
)
def test_placeholders_are_attributes_of_the_spider_and_the_time(template: str, path: str) -> None:
    spider = Spider("town", part=7, url="http://town.example/")
    assert expand("NOROBOTS_EVIDENCE", template, spider, START) == path


@pytest.mark.parametrize("template", ["%(_job)s", "100%", "%(name)d"])
def test_an_unknown_placeholder_is_an_error_that_names_the_setting(template: str) -> None:
    problem = r"^NOROBOTS_EVIDENCE = '.*': unknown placeholder \(.*use %\(time\)s, "
    with pytest.raises(ValueError, match=problem):
        expand("NOROBOTS_EVIDENCE", template, Spider("town"), START)
