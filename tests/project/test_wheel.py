"""The built package, as a packager and a new user meet it, who begins with a project of Scrapy's making."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_string
from pathlib import Path, PurePosixPath

import pytest

import scrapy_norobots
from tests.helpers.running.processes import ROOT
from tests.helpers.sites import Site, page
from tests.project.conftest import run

pytestmark = pytest.mark.xdist_group("wheel")  # it is built and installed once

SPIDER = """
import scrapy

class Town(scrapy.Spider):
    name = "town"

    def __init__(self, url, **kwargs):
        super().__init__(start_urls=[url], **kwargs)

    def parse(self, response):
        yield {"url": response.url}
        yield from response.follow_all(css="a")
"""


# The use that a project's own code makes of the package, in all the types that it meets.
PROJECT = """
from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.http import Response
from twisted.python.failure import Failure

from scrapy_norobots import Addon, Decision, RobotsForbidden, RobotsTxt, RobotsUnreachable

ADDONS: dict[type, int] = {Addon: 500}


class Town(Spider):
    name = "town"
    reasons: list[str] = []

    async def start(self) -> AsyncIterator[Any]:
        yield Request("http://town.example/", errback=self.dropped)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[dict[str, str]]:
        yield {"url": response.url}

    def dropped(self, failure: Failure) -> None:
        error = failure.value
        if isinstance(error, RobotsUnreachable):
            self.logger.info("not now: %s", error)
        elif isinstance(error, RobotsForbidden):
            decision: Decision = error.decision
            self.reasons.append(decision.why)
            if decision.rule is not None:
                self.logger.info("line %d", decision.rule.line)


robots = RobotsTxt.parse(b"User-agent: *\\nDisallow: /staff/\\n")
may: bool = robots.allowed("http://town.example/", "FooBot")
lines: list[int] = [finding.line for finding in robots.findings]
names: list[tuple[str, ...]] = [record.names for record in robots.records]
"""

MISTAKES = """
from scrapy_norobots import RobotsTxt

RobotsTxt.parse(7)
RobotsTxt.parse(b"").allowed("http://town.example/")
line: str = RobotsTxt.parse(b"").decide("http://town.example/", "FooBot").line
"""


def test_the_wheel_has_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = ROOT / "scrapy_norobots"
    assert names == {
        f"scrapy_norobots/{file.relative_to(package).as_posix()}"
        for file in package.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


def test_the_wheel_has_its_metadata(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (info,) = {name.partition("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        said = message_from_string(archive.read(f"{info}/METADATA").decode())
        commands = archive.read(f"{info}/entry_points.txt").decode()
        assert f"{info}/licenses/LICENSE" in archive.namelist()
    assert said["Name"] == "scrapy-norobots"
    assert said["Version"] == scrapy_norobots.__version__
    assert said["License-Expression"] == "BSD-3-Clause"
    assert said["Requires-Python"] == ">=3.10"
    assert said["Summary"]
    assert said["Author"]
    assert said["Keywords"]
    links = re.compile(r"\]\((.+?)\)")
    readme = (ROOT / "README.md").read_text()
    assert links.sub("]()", str(said.get_payload())) == links.sub("]()", readme)
    assert all(link.startswith(("https://", "#")) for link in links.findall(str(said.get_payload())))
    assert said.get_all("Provides-Extra") == ["evidence", "redis", "usage"]
    assert {"Framework :: Scrapy", "Typing :: Typed"} <= set(said.get_all("Classifier", ()))
    assert "robots-audit = " in commands
    assert "robots-check = " in commands
    assert "robots-lint = " in commands
    assert "robots-store = " in commands


def test_the_sdist_has_what_a_packager_needs(built: Path) -> None:
    (file,) = built.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        names = {
            PurePosixPath(name).relative_to(file.name.removesuffix(".tar.gz")) for name in archive.getnames()
        }
    assert {name.parts[0] for name in names} == {
        *("scrapy_norobots", "tests", "docs", "example_project", "benchmarks", "PKG-INFO"),
        *(
            "README.md",
            "CHANGELOG.md",
            "CITATION.cff",
            "CODE_OF_CONDUCT.md",
            "CONTRIBUTING.md",
            "SECURITY.md",
            "LICENSE",
            "Makefile",
            "setup.cfg",
            "pyproject.toml",
        ),
        ".pre-commit-config.yaml",
    }
    for folder in ("scrapy_norobots", "tests", "docs"):
        files = [file for file in (ROOT / folder).rglob("*") if file.is_file() and file.suffix != ".pyc"]
        assert {file.relative_to(ROOT).as_posix() for file in files} <= set(map(str, names))


def test_the_types_of_users_code_are_checked_against_it(installed: Path, tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed")
    options = ("--strict", "--python-executable", installed / "python", "--cache-dir", tmp_path / "cache")
    mypy = (sys.executable, "-m", "mypy", *options)
    (tmp_path / "town.py").write_text(PROJECT)
    (tmp_path / "mistakes.py").write_text(MISTAKES)
    done = subprocess.run(
        [*mypy, "town.py", "mistakes.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    places = [line.partition(": error: ")[0] for line in done.stdout.splitlines() if ": error: " in line]
    assert places == ["mistakes.py:4", "mistakes.py:5", "mistakes.py:6"], done.stdout


def test_a_new_project_with_one_line_added_obeys(installed: Path, tmp_path: Path) -> None:
    run(installed / "scrapy", "startproject", "town", cwd=tmp_path)
    project = tmp_path / "town"
    settings = project / "town" / "settings.py"
    settings.write_text(settings.read_text() + '\nADDONS = {"scrapy_norobots.Addon": 500}\n')
    (project / "town" / "spiders" / "town.py").write_text(SPIDER)
    links = page("/open", "/staff/rota", "/staffing")
    with Site("User-agent: *\nDisallow: /staff/\n", {"/": links}) as site:
        options = ["-s", "DOWNLOAD_DELAY=0", "-a", f"url={site.url}/", "-O", "seen.json"]
        log = run(installed / "scrapy", "crawl", "town", *options, cwd=project)
    assert "scrapy_norobots" in log
    for folder in (tmp_path, project):
        listed = run(installed / "scrapy", "-h", cwd=folder)
        assert "  robots-check " in listed
        assert "  robots-lint " in listed
        assert "  robots-store " in listed
    assert site.pages() == ["/", "/open", "/staffing"]
    assert len(site.robots_hits()) == 1
    assert {item["url"] for item in json.loads((project / "seen.json").read_text())} == {
        f"{site.url}{target}" for target in site.pages()
    }
