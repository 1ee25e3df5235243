"""`measure`: the time and the memory that a command takes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# Runs a command, and writes its figures to standard error. The peak memory of a process includes that of the
# process that forked it, so a small process forks.
_MEASURE = """
import resource, subprocess, sys, time
started = time.perf_counter()
status = subprocess.run(sys.argv[1:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(time.perf_counter() - started, used.ru_utime + used.ru_stime, used.ru_maxrss, file=sys.stderr)
sys.exit(status == 2)
"""


@dataclass(frozen=True)
class Measured:
    """The result of a run: seconds, seconds of processor time, peak memory in bytes, and what it printed."""

    seconds: float
    cpu: float
    peak: int
    output: str


def measure(command: Sequence[str], **options: Any) -> Measured:
    """Run a command with options of `subprocess.run`; raise `RuntimeError` if its status is 2."""
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, *command],
        **{"stdout": subprocess.PIPE, **options}, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)
    seconds, cpu, peak = done.stderr.split()[-3:]
    return Measured(float(seconds), float(cpu), int(peak) * 1024, done.stdout or "")
