"""The start page runs from its first to its last step, as printed, against the example site."""

from __future__ import annotations

import re
import shlex
import shutil
import socket
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.helpers.running.processes import ROOT

PAGE = (ROOT / "docs" / "start.md").read_text().partition("## In an existing project")[0]
# The steps that the fixture does instead.
INSTALLED = [
    "python3 -m venv env",
    "env/bin/pip install ./scrapy-norobots",
]


def blocks(page: str, language: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [block for its_language, block in fenced if its_language == language]


def file_in(sentence: str) -> str:
    """The path in the sentence of the page that begins so."""
    (path,) = re.findall(rf"^{sentence} `(.+?)`", PAGE, re.MULTILINE)
    return str(path)


@pytest.fixture
def _installed(wheel: Path, tmp_path: Path) -> None:
    """A new environment with the wheel, and nothing but what it needs."""
    folder = tmp_path / "env"
    venv.create(folder)
    pip = (sys.executable, "-m", "pip", "--python", folder / "bin" / "python")
    done = subprocess.run(
        [*pip, "install", "--quiet", "--no-compile", wheel], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.usefixtures("_installed")
def test_the_page_runs_from_the_first_to_the_last_step(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    page = PAGE.replace("127.0.0.1:8000", f"127.0.0.1:{port}")
    shutil.copytree(ROOT / "example_project", tmp_path / "scrapy-norobots" / "example_project")
    install, serve, crawl = blocks(page, "shell")
    settings, spider = blocks(page, "python")
    assert install.splitlines()[:2] == INSTALLED

    def sh(script: str, cwd: Path = tmp_path, status: int = 0) -> str:
        done = subprocess.run(
            ["sh", "-e", "-c", script], cwd=cwd, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == status, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    town = Path(sh("\n".join(install.splitlines()[2:]) + "\npwd").splitlines()[-1])
    with (town / file_in("Put these lines at the end of")).open("a") as file:
        file.write(settings)
    (town / file_in("Save this spider as")).write_text(spider)
    serve = f"{serve.strip()} {port}".replace("python3", f"exec {shlex.quote(sys.executable)} -u")
    clone = tmp_path / "scrapy-norobots"
    with subprocess.Popen(["sh", "-e", "-c", serve], cwd=clone, stdout=subprocess.PIPE, text=True) as site:
        try:
            assert site.stdout is not None
            assert f"http://127.0.0.1:{port}/" in site.stdout.readline()
            (console,) = blocks(page, "console")
            command, *answers = console.splitlines()
            # Its status is 1, because a URL is forbidden.
            assert sh(command.removeprefix("$ "), town, status=1).splitlines() == answers
            log = sh(crawl, town)
        finally:
            site.kill()
    dropped, summary = blocks(page, "")
    assert dropped in log
    log = re.sub(r"in \d+\.\d\d s", "in 0.01 s", log)
    assert summary in log
    assert "] WARNING: " not in log
    assert re.search(r"INFO: \S+/robots.txt has lines without effect: 2 lines", log)
    assert (town / "robots.html").stat().st_size > 0
