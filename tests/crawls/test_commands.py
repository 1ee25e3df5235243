"""All commands: options, input, and output on a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import re
import shlex
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Origin
from scrapy_norobots.stores.opening import open_store
from tests.helpers.running import processes
from tests.helpers.running.commands import ROBOTS, command, environment, run
from tests.helpers.running.processes import ROOT
from tests.helpers.sites import Answer, Site

NAMES = ["robots-audit", "robots-check", "robots-lint", "robots-store"]


@pytest.mark.parametrize("name", ["robots-check", "robots-lint"])
def test_settings_of_a_crawl_overwrite_no_files(tmp_path: Path, name: str) -> None:
    """For example, if a user adds the options of a paused crawl to the command."""
    queue = tmp_path / "job" / "requests.queue"
    queue.mkdir(parents=True)
    (queue / "active.json").write_text('{"0": "what is left to do"}')
    options = {
        "JOBDIR": "job",
        "DUPEFILTER_CLASS": "no.such.Filter",
        "FEEDS": '{"items.json": {"format": "json"}}',
        "FEED_URI": "items.json",
        "ITEM_PIPELINES": '{"no.such.Pipeline": 1}',
        "SPIDER_MIDDLEWARES": '{"no.such.Middleware": 1}',
        "SCHEDULER": "no.such.Scheduler",
        "ROBOTSTXT_OBEY": "False",
        "NOROBOTS_DRY_RUN": "True",
        "NOROBOTS_EVIDENCE": "evidence",
        "NOROBOTS_REPORT": "report.json",
        "NOROBOTS_STORE": "sqlite:///robots.sqlite",
    }
    with Site(ROBOTS) as site:
        done = run(
            tmp_path,
            name,
            *(f"--set={key}={value}" for key, value in options.items()),
            f"{site.url}/robots.txt",
        )
    assert done.returncode in (0, 1), done.stderr
    assert site.targets() == ["/robots.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["job"]
    assert [path.name for path in (tmp_path / "job").iterdir()] == ["requests.queue"]
    assert (queue / "active.json").read_text() == '{"0": "what is left to do"}'


@pytest.mark.parametrize("name", ["robots-check", "robots-lint"])
def test_the_settings_of_a_fleet_do_no_harm(project: Path, name: str) -> None:
    with (project / "town" / "settings.py").open("a") as settings:
        settings.write(
            "ADDONS = {'scrapy_norobots.Addon': 500}\n"
            "NOROBOTS_STORE = 'redis://127.0.0.1:1/0'\n"
            "NOROBOTS_CRAWL_DELAY_MAX = 30\n"
            "NOROBOTS_CRAWL_DELAY_SHARED = True\n"
        )
    with Site(ROBOTS) as site:
        done = run(project, name, f"{site.url}/")
    assert done.returncode == 0, done.stderr
    assert site.targets() == ["/robots.txt"]


def test_a_command_is_not_controlled_from_outside(tmp_path: Path) -> None:
    with Site(ROBOTS) as site:
        done = run(tmp_path, "robots-check", "-L", "INFO", f"{site.url}/")
    assert "Enabled extensions" in done.stderr
    assert "RemoteControl" not in done.stderr
    assert "TelnetConsole" not in done.stderr


def test_scrapy_lists_them_inside_and_outside_a_project(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    for folder, where in ((outside, "no active project"), (project, "active project: town")):
        listed = run(folder, "-h").stdout
        assert where in listed
        assert re.findall(r"^  (robots-\w+) +\w", listed, re.MULTILINE) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_help_describes_the_exit_status(tmp_path: Path, name: str) -> None:
    done = run(tmp_path, name, "-h")
    assert "exit status is 2 if" in " ".join(done.stdout.split())
    assert "--json" in done.stdout


BAD_INPUT = {
    "robots-check": "nothing to do: expected URL...",
    "robots-check --nonsense http://a/": "no such option: --nonsense",
    "robots-check --file - -": "standard input cannot be both a robots.txt and a list of URLs",
    "robots-check --robot '' http://a/": "--robot '': must contain the name of a robot",
    "robots-check --file missing http://a/": "missing: No such file or directory",
    "robots-check -s NOROBOTS_TIMEOUT=soon http://a/": "NOROBOTS_TIMEOUT = 'soon': must be a number",
    "robots-check -s NOROBOTS http://a/": "Invalid -s value",
    "robots-lint ''": "an argument is empty",
    "robots-lint": "nothing to do: expected FILE|URL...",
    "robots-lint missing": "missing: No such file or directory",
    "robots-lint 'a\x1b[31m'": "a\\x1b[31m: No such file or directory",
    "robots-lint .": ".: Is a directory",
    "robots-lint /dev/zero": "/dev/zero: has more than 2097152 bytes",
    "robots-lint ftp://a/robots.txt": "ftp://a/robots.txt: only http and https URLs",
    "robots-lint http://a:b/": "http://a:b/: port 'b' in 'a:b' is not a number up to 65535",
    "robots-lint http:///": "http:///: only http and https URLs with a host",
    "robots-lint http://127.0.0.1:1/": "http://127.0.0.1:1/robots.txt: could not be downloaded (",
}


@pytest.mark.parametrize("line", BAD_INPUT)
def test_invalid_input_is_a_usage_error(tmp_path: Path, line: str) -> None:
    done = run(tmp_path, *shlex.split(line))
    assert done.returncode == 2
    assert done.stdout == ""
    assert BAD_INPUT[line] in done.stderr.splitlines()[-1]


BROKEN = {
    "an add-on that is not there": "ADDONS = {'no.such.Addon': 1}\n",
    "an add-on that fails": "ADDONS = {'town.broken.Addon': 1}\n",
    "a level of the log that is none": "LOG_LEVEL = 'NONSENSE'\n",
    "statistics that are not there": "STATS_CLASS = 'no.such.Stats'\n",
    "a middleware that is not there": "DOWNLOADER_MIDDLEWARES = {'no.such.Middleware': 1}\n",
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_crawl_that_cannot_be_set_up_exits_with_2(project: Path, fault: str) -> None:
    """Status 1 would mean that a site forbids something."""
    with (project / "town" / "settings.py").open("a") as settings:
        settings.write(BROKEN[fault])
    (project / "town" / "broken.py").write_text("class Addon:\n    def __init__(self): raise OSError\n")
    with Site(ROBOTS) as site:
        done = processes.run("scrapy", "robots-check", f"{site.url}/", cwd=project, env=environment())
    assert (done.returncode, done.stdout, site.hits) == (2, "", [])
    assert done.stderr


@pytest.mark.parametrize(
    "broken",
    ["SPIDER_MODULES = ['no.such']", "SPIDER_MODULES = ['town.bad']", "SPIDER_LOADER_CLASS = 'no.such'"],
)
def test_a_broken_spider_module_does_not_stop_the_commands(project: Path, broken: str) -> None:
    with (project / "town" / "settings.py").open("a") as settings:
        settings.write(f"{broken}\n")
    (project / "town" / "bad.py").write_text("this is no Python\n")
    with Site("User-agent: *\nDisallow: /x\n") as site:
        done = run(project, "robots-check", f"{site.url}/")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


@pytest.mark.parametrize("options", [[], ["--json"], ["--compare"], ["--file", "/dev/null"]])
def test_empty_standard_input_is_not_an_error(tmp_path: Path, options: list[str]) -> None:
    done = run(tmp_path, "robots-check", *options, "-", stdin="\n \n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").touch(mode=0)
    for args in (["robots-lint", "robots.txt"], ["robots-check", "--file", "robots.txt", "http://a/"]):
        done = run(tmp_path, *args)
        assert (done.returncode, done.stderr) == (2, "robots.txt: Permission denied\n")


def test_an_unknown_setting_is_reported(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text(ROBOTS)
    done = run(tmp_path, "robots-lint", "-s", "NOROBOTS_MAXSIZ=1", "robots.txt")
    assert done.stderr == "Unknown setting NOROBOTS_MAXSIZ is ignored; did you mean NOROBOTS_MAXSIZE?\n"


def test_a_closed_standard_input(tmp_path: Path) -> None:
    for name in ("robots-check", "robots-lint"):
        done = subprocess.run(
            ["sh", "-c", f"exec {shlex.join(command(name, '-'))} <&-"],
            cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 2
        assert done.stderr.endswith("error: standard input is closed\n")


@pytest.mark.parametrize("name", ["robots-check", "robots-lint"])
def test_a_command_ends_without_a_word_when_the_reader_closes_the_pipe(tmp_path: Path, name: str) -> None:
    # More than the buffer of a pipe.
    text = "".join(f"http://a.example/{number}\n" for number in range(20_000))
    (tmp_path / "robots.txt").write_text(text)
    args = ["--file", os.devnull, "-"] if name == "robots-check" else ["-"]
    with (
        (tmp_path / "robots.txt").open() as file,
        (tmp_path / "err").open("w") as err,
        subprocess.Popen(
            command(name, *args),
            cwd=tmp_path,
            env=environment(),
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=err,
        ) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 2
    assert (tmp_path / "err").read_text() == ""


def on_terminal(
    cwd: Path,
    *arguments: str,
    urls: str = os.devnull,
    answers: str = "",
    awaited: tuple[str, threading.Event] | None = None,
    **variables: str,
) -> str:
    """Run a command on a terminal, and return what it wrote; its answers may go to a file.

    The event of `awaited` is set when the text has appeared.
    """
    ours, terminal = pty.openpty()
    with contextlib.ExitStack() as files:
        theirs = files.enter_context(os.fdopen(terminal, "wb", 0))
        stdout = files.enter_context((cwd / answers).open("wb")) if answers else theirs
        stdin = files.enter_context((cwd / urls).open("rb"))
        process = processes.Process(
            "scrapy",
            *arguments,
            stdin=stdin,
            stdout=stdout,
            stderr=theirs,
            cwd=cwd,
            env=environment(**variables),
        )
    with process:
        seen = b""
        while True:
            try:
                data = os.read(ours, 65536)
            except OSError:  # on Linux: the other end was closed
                break
            if not data:
                break
            seen += data
            if awaited and awaited[0].encode() in seen:
                awaited[1].set()
    os.close(ours)
    return seen.decode()


def test_colours_and_progress_appear_on_terminals_only(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text("hm\n")
    slow = Answer("User-agent: *\nDisallow: /x", before=partial(time.sleep, 1.5))
    with Site(slow) as one, Site(Answer(status=503)) as two:
        check = ("robots-check", f"{one.url}/", f"{one.url}/x", f"{two.url}/")
        seen = on_terminal(tmp_path, *check)
        (tmp_path / "urls").write_text("".join(f"{one.url}/{n}\n" for n in range(5000)))
        options = ("--file", "robots.txt", "-")
        bulk = on_terminal(tmp_path, "robots-check", *options, urls="urls", answers="answers")
        plain = on_terminal(tmp_path, *check, NO_COLOR="1")
        no_ansi = on_terminal(tmp_path, *check, TERM="dumb")
    assert re.findall("\x1b\\[(\\d+)m(\\w+) *\x1b\\[0m", seen) == [
        ("32", "allowed"),
        ("31", "forbidden"),
        ("33", "unknown"),
    ]
    assert seen.startswith("\r\x1b[Kstarting")  # before the crawl has
    assert f"\x1b[K0 answers, 1 site left: {one.url}" in seen
    assert re.search(r"\x1b\[K[\d,]+ answers", bulk)
    assert bulk.endswith("\r\x1b[K")
    assert len((tmp_path / "answers").read_text().splitlines()) == 5000
    assert "\x1b[3" not in plain + no_ansi
    assert "\x1b" not in no_ansi
    lint = ("robots-lint", "robots.txt")
    assert ": \x1b[31merror\x1b[0m: " in on_terminal(tmp_path, *lint)
    assert "\x1b" not in on_terminal(tmp_path, *lint, NO_COLOR="1")


def test_a_terminal_shows_which_site_does_not_respond(tmp_path: Path) -> None:
    shown = threading.Event()
    with Site(Answer(ROBOTS, before=lambda: shown.wait(60))) as slow, Site(ROBOTS) as site:
        awaited = f"1 answer, 1 site left: {slow.url}", shown
        urls = [f"{site.url}/", f"{slow.url}/staff/"]
        seen = on_terminal(tmp_path, "robots-check", *urls, COLUMNS="100", awaited=awaited)
        narrow = on_terminal(tmp_path, "robots-check", *urls, COLUMNS="8")
    assert shown.is_set()
    assert "forbidden" in seen
    assert narrow.startswith("\r\x1b[Kstartin\r")


HOSTILE = (
    "User-agent: \x1b]0;gone\x07*\nDisallow: /\x1b[2J\x9b2J\n\nUser-agent: *\n"
    "Disallow: /a\u202e \x1b[31m /b\nDissallow: /\x1b[1m\n\x1b[0m\n"
)


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_text_from_a_site_is_always_escaped(tmp_path: Path, options: list[str]) -> None:
    with Site(HOSTILE) as site:
        check = run(
            tmp_path, "robots-check", *options, f"{site.url}/a%E2%80%AE%20%1B[31m%20/b", f"{site.url}/"
        )
        lint = run(tmp_path, "robots-lint", *options, site.url)
    assert (check.returncode, lint.returncode) == (1, 1)
    assert "line 5" in check.stdout
    assert lint.stdout
    for text in (check.stdout, lint.stdout, check.stderr, lint.stderr):
        assert all(line.isprintable() for line in text.splitlines()), text
        assert not set(text) & set("\x1b\x07\x9b\u202e")


def test_text_is_written_in_any_encoding(tmp_path: Path) -> None:
    (tmp_path / "\u00e9.txt").touch()
    env = environment(PYTHONIOENCODING="ascii")
    done = processes.run("scrapy", "robots-lint", "\u00e9.txt", cwd=tmp_path, env=env)
    assert (done.returncode, done.stdout) == (0, "\\xe9.txt: no findings; no rules\n")


# The page of the docs

PAGE = (ROOT / "docs" / "commands.md").read_text("utf-8")


def fill_store(path: Path, url: str, robots: str) -> None:
    """Save the robots.txt of a site as if it had been downloaded three hours ago."""

    async def work() -> None:
        store = open_store(f"sqlite:///{path}", 2**20)
        origin = Origin.of(url)
        assert origin is not None
        now = time.time()
        snapshot = Snapshot(origin, origin.robots_url, now - 3 * 3600, 200, body=robots.encode())
        await store.save((snapshot,), now + 3600)
        await store.close()

    asyncio.run(work())


# That of robots-audit is tested with its other tests.
SHOWN = [
    shown
    for shown in re.findall(r"^```console\n\$ (.*?)```", PAGE, re.DOTALL | re.MULTILINE)
    if "robots-audit" not in shown
]


@pytest.mark.parametrize("shown", SHOWN)
def test_the_docs_show_the_real_output(tmp_path: Path, shown: str) -> None:
    (robots,) = re.findall(r"^```robots.txt\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)
    (tmp_path / "robots.txt").write_text(robots)
    line, _, expected = shown.partition("\n")
    with Site(robots) as site:
        fill_store(tmp_path / "robots.sqlite", site.url, robots)
        done = run(tmp_path, *shlex.split(line.replace("http://town.example", site.url))[1:])
    assert done.stdout.replace(site.url, "http://town.example") == expected


def test_the_program_in_the_docs_asks_one_url_after_another(tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)
    with Site("User-agent: *\nDisallow: /staff/\n") as site:
        code = code.replace("http://town.example", site.url)
        code = code.replace('["scrapy"', f'["{sys.executable}", "-m", "scrapy"')
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True,
        )  # fmt: skip
    assert (done.stdout.split(), done.stderr) == (["allowed", "forbidden"], "")


@pytest.mark.parametrize("path", ["robots.txt", "none.txt"])
def test_a_closed_standard_error_is_no_failure(tmp_path: Path, path: str) -> None:
    (tmp_path / "robots.txt").write_text("User-agent: *\nDisallow: /back/\n")
    words = [*command("robots-check", "--file", path, "http://town.example/back/")]
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@" 2>&-', "sh", *words],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == (1 if path == "robots.txt" else 2)
    assert done.stdout.startswith("forbidden" if path == "robots.txt" else "")
    assert bool(done.stdout) == (path == "robots.txt")
