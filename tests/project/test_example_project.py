"""The example project: its demo, its spider, and the site that judges them both."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.helpers.running import processes

ROOT = Path(__file__).parent.parent.parent
PROJECT = ROOT / "example_project"
sys.path.insert(0, str(PROJECT))

from example_site import OFF_LIMITS, Library, Page, Site, off_limits, open_site, place  # noqa: E402

FAST = ("-s", "DOWNLOAD_DELAY=0", "-s", "CONCURRENT_REQUESTS_PER_DOMAIN=16")
ROW = re.compile(r"│ +(?P<line>\d+) │ Disallow: (?P<rule>\S+) +│ +(?P<count>\d+) │ (?P<sample>\S+)")


def environment() -> dict[str, str]:
    """Return one in which the plugin is found and output is as wide as the table needs."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("SCRAPY_")}
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        ours.pop(name, None)
    path = os.pathsep.join(filter(None, [str(ROOT), ours.get("PYTHONPATH")]))
    return {**ours, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8", "COLUMNS": "100"}


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def scrapy_crawl(url: str, *options: str) -> subprocess.CompletedProcess[str]:
    arguments = ("scrapy", "crawl", "site", "-a", f"url={url}", *FAST, *options)
    return processes.run(*arguments, cwd=PROJECT, env=environment())


def items(file: Path) -> list[dict[str, object]]:
    return [dict(item) for item in json.loads(file.read_text("utf-8"))]


def strays(site: Site) -> set[str]:
    return {visit.target for visit in site.visits if off_limits(visit.target)}


# The demo


def test_the_demo_prints_the_log_of_the_site(tmp_path: Path) -> None:
    done = run(str(PROJECT / "demo.py"), "--books", "48", cwd=tmp_path)
    library = Library(48)
    pages = len(library.open_pages())
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "\nOne rule of this robots.txt has no effect, on purpose" in done.stdout
    assert f"Pages fetched: {pages} of {pages} " in done.stdout
    # Beside the pages: robots.txt and the redirect.
    assert f"own log of {pages + 2} requests: no forbidden URL, and /robots.txt exactly once" in done.stdout

    lines = (PROJECT / "example_site" / "robots.txt").read_text("utf-8").splitlines()
    dropped = {}
    for row in ROW.finditer(done.stdout):
        area = unquote(row["rule"])
        assert lines[int(row["line"]) - 1].startswith(f"Disallow: {row['rule']} ".rstrip())
        assert off_limits(row["sample"]) == area
        dropped[area] = int(row["count"])
    assert dropped == Counter(off_limits(door) for door in library.doors())
    assert set(dropped) == set(OFF_LIMITS)
    page = tmp_path / "demo-report.html"
    assert done.stdout.endswith(f"\nThe report of this crawl: {page.as_uri()}\n")
    assert f"<dd>{pages + 1}</dd>" in page.read_text("utf-8")  # a page for each, and the redirect


def test_the_demo_detects_a_crawler_that_disobeys(tmp_path: Path) -> None:
    done = run(str(PROJECT / "demo.py"), "--disobey", "--books", "12", cwd=tmp_path)
    doors = Library(12).doors()
    assert done.returncode == 1
    assert f"{len(doors)} forbidden URLs were fetched:" in done.stdout
    assert all(f"\n  {door.replace(' ', '%20')}\n" in done.stdout for door in doors)
    assert "/robots.txt was requested 0 times" in done.stdout


def test_the_demo_detects_a_crawler_that_misses_pages(tmp_path: Path) -> None:
    # Another name for the robot: the record for everyone else then counts, and shuts the catalogue.
    settings = (PROJECT / "example" / "settings.py").read_text("utf-8")
    shutil.copytree(PROJECT, tmp_path, dirs_exist_ok=True)
    (tmp_path / "example" / "settings.py").write_text(settings.replace("ExampleBot", "Somebody"), "utf-8")
    done = run(str(tmp_path / "demo.py"), "--books", "12", cwd=tmp_path)
    assert done.returncode == 1
    assert "open pages were not fetched:" in done.stdout
    assert "\n  /catalogue/\n" in done.stdout


# The spider


def test_the_spider_copes_with_an_odd_site(tmp_path: Path) -> None:
    links = (
        "http://[broken/ http://127.0.0.1:x/ http://127.0.0.1:9/ http://elsewhere.invalid/ "
        "mailto:clerk@library.invalid ftp:///plan javascript:void(0) #top "
        "/missing /plan /opening-hours.txt /empty /away"
    )
    home = "<title>  Two\n lines </title>" + "".join(f"<a href='{link}'>" for link in links.split())
    library = Library(0)
    library.pages = {path: library.pages[path] for path in ("/plan", "/opening-hours.txt")} | {
        "/": Page("", data=home.encode()),
        "/empty": Page("", data=b" "),
        "/away": Page("", moved_to="http://elsewhere.invalid/"),
    }
    file = tmp_path / "pages.json"
    with open_site(library) as site:
        done = scrapy_crawl(site.url, "-O", str(file))
    assert "Traceback" not in done.stderr
    assert not {host for host in ("elsewhere.invalid", "127.0.0.1:9") if f"{host}/robots" in done.stderr}
    got = [(place(str(item["url"])[len(site.url) :]), item["title"], item["status"]) for item in items(file)]
    assert sorted(got) == [
        ("/", "Two lines", 200),
        ("/empty", "", 200),
        ("/missing", "Error response", 404),
        ("/opening-hours.txt", "", 200),
        ("/plan", "", 200),
    ]


def test_the_spider_logs_reasons_without_a_rule() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # and does not listen
        options = ("-s", "RETRY_ENABLED=False", "-s", "NOROBOTS_RETRY_CLOSED=0")
        done = scrapy_crawl(f"http://127.0.0.1:{unused.getsockname()[1]}/", *options)
    assert re.search(r"\[site\] INFO: Dropped because of robots.txt \(.*\): 1\n", done.stderr), done.stderr


@pytest.mark.parametrize(
    "url",
    ["", "library.example", "ftp://library.example/", "http://[::1"],
)
def test_the_spider_reports_a_missing_url_in_one_line(url: str) -> None:
    done = scrapy_crawl(url)
    (line,) = [line for line in done.stderr.splitlines() if "] ERROR: " in line]
    assert line.endswith(f"Nothing to crawl: -a url must be an http or https URL, not {url!r}")
    assert "Traceback" not in done.stderr
    assert "Crawled (" not in done.stderr


# The project


def test_the_project_needs_only_the_add_on() -> None:
    settings: dict[str, object] = {}
    exec((PROJECT / "example" / "settings.py").read_text("utf-8"), settings)
    assert settings["ADDONS"] == {"scrapy_norobots.Addon": 500}
    assert settings["ROBOTSTXT_OBEY"] is True
    assert "DOWNLOADER_MIDDLEWARES" not in settings


# The judge


@pytest.mark.parametrize(
    ("target", "area"),
    [
        ("/staff/", "/staff/"),
        ("/staff", None),
        ("/catalogue/%2E%2e/st%61ff/./keys", "/staff/"),
        ("/staff/../catalogue/", None),
        ("//staff/", "/staff/"),
        ("/search?q=a", "/search"),
        ("/catalogue/?next=/staff/", None),
        ("/%7eclerk/", "/~clerk/"),
        ("/reading room/", "/reading room/"),
        ("", None),
    ],
)
def test_the_judge_resolves_spellings_of_a_page(target: str, area: str | None) -> None:
    assert off_limits(target) == area
