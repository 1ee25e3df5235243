"""All commands: options, input, and output on a terminal."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import shlex
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from scrapy_norobots import values
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.settings import SETTINGS
from scrapy_norobots.standard import Origin
from tests.helpers.running import processes
from tests.helpers.running.commands import ROBOTS, command, environment, run, run_in_shell
from tests.helpers.running.crawling import wait_for
from tests.helpers.running.processes import ROOT
from tests.helpers.running.project import make_project
from tests.helpers.samples.filled_stores import HOUR, TOWN, fill
from tests.helpers.sites import Answer, Site

NAMES = ["robots-audit", "robots-check", "robots-lint", "robots-store"]

# Settings of a crawl, which do no harm: for example, if a user adds the options of a paused crawl.
HARMFUL = {
    "ADDONS": '{"scrapy_norobots.Addon": 500}',
    "CLOSESPIDER_PAGECOUNT": "1",
    "CONCURRENT_REQUESTS": "1",
    "DUPEFILTER_CLASS": "no.such.Filter",
    "FEEDS": '{"items.json": {"format": "json"}}',
    "FEED_URI": "items.json",
    "ITEM_PIPELINES": '{"no.such.Pipeline": 1}',
    "JOBDIR": "job",
    "NOROBOTS_CRAWL_DELAY_MAX": "30",
    "NOROBOTS_CRAWL_DELAY_SHARED": "True",
    "NOROBOTS_DRY_RUN": "True",
    "NOROBOTS_EVIDENCE": "evidence",
    "NOROBOTS_REPORT": "report.json",
    "NOROBOTS_STORE": "redis://127.0.0.1:1/0",
    "ROBOTSTXT_OBEY": "False",
    "SCHEDULER": "no.such.Scheduler",
    "SPIDER_LOADER_CLASS": "no.such",
    "SPIDER_MIDDLEWARES": '{"no.such.Middleware": 1}',
    "SPIDER_MODULES": "no.such",
    "TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor",
}


@pytest.mark.parametrize("name", ["robots-check", "robots-lint"])
def test_settings_of_a_crawl_do_no_harm(project: Path, name: str) -> None:
    with (project / "town" / "settings.py").open("a") as settings:
        settings.write("LOG_FILE = 'crawl.log'\nLOG_FILE_APPEND = False\n")
    (project / "job" / "requests.queue").mkdir(parents=True)
    for path in ("job/requests.queue/active.json", "crawl.log", "items.json"):
        (project / path).write_text("of yesterday")
    before = files_of(project)
    options = ["-L", "DEBUG", *(f"--set={key}={value}" for key, value in HARMFUL.items())]
    with Site(ROBOTS, host="0.0.0.0") as site:
        done = run(project, name, *options, *(f"{site.url_of(f'127.0.0.{n}')}/" for n in range(2, 6)))
    assert done.returncode == 0, done.stderr
    assert site.targets() == 4 * ["/robots.txt"]
    assert files_of(project) == before
    paths = {name for name, setting in SETTINGS.items() if setting.read in (values.folder, values.paths)}
    assert paths <= HARMFUL.keys(), "a command must not write the file of a crawl"
    assert "Using reactor: twisted.internet.asyncioreactor.AsyncioSelectorReactor" in done.stderr
    assert "Enabled extensions" in done.stderr
    assert "RemoteControl" not in done.stderr
    assert "TelnetConsole" not in done.stderr


def files_of(folder: Path) -> dict[Path, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path: path.read_bytes() for path in files}


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


# What is wrong with the standard files, and what the command then writes.
STREAMS = {
    "robots-lint robots.txt >&-": "standard output is closed",
    "robots-check - <&-": "standard input is closed",
    "robots-check --file robots.txt http://town.example/staff/ - 0> here": "<stdin>: Bad file descriptor",
    "robots-check --file robots.txt http://town.example/staff/ 2>&-": "",
    "robots-check --file none.txt http://town.example/ 2>&-": "",
}


@pytest.mark.parametrize("line", STREAMS)
def test_broken_standard_files(tmp_path: Path, line: str) -> None:
    (tmp_path / "robots.txt").write_text(ROBOTS)
    functions = [f'{name}() {{ {shlex.join(command(name))} "$@"; }}' for name in NAMES]
    done = run_in_shell(tmp_path, "\n".join([*functions, line]))
    assert done.returncode == (1 if line.endswith("staff/ 2>&-") else 2)
    assert len(done.stdout.splitlines()) == ("staff" in line)
    assert done.stderr.rstrip().endswith(STREAMS[line])
    assert bool(done.stderr) == bool(STREAMS[line])
    assert "Traceback" not in done.stderr


def test_a_full_disk_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text(ROBOTS)
    with (
        Path("/dev/full").open("r+b", 0) as full,
        (tmp_path / "errors").open("wb") as errors,
        processes.Process(
            "scrapy", "robots-lint", "robots.txt",
            stdin=full, stdout=full, stderr=errors, cwd=tmp_path, env=environment(),
        ) as process,
    ):  # fmt: skip
        assert process.wait(120) == 2
    said = (tmp_path / "errors").read_text()
    assert said.endswith("standard output: No space left on device\n")
    assert "Traceback" not in said


# What writes to a command that writes more than a pipe holds, and the start of the first line.
LONG = {
    "robots-check --file robots.txt -": ("yes http://town.example/staff/", "forbidden"),
    "robots-lint -": ("cat long.txt", "<stdin>:1:"),
    "robots-store sqlite:///robots.sqlite list": ("true", "http://0.example"),
}


@pytest.mark.parametrize("line", LONG)
def test_nothing_is_said_of_a_reader_that_closes_the_pipe(tmp_path: Path, line: str) -> None:
    (tmp_path / "robots.txt").write_text(ROBOTS)
    (tmp_path / "long.txt").write_text("a\n" * 20_000)
    found = Snapshot(TOWN, TOWN.robots_url, time.time(), 200)
    hosts = [f"{n}.example" for n in range(2000 if "sqlite" in line else 0)]
    fill(
        f"sqlite:///{tmp_path}/robots.sqlite",
        [(replace(found, origin=Origin("http", host, 80)),) for host in hosts],
    )
    source, first = LONG[line]
    read, write = os.pipe()
    with subprocess.Popen(source.split(), cwd=tmp_path, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        with os.fdopen(write, "wb") as stdout, (tmp_path / "errors").open("wb") as stderr:
            process = processes.Process(
                "scrapy", *line.split(),
                stdin=writer.stdout, stdout=stdout, stderr=stderr, cwd=tmp_path, env=environment(),
            )  # fmt: skip
        with process, os.fdopen(read) as answers:
            assert answers.readline().startswith(first)
            answers.close()
            assert process.wait(120) == 2
    assert (tmp_path / "errors").read_text() == ""


def on_terminal(cwd: Path, *arguments: str, urls: str = os.devnull, answers: str = "", **env: str) -> str:
    """Run a command on a terminal, and return what it wrote; its answers may go to a file."""
    ours, terminal = pty.openpty()
    with contextlib.ExitStack() as files:
        theirs = files.enter_context(os.fdopen(terminal, "wb", 0))
        stdout = files.enter_context((cwd / answers).open("wb")) if answers else theirs
        stdin = files.enter_context((cwd / urls).open("rb"))
        process = processes.Process(
            "scrapy", *arguments, stdin=stdin, stdout=stdout, stderr=theirs, cwd=cwd, env=environment(**env)
        )
    seen = b""
    with process, contextlib.suppress(OSError):  # on Linux: the other end was closed
        while data := os.read(ours, 65536):
            seen += data
    os.close(ours)
    return seen.decode()


def test_colours_and_progress_appear_on_terminals_only(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text("hm\n")
    delays = iter([1.5])  # longer than the progress is not shown again

    def wait() -> None:
        wait_for(lambda: len(two.hits) > 1)  # it is retried once
        time.sleep(next(delays, 0))

    slow = Answer("User-agent: *\nDisallow: /x", before=wait)
    with Site(slow) as one, Site(Answer(status=503)) as two:
        check = ("robots-check", f"{one.url}/", f"{one.url}/x", f"{two.url}/")
        seen = on_terminal(tmp_path, *check)
        (tmp_path / "urls").write_text("".join(f"{one.url}/{n}\n" for n in range(5000)))
        options = ("--file", "robots.txt", "-")
        bulk = on_terminal(tmp_path, "robots-check", *options, urls="urls", answers="answers")
        plain = on_terminal(tmp_path, *check, NO_COLOR="1")
        no_ansi = on_terminal(tmp_path, *check, TERM="dumb")
        narrow = on_terminal(tmp_path, *check, COLUMNS="8")
    assert re.findall("\x1b\\[(\\d+)m(\\w+) *\x1b\\[0m", seen) == [
        ("32", "allowed"),
        ("31", "forbidden"),
        ("33", "unknown"),
    ]
    assert seen.startswith("\r\x1b[Kstarting")  # before the crawl has
    assert re.match("\r\x1b\\[Kstartin(?!g)", narrow)
    assert f"\x1b[K0 answers, 1 site left: {one.url}" in seen
    assert re.search(r"\x1b\[K[\d,]+ answers", bulk)
    assert bulk.endswith("\r\x1b[K")
    assert len((tmp_path / "answers").read_text().splitlines()) == 5000
    assert "\x1b[3" not in plain + no_ansi
    assert "\x1b" not in no_ansi
    lint = ("robots-lint", "robots.txt")
    assert ": \x1b[31merror\x1b[0m: " in on_terminal(tmp_path, *lint)
    assert "\x1b" not in on_terminal(tmp_path, *lint, NO_COLOR="1")


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


def test_scrapy_settings_prints_the_defaults(tmp_path: Path) -> None:
    project = make_project(tmp_path, "http://town.example")

    def shown(*options: str) -> str:
        return run(project, "settings", *options).stdout.strip()

    assert shown("--get", "NOROBOTS_TTL") == "86400"
    assert shown("--getint", "NOROBOTS_TTL", "-s", "NOROBOTS_TTL=5") == "5"
    assert shown("--getlist", "NOROBOTS_COPY_META") == "['proxy', 'bindaddress', 'download_slot']"
    assert shown("--get", "BOT_NAME") == "scrapybot"


# The page of the docs

PAGE = (ROOT / "docs" / "commands.md").read_text("utf-8")


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
        origin = Origin.of(site.url)
        assert origin is not None
        known = Snapshot(origin, origin.robots_url, time.time() - 3 * HOUR, 200, body=robots.encode())
        fill(f"sqlite:///{tmp_path}/robots.sqlite", [(known,)])
        done = run(tmp_path, *shlex.split(line.replace("http://town.example", site.url))[1:])
    printed = done.stdout.replace(site.url, "http://town.example")
    # Each site has its own lifetime, up to 5 % shorter.
    assert re.sub(r"fresh for (19|20) h", "fresh for 21 h", printed) == expected


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
