"""The built package, as a packager meets it. `test_start` uses it as a new user does."""

from __future__ import annotations

import re
import tarfile
import zipfile
from email import message_from_string
from pathlib import Path, PurePosixPath

import scrapy_norobots
from tests.helpers.running.processes import ROOT


def test_the_wheel_has_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = ROOT / "scrapy_norobots"
    assert "scrapy_norobots/py.typed" in names
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


def test_the_sdist_has_what_a_packager_needs(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {
            PurePosixPath(name).relative_to(sdist.name.removesuffix(".tar.gz")) for name in archive.getnames()
        }
    assert {name.parts[0] for name in names} == {
        *("scrapy_norobots", "tests", "docs", "example_project", "benchmarks", "PKG-INFO"),
        *(
            ".gitignore",
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
