"""The plugin uses nothing that is deprecated in the newest Scrapy, and the tests would detect it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from scrapy.core.engine import ExecutionEngine

from tests.helpers.running.crawling import run_crawl
from tests.helpers.running.processes import ROOT
from tests.helpers.sites import Site

RULES = "User-agent: *\nDisallow: /back/\n"

pytestmark = pytest.mark.skipif(
    not hasattr(ExecutionEngine, "download_async"), reason="older versions of Scrapy warn of themselves"
)


def test_a_deprecation_warning_fails_the_test(mode: str) -> None:
    """This keeps other tests from passing if the plugin uses something deprecated."""
    with Site() as site:
        done = run_crawl(f"{site.url}/", spider="configured.Outdated")
    assert "ScrapyDeprecationWarning: the old way" in done.stderr
    assert "Traceback" in done.stderr  # `crawl` fails on this


def test_a_command_logs_no_deprecation() -> None:
    with Site(RULES) as site:
        done = subprocess.run(
            [
                sys.executable,
                "-W",
                "default",
                "-m",
                "scrapy",
                "robots-check",
                f"{site.url}/",
                f"{site.url}/back/",
            ],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        )
    assert done.returncode == 1, done.stderr
    assert "scrapy_norobots" not in done.stderr
    assert "ScrapyDeprecationWarning" not in done.stderr
