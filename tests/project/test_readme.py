"""The README says what is so: its versions, its log line, and its code runs."""

from __future__ import annotations

import re
from typing import Any

from scrapy_norobots import __version__
from tests.helpers.running.crawling import crawl
from tests.helpers.running.processes import ROOT
from tests.helpers.sites import Site, page

README = (ROOT / "README.md").read_text()
ROBOTS = "#\n" * 9 + "User-agent: *\n#\nDisallow: /staff/\n"


def block(first: str) -> str:
    """The block of Python that begins so."""
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (found,) = (code for code in blocks if code.startswith(first))
    return str(found)


def enabled() -> dict[str, Any]:
    """The settings that enable the plugin."""
    names: dict[str, Any] = {}
    exec(block("ADDONS"), names)
    return {name: value for name, value in names.items() if name.isupper()}


def test_the_log_line_is_real() -> None:
    (shown,) = re.findall(r"```\n(DEBUG: .*)\n```", README)
    with Site(ROBOTS, {"/": page("/staff/rota")}) as site:
        seen = crawl(f"{site.url}/", settings=enabled(), arguments={"follow": True})
    assert seen.log_lines(shown.replace("http://town.example", site.url))


def test_the_lines_that_enable_it_obey_both_readings() -> None:
    robots = "User-agent: *\nDisallow: /staff/\nDisallow: /*.pdf\n"
    with Site(robots) as site:
        urls = [f"{site.url}{path}" for path in ("/", "/staff/", "/map.pdf")]
        assert crawl(*urls, settings=enabled()).pages == urls[:1]
        assert sorted(crawl(*urls).pages) == sorted([urls[0], urls[2]])  # without the second line


def test_the_versions_are_those_of_the_matrix() -> None:
    matrix = (ROOT / "setup.cfg").read_text()
    project = (ROOT / "pyproject.toml").read_text()
    minors = sorted({int(minor) for minor in re.findall(r"Python :: 3\.(\d+)", project)})
    pythons = f"Python 3.{minors[0]} to 3.{minors[-1]}"
    scrapys = re.findall(r"scrapy==2\.(\d+)\.\*", matrix)
    # The matrix pins every Scrapy but the newest, which pip finds.
    newest = f"Scrapy 2.{min(map(int, scrapys))} to 2.{max(map(int, scrapys)) + 1}"
    assert README.count(f"{newest} and {pythons}") == 1


def test_the_version_is_the_same_everywhere() -> None:
    citation, project, changes = (
        (ROOT / name).read_text() for name in ("CITATION.cff", "pyproject.toml", "CHANGELOG.md")
    )
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [__version__]
    assert re.findall(r'^current_version = "(.+)"$', project, re.MULTILINE) == [__version__]
    assert re.findall(r"^## (\S+)", changes, re.MULTILINE)[0] == __version__


def test_it_is_short() -> None:
    prose = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
    assert len(prose.split()) <= 500
