"""Forked processes behave like started ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.running import processes

# The state of a new process.
LOOK = """
import json, os, signal, sys, threading
files = (sys.stdin, sys.stdout, sys.stderr)
print(json.dumps({
    "arguments": sys.argv,
    "name": [__name__, __spec__.name, sys.modules[__name__].__file__],
    "path": sys.path[0],
    "folder": os.getcwd(),
    "environment": dict(os.environ),
    "input": sys.stdin.read(),
    "encodings": [[file.encoding, file.errors, file.line_buffering] for file in files],
    "open files": [number for number in range(100) if os.path.exists(f"/dev/fd/{number}")],
    "signals": [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
    "blocked": list(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "woken by signals": signal.set_wakeup_fd(-1),
    "threads": threading.active_count(),
    "umask": os.umask(0o22),
}))
"""


def module(folder: Path, code: str) -> str:
    """Write a module and return its name."""
    (folder / "program.py").write_text(code)
    return "program"


@pytest.mark.parametrize("encoding", ["", "ascii"])
def test_a_forked_process_has_the_environment_of_a_started_one(tmp_path: Path, encoding: str) -> None:
    env = {**os.environ, "TOWN": "yes", "PYTHONIOENCODING": encoding}
    arguments = (module(tmp_path, LOOK), "--one", "two")
    forked = processes.run(*arguments, input="a\n", cwd=tmp_path, env=env)
    started = subprocess.run(
        [sys.executable, "-m", *arguments],
        input="a\n", cwd=tmp_path, env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert forked.returncode == 0, forked.stderr
    assert json.loads(forked.stdout) == json.loads(started.stdout)


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
