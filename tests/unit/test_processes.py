"""Forked processes behave like started ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.running import processes


def module(folder: Path, code: str) -> str:
    (folder / "program.py").write_text(code)
    return "program"


PROGRAMS = {
    "ends": "print('out')",
    "exits": "import sys; print('out'); sys.exit(3)",
    "says why it exits": "import sys; sys.exit('why')",
    "fails": "raise RuntimeError('a bug')",
    "is killed by a signal": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "runs what was registered": "import atexit; atexit.register(print, 'at exit')",
    "waits for its threads": "import threading, time; threading.Timer(0.05, print, ['thread']).start()",
    "cannot write": "import os; os.close(1); os.open('/dev/full', os.O_WRONLY); print('out')",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_forked_process_exits_like_a_started_one(tmp_path: Path, name: str) -> None:
    program = module(tmp_path, PROGRAMS[name])
    forked = processes.run(program, cwd=tmp_path)
    started = subprocess.run(
        [sys.executable, "-m", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert forked.returncode == started.returncode
    assert forked.stdout == started.stdout
    assert forked.stderr.splitlines()[-1:] == started.stderr.splitlines()[-1:]
