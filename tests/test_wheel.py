"""The built wheel, as a new user meets it: in a new environment, with a project of Scrapy's making."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.crawling import ROOT
from tests.sites import Site, page

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


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the sources so that two builds do not meet."""
    folder = tmp_path_factory.mktemp("wheel")
    sources = folder / "sources"
    shutil.copytree(ROOT / "scrapy_norobots", sources / "scrapy_norobots")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources)
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder, sources)
    (built,) = folder.glob("*.whl")
    return built


def test_it_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = ROOT / "scrapy_norobots"
    assert names == {
        f"scrapy_norobots/{file.relative_to(package).as_posix()}"
        for file in package.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


def test_a_new_project_with_one_line_added_obeys(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    env = tmp_path / "env" / "bin"
    run(env / "python", "-m", "pip", "install", "--quiet", wheel)
    run(env / "scrapy", "startproject", "town", cwd=tmp_path)
    project = tmp_path / "town"
    settings = project / "town" / "settings.py"
    settings.write_text(settings.read_text() + '\nADDONS = {"scrapy_norobots.Addon": 500}\n')
    (project / "town" / "spiders" / "town.py").write_text(SPIDER)
    links = page("/open", "/staff/rota", "/staffing")
    with Site("User-agent: *\nDisallow: /staff/\n", {"/": links}) as site:
        options = ["-s", "DOWNLOAD_DELAY=0", "-a", f"url={site.url}/", "-O", "seen.json"]
        log = run(env / "scrapy", "crawl", "town", *options, cwd=project)
    assert "scrapy_norobots" in log
    for folder in (tmp_path, project):
        listed = run(env / "scrapy", "-h", cwd=folder)
        assert "  robots-check " in listed
        assert "  robots-lint " in listed
    assert site.pages() == ["/", "/open", "/staffing"]
    assert len(site.robots_hits()) == 1
    assert {item["url"] for item in json.loads((project / "seen.json").read_text())} == {
        f"{site.url}{target}" for target in site.pages()
    }
