"""The README says what is so: its settings, its log lines, and its code runs."""

from __future__ import annotations

import re
from typing import Any

import pytest

from scrapy_norobots.settings import DEFAULTS
from tests.helpers.running.crawling import crawl
from tests.helpers.running.processes import ROOT
from tests.helpers.sites import Answer, Site, page

README = (ROOT / "README.md").read_text()


def test_the_readme_has_every_setting_with_its_default_in_the_same_order() -> None:
    rows = re.findall(r"^\| `(NOROBOTS_\w+)` \| `(.+?)` \|", README, re.MULTILINE)
    assert [(name, eval(default)) for name, default in rows] == list(DEFAULTS.items())


def code_blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("block", code_blocks(), ids=lambda block: block.split("\n")[0])
def test_the_code_of_the_readme_runs(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(block, names)
    if "findings" in block:
        assert capsys.readouterr().out.splitlines() == [
            (
                "http://town.example/staff/rota is forbidden for 'FooBot': line 2 of robots.txt, "
                "'Disallow: /staff/', in the record of line 1 for '*'"
            ),
            "3 error The field is unknown, so the line is ignored; did you mean Disallow?",
        ]


def addons_block() -> dict[str, Any]:
    (block,) = (block for block in code_blocks() if "ADDONS" in block)
    names: dict[str, Any] = {}
    exec(block, names)
    return {"ADDONS": names["ADDONS"]}


def test_the_readme_shows_real_log_lines() -> None:
    robots = "#\n" * 9 + "User-agent: *\n#\nDisallow: /staff/\n"
    # Requests are retried, as by default, but none may wait, so that the crawl ends at once.
    retries = {"NOROBOTS_RETRY_CLOSED": 2, "NOROBOTS_RETRY_CLOSED_MAX": 0}
    settings = {**addons_block(), "RETRY_ENABLED": False, **retries}
    with Site(robots, {"/": page("/staff/rota")}) as site, Site(Answer(status=503)) as broken:
        seen = crawl(f"{site.url}/", f"{broken.url}/", settings=settings, arguments={"follow": True})
    for shown in re.findall(r"```\n((?:DEBUG|WARNING): .*)\n```", README):
        real = site.url if shown.startswith("DEBUG") else broken.url
        assert seen.log_lines(shown.replace("http://town.example", real)), shown


@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_the_newest_w3lib_for_old_scrapy_is_the_one_of_the_test_matrix(page: str) -> None:
    (limit,) = re.findall(r"scrapy212: (w3lib<\S+)", (ROOT / "setup.cfg").read_text())
    assert f'"{limit}"' in (ROOT / page).read_text()
