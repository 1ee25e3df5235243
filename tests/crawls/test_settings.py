"""A crawl with an invalid setting does not start, and the last line names the setting."""

from __future__ import annotations

from pathlib import Path

import pytest
import scrapy.crawler
from scrapy.settings import default_settings

from tests.helpers.running import processes
from tests.helpers.running.commands import environment
from tests.helpers.running.crawling import ADDON, run_crawl
from tests.helpers.running.project import make_project
from tests.helpers.sites import Site

ACCEPTED = "must be a number of seconds, at least 0.001 and at most 86400"
# Before, a crawl of a command runs with Deferreds, whose failures Twisted itself prints.
RUNS_TASKS = hasattr(scrapy.crawler, "AsyncCrawlerProcess")


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("NOROBOTS_TIMEOUT", "soon", ACCEPTED),
        ("NOROBOTS_EVIDENCE", True, "must be the path of a folder"),
        (
            "ROBOTSTXT_PARSER",
            "tests.helpers.components.parsers.NotAParser",
            "'tests.helpers.components.parsers.NotAParser' must be a RobotParser class: ",
        ),
    ],
)
def test_a_crawl_with_an_invalid_setting_does_not_start(
    mode: str, name: str, value: object, problem: str
) -> None:
    with Site() as site:
        done = run_crawl(f"{site.url}/", settings={**ADDON, name: value})
    # After an error in a component, a process ends with 0 until Scrapy 2.14.
    if name != "ROBOTSTXT_PARSER" or hasattr(default_settings, "TWISTED_REACTOR_ENABLED"):
        assert done.returncode == 1
    assert site.targets() == []
    assert f": {name} = {value!r}: {problem}" in done.stderr
    if RUNS_TASKS:  # else the add-on raises the error in `create_crawler`, for the script to handle
        assert "Traceback" not in done.stderr
        assert "never retrieved" not in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["crawl", "checked"],
        ["crawl", "checked", "-s", "TWISTED_REACTOR_ENABLED=False"],
        ["runspider", "spiders.py"],
        ["shell", "-c", "1"],
    ],
    ids=["crawl", "without a reactor", "runspider", "shell"],
)
def test_a_command_ends_with_one_line_about_an_invalid_setting(command: list[str], tmp_path: Path) -> None:
    with Site() as site:
        project = make_project(tmp_path, site.url)
        done = processes.run(
            "scrapy", *command, "-s", "NOROBOTS_TIMEOUT=soon", cwd=project, env=environment(), input=""
        )
    assert site.targets() == []
    assert done.stderr.splitlines()[-1].endswith(f": NOROBOTS_TIMEOUT = 'soon': {ACCEPTED}")
    assert "Traceback" not in done.stderr
    assert "never retrieved" not in done.stderr
    if hasattr(default_settings, "TWISTED_REACTOR_ENABLED"):  # Scrapy 2.13 and 2.14 may end with 0
        assert done.returncode == (2 if command[0] == "shell" else 1)


RUNNER = """
from scrapy import Spider
from scrapy.crawler import CrawlerRunner
from scrapy.utils.log import configure_logging
from scrapy.utils.reactor import install_reactor

install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
from twisted.internet import reactor

configure_logging()
runner = CrawlerRunner({"ADDONS": {"scrapy_norobots.Addon": 500}, "NOROBOTS_TIMEOUT": "soon"})
running = runner.crawl(type("Some", (Spider,), {"name": "some"}))
running.addBoth(lambda result: (reactor.callWhenRunning(reactor.stop), result)[1])
del running
reactor.run()
"""


def test_a_script_ends_with_one_line_about_an_invalid_setting(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(RUNNER)
    done = processes.run("script", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1].endswith(f": NOROBOTS_TIMEOUT = 'soon': {ACCEPTED}")
    assert "Traceback" not in done.stderr
