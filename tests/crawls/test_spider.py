"""The crawl of a command: its event loop, how many downloads run at once, and its end."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from tests.helpers.running import processes
from tests.helpers.running.commands import ROBOTS, environment, options_of, run
from tests.helpers.running.crawling import CAN_HAVE_NO_LIMIT
from tests.helpers.sites import Answer, Site

NO_LIMIT = pytest.param(0, 10, marks=CAN_HAVE_NO_LIMIT)


@pytest.mark.parametrize("name", ["robots-check", "robots-lint"])
@pytest.mark.parametrize(("limit", "most"), [(1, 1), (3, 3), (16, 10), NO_LIMIT])
def test_as_many_files_are_downloaded_at_once_as_requests(
    tmp_path: Path, name: str, limit: int, most: int, mode: str
) -> None:
    under_way, all_there, seen = 0, threading.Event(), []
    lock = threading.Lock()

    def enter() -> None:
        nonlocal under_way
        with lock:
            under_way += 1
            seen.append(under_way)
            if under_way >= most:
                all_there.set()
        assert all_there.wait(60)
        with lock:
            under_way -= 1

    with Site(Answer(ROBOTS, before=enter), host="0.0.0.0") as site:
        urls = [f"{site.url_of(f'127.0.0.{n}')}/" for n in range(2, 12)]
        done = run(tmp_path, name, "-s", f"CONCURRENT_REQUESTS={limit}", *urls, mode=mode)
    assert done.returncode in (0, 1), done.stderr
    assert (len(seen), max(seen)) == (10, most)
    assert [url for url in urls if url not in done.stdout] == []


def test_second_interruption_ends_a_command_that_waits_for_a_site(tmp_path: Path, mode: str) -> None:
    asked, release = threading.Event(), threading.Event()

    def wait() -> None:
        asked.set()
        release.wait()

    with Site(Answer(ROBOTS, before=wait)) as site:
        options = ("-L", "INFO", "-s", "NOROBOTS_TIMEOUT=300", *options_of(mode))
        arguments = ("scrapy", "robots-check", *options, f"{site.url}/")
        with processes.Piped(*arguments, cwd=tmp_path, env=environment()) as process:
            assert asked.wait(60)
            process.send_signal(signal.SIGINT)
            assert any("Closing spider" in line for line in process.stderr)
            process.send_signal(signal.SIGINT)
            out, log = process.communicate(60)
            assert process.wait() == 2
        release.set()
    assert (out, log.splitlines()[-1]) == ("", "the crawl did not run to its end")


def test_asyncio_runs_whatever_reactor_a_project_has(project: Path) -> None:
    with (project / "town" / "settings.py").open("a") as settings:
        settings.write("TWISTED_REACTOR = 'twisted.internet.selectreactor.SelectReactor'\n")
    with Site(ROBOTS) as site:
        done = run(project, "robots-check", "-L", "DEBUG", f"{site.url}/staff/")
    assert done.stdout.startswith("allowed ")  # FooBot's record
    assert "Using reactor: twisted.internet.asyncioreactor.AsyncioSelectorReactor" in done.stderr
