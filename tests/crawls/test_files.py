"""Report files: their paths, and errors when they are written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crawls.test_components import scrapy
from tests.crawls.test_refresh import RULES
from tests.helpers.running.crawling import ADDON, crawl, run_crawl, started, with_report
from tests.helpers.running.project import make_project
from tests.helpers.sites import Answer, Site

NO_PLACEHOLDER = "unknown placeholder ("


def test_placeholders_are_filled_in(tmp_path: Path) -> None:
    template = f"{tmp_path}/%(name)s/100%%-%(time)s.json, {tmp_path}/other.htm"
    crawl("data:,", settings={**ADDON, "NOROBOTS_REPORT": template})
    (file,) = (tmp_path / "pages").iterdir()
    assert re.fullmatch(r"100%-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\+00-00\.json", file.name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.htm", "pages"]


def test_placeholders_are_attributes_and_arguments_of_the_spider(tmp_path: Path) -> None:
    template = f"{tmp_path}/%(name)s-%(_job)s-%(part)03d.json"
    crawl(
        "data:,",
        settings={**ADDON, "NOROBOTS_REPORT": template},
        arguments={"_job": "../../2024/06", "part": 7},
    )
    assert [file.name for file in tmp_path.iterdir()] == ["pages-..-..-2024-06-007.json"]


def test_crawls_at_the_same_time_do_not_overwrite_each_others_report(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    settings = {**ADDON, "NOROBOTS_REPORT": str(path)}
    together = threading.Barrier(2)
    with (
        Site(RULES, {"/together": Answer(before=lambda: together.wait(60))}) as site,
        started(f"{site.url}/together", settings=settings) as one,
    ):
        seen = crawl(f"{site.url}/together", f"{site.url}/1", f"{site.url}/2", settings=settings)
        assert one.wait(60) == 0
    reports = {file.name: json.loads(file.read_text()) for file in tmp_path.iterdir()}
    assert reports.keys() == {"report.json", "report-2.json"}
    assert sorted(report["requests"]["passed"] for report in reports.values()) == [1, 3]
    (own,) = (name for name, report in reports.items() if report["requests"]["passed"] == 3)
    assert seen.log_lines(f"INFO: The robots.txt report was written to {tmp_path / own}")


def test_crawls_of_one_process_do_not_overwrite_each_others_report(tmp_path: Path) -> None:
    crawl("data:,", settings=with_report(*(tmp_path / name for name in ("a.html", "a.json"))), beside={})
    names = sorted(file.name for file in tmp_path.iterdir())
    assert names == ["a-2.html", "a-2.json", "a.html", "a.json"]


def test_a_report_of_a_moment_before_the_crawl_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    with Site(RULES) as site:
        for number in range(1, 4):  # at least two of these crawls start within one second
            crawl(*[f"{site.url}/{page}" for page in range(number)], settings=with_report(path))
            assert json.loads(path.read_text())["requests"]["passed"] == number
    assert [file.name for file in tmp_path.iterdir()] == ["report.json"]


def test_the_shell_starts_with_any_placeholders(tmp_path: Path) -> None:
    with Site(RULES) as site:
        options = ["-s", "NOROBOTS_REPORT=%(_job)s.html", "-c", "response.status"]
        project = make_project(tmp_path, site.url)
        done = scrapy("shell", f"{site.url}/", *options, folder=project)
    assert done.stdout.strip() == "200", done.stderr


def test_a_tilde_means_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = {"NOROBOTS_REPORT": "~/robots.json", "NOROBOTS_STORE": "sqlite:///~/robots.sqlite"}
    with Site() as site:
        crawl(f"{site.url}/", settings={**ADDON, **settings})
    assert {"robots.json", "robots.sqlite"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("file/report.html", "cannot be written: "),
        ("folder.html", "folder.html is not a regular file"),
        ("full.html", "/dev/full is not a regular file"),
        (f"{300 * 'x'}.json", "cannot be written: "),
        (f"{240 * 'x'}.json", "cannot be written: "),  # because of the name of the temporary file
        ("%(host)s.html", NO_PLACEHOLDER),
        ("100%.html", NO_PLACEHOLDER),
        ("ftp://town/report.html", "expected the path of a file"),
        ("report.pdf", "ends in .html, .htm, .json"),
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
    # Without a reactor, asyncio adds that Scrapy has not closed its client.
    error = [line for line in done.stderr.splitlines() if "NOROBOTS_REPORT = " in line][-1]
    assert f"{value!r}: " in error
    assert problem in error
    assert {file.name for file in tmp_path.iterdir()} == {"file", "folder.html", "full.html"}


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system with 8 KiB of space."""
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


def test_a_full_disk_affects_neither_the_crawl_nor_an_earlier_report(tiny_disk: Path) -> None:
    page, data = tiny_disk / "report.html", tiny_disk / "report.json"
    page.write_text("of yesterday")
    os.utime(page, (1e9, 1e9))
    with Site(RULES) as site:
        seen = crawl(f"{site.url}/", settings=with_report(page, data))
    assert seen.stats["finish_reason"] == "finished"
    (line,) = seen.log_lines("ERROR: ")
    assert f"NOROBOTS_REPORT: could not write {page}: [Errno 28] No space left on device" in line
    assert page.read_text() == "of yesterday"
    assert json.loads(data.read_text())["origins"] == 1  # there was room for that
    assert sorted(tiny_disk.iterdir()) == [page, data]


def test_a_symbolic_link_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link, target = tmp_path / "report.json", tmp_path / "real" / "report.data"
    link.symlink_to(target)
    crawl("data:,", settings=with_report(link))
    assert link.is_symlink()
    assert json.loads(target.read_text())["origins"] == 0
