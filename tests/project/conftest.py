"""The package, built and installed once for the tests in the xdist group "wheel"."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.helpers.running.processes import ROOT


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel made from it, of a copy: two builds must not meet."""
    folder = tmp_path_factory.mktemp("built")
    ours = {".*", "__pycache__", "build", "dist", "*.egg-info"}
    shutil.copytree(ROOT, folder / "sources", ignore=shutil.ignore_patterns(*ours))
    shutil.copy(ROOT / ".pre-commit-config.yaml", folder / "sources")
    (folder / "sources" / "notes.txt").write_text("of whoever builds it")
    run(sys.executable, "-m", "build", "--outdir", folder / "dist", folder / "sources")
    return folder / "dist"


@pytest.fixture(scope="session")
def wheel(built: Path) -> Path:
    (file,) = built.glob("*.whl")
    return file


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a new environment with the wheel, and nothing but what it needs."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "env")
    programs = folder / "env" / "bin"
    pip = (sys.executable, "-m", "pip", "--python", programs / "python")
    run(*pip, "install", "--quiet", "--no-compile", wheel)
    return programs
