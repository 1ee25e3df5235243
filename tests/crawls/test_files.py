"""The files of a report: where they are written, and what cannot be written."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crawling import ADDON, crawl, run_crawl, with_report
from tests.crawls.test_refresh import RULES
from tests.sites import Site


def test_placeholders_are_filled_in(tmp_path: Path) -> None:
    template = f"{tmp_path}/%(name)s/100%%-%(time)s.json, {tmp_path}/other.htm"
    crawl("data:,", settings={**ADDON, "NOROBOTS_REPORT": template})
    (file,) = (tmp_path / "pages").iterdir()
    assert re.fullmatch(r"100%-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\+00-00\.json", file.name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.htm", "pages"]


def test_a_users_home_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = {"NOROBOTS_REPORT": "~/robots.json", "NOROBOTS_STORE": "sqlite:///~/robots.sqlite"}
    with Site() as site:
        crawl(f"{site.url}/", settings={**ADDON, **settings})
    assert {"robots.json", "robots.sqlite"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("file/report.html", "cannot be written: "),
        ("folder.html", "folder.html is a folder"),
        ("full.html", "/dev/full is no file"),
        (f"{300 * 'x'}.json", "cannot be written: "),
        ("%(host)s.html", "has a placeholder other than %(name)s and %(time)s, or a '%' that is not doubled"),
        ("100%.html", "has a placeholder other than %(name)s and %(time)s, or a '%' that is not doubled"),
        ("report.pdf", "must end in one of .html, .htm, .json"),
    ],
)
def test_a_path_that_cannot_be_written_stops_the_start(path: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "full.html").symlink_to("/dev/full")
    value = f"{tmp_path}/{path}"
    with Site() as site:
        done = run_crawl(f"{site.url}/", settings={**ADDON, "NOROBOTS_REPORT": value})
    assert site.targets() == []
    (error,) = {
        line for line in done.stderr.splitlines() if line.startswith("ValueError: NOROBOTS_REPORT = ")
    }
    assert f"{value!r}: " in error
    assert problem in error
    assert {file.name for file in tmp_path.iterdir()} == {"file", "folder.html", "full.html"}


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A real disk with room for 8 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("only root may mount a small disk here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_costs_the_crawl_nothing_and_an_earlier_report_nothing(tiny_disk: Path) -> None:
    page, data = tiny_disk / "report.html", tiny_disk / "report.json"
    page.write_text("of yesterday")
    with Site(RULES) as site:
        seen = crawl(f"{site.url}/", settings=with_report(page, data))
    assert seen.stats["finish_reason"] == "finished"
    (line,) = seen.log_lines("ERROR: ")
    assert f"NOROBOTS_REPORT: {page} could not be written: [Errno 28] No space left on device" in line
    assert page.read_text() == "of yesterday"
    assert json.loads(data.read_text())["origins"] == 1  # there was room for that
    assert sorted(tiny_disk.iterdir()) == [page, data]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link, target = tmp_path / "report.json", tmp_path / "real" / "report.data"
    link.symlink_to(target)
    crawl("data:,", settings=with_report(link))
    assert link.is_symlink()
    assert json.loads(target.read_text())["origins"] == 0
