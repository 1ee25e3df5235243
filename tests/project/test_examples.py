"""The code in docs/testing.md and docs/migrating.md does what the pages say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from scrapy_norobots import RobotsForbidden
from tests import processes
from tests.processes import ROOT
from tests.sites import Site

SPIDER = """
import scrapy

class Town(scrapy.Spider):
    name = "town"
    custom_settings = {
        "ADDONS": {"scrapy_norobots.Addon": 500},
        "DOWNLOADER_MIDDLEWARES": {%(middleware)s},
    }
    start_urls = %(urls)r

    def parse(self, response):
        pass
"""


def block(page: str, first_word: str) -> str:
    """The code block of a page of the docs in which a name is defined."""
    blocks = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL
    )
    (found,) = (code for code in blocks if re.search(rf"^(class|def) {first_word}\b", code, re.MULTILINE))
    return str(found)


def run_spider(folder: Path, code: str, middleware: str, *urls: str) -> str:
    """Crawl with a middleware that a block of code defines; return the log."""
    file = folder / "town.py"
    file.write_text(code + SPIDER % {"middleware": middleware, "urls": list(urls)})
    done = processes.run("scrapy", "runspider", str(file), "-s", "TELNETCONSOLE_ENABLED=0", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stderr


# Testing


def test_a_fake_robots_txt_is_obeyed_in_a_crawl(tmp_path: Path) -> None:
    with Site() as site:
        log = run_spider(
            tmp_path,
            block("testing.md", "FakeRobotsTxt"),
            "FakeRobotsTxt: 200",
            f"{site.url}/",
            f"{site.url}/staff/",
        )
    assert site.targets() == ["/"]
    assert "'Disallow: /staff/'" in log


def test_the_unit_tests_with_a_mock_crawler_pass() -> None:
    names: dict[str, Any] = {}
    exec(block("testing.md", "middleware"), names)
    tests = [name for name in names if name.startswith("test_")]
    assert len(tests) == 3
    for name in tests:
        names[name]()


def test_a_failure_can_be_made_from_a_file() -> None:
    names: dict[str, Any] = {}
    exec(block("testing.md", "forbidden"), names)
    failure = names["forbidden"]("http://town.example/")
    assert failure.check(RobotsForbidden)
    assert failure.value.decision.rule.line == 2
    assert failure.request.url == "http://town.example/"
