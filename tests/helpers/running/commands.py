"""Run the commands of the package as users do, inside or outside a project."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from scrapy.settings import default_settings

from tests.helpers.running import processes
from tests.helpers.running.crawling import MODE_SETTINGS

ROBOTS = """\
User-agent: FooBot
Disallow: /foo/

User-agent: *
Disallow: /staff/
Allow: /staff/open
Disallow: /*.gif
"""


Done = subprocess.CompletedProcess[str]


def command(name: str, *args: str) -> list[str]:
    return [sys.executable, "-m", "scrapy", name, *args]


def environment(**changes: str) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("SCRAPY_")}
    for name in ("NO_COLOR", "PYTHONUNBUFFERED"):
        ours.pop(name, None)
    return {**ours, "TERM": "xterm", "PYTHONIOENCODING": "utf-8", **changes}


def run(cwd: Path, name: str, *args: str, stdin: str | bytes = "", mode: str = "") -> Done:
    """Run a command, and check that it shows no traceback."""
    done = processes.run(
        "scrapy", name, *options_of(mode), *args, cwd=cwd, env=environment(), input=stdin, timeout=120
    )
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return done


def options_of(mode: str) -> list[str]:
    """Return the options to run Scrapy in a mode; skip the test if this version cannot."""
    if mode == "no reactor" and not hasattr(default_settings, "TWISTED_REACTOR_ENABLED"):
        pytest.skip("this version of Scrapy cannot run without a reactor")
    return [f"--set={key}={value}" for key, value in MODE_SETTINGS.get(mode, {}).items()]


class Conversation:
    """A running ``robots-check -``, which answers questions of a test; `errors` is set when it has ended."""

    def __init__(self, process: processes.Piped) -> None:
        self.process = process
        self.questions = process.stdin
        self.answers = process.stdout
        self.errors = ""

    def write(self, text: str) -> None:
        """Write a text to standard input."""
        self.questions.write(text)
        self.questions.flush()

    def ask(self, url: str) -> str:
        """Write a URL, and return the next answer."""
        self.write(f"{url}\n")
        return self.answers.readline()

    def end(self) -> int:
        """Close standard input, wait until the command has ended, and return its exit status."""
        self.questions.close()
        return self.wait()

    def wait(self) -> int:
        """Wait until the command has ended, and return its exit status."""
        return self.process.wait(120)


@contextmanager
def conversation(cwd: Path, *args: str, mode: str = "") -> Iterator[Conversation]:
    """Run ``robots-check ARGS -`` with pipes for standard input and output; kill it at the end."""
    arguments = ("scrapy", "robots-check", *options_of(mode), *args, "-")
    with processes.Piped(*arguments, cwd=cwd, env=environment()) as process:
        talk = Conversation(process)
        try:
            yield talk
        finally:
            process.kill()
            talk.errors = process.stderr.read()
        assert "Traceback" not in talk.errors, talk.errors


def errors(done: Done) -> list[str]:
    """Return the lines on standard error without those about retries, which older Scrapy always logs."""
    quiet = hasattr(default_settings, "RETRY_GIVE_UP_LOG_LEVEL")
    return [line for line in done.stderr.splitlines() if quiet or "Gave up retrying" not in line]


def words(done: Done) -> list[str]:
    return [line.split()[0] for line in done.stdout.splitlines()]


def run_in_shell(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
