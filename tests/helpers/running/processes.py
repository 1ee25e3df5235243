"""Python processes that start quickly, forked from a process that has Scrapy and this package imported.

`run` is like `subprocess.run` for ``python -m MODULE``; a `Process` runs while the test continues, and has
pipes if it is `Piped`. Imports take most of the time of a small crawl, and `forkserver` does them once.
Each process has its own environment, working directory, standard files and signal handlers, has no reactor,
and exits like any Python process. It is killed when its `Process` is closed. All are killed when the process
of the tests ends.

What Python reads when it starts (the hash seed, PYTHONWARNINGS, PYTHONPATH) comes from the fork server. Two
servers take turns, so that consecutive processes have different hash seeds.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest

from tests.helpers.running.forkserver import Job

if TYPE_CHECKING:
    from typing_extensions import Self

ROOT = Path(__file__).parents[3]


def run(
    *arguments: str,
    input: str | bytes = "",  # noqa: A002  # as in subprocess
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    timeout: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m ARGUMENTS`` and wait for its end. One that takes too long is killed; the `TimeoutError`
    shows what it had written.
    """
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        stdin.write(input.encode("utf-8", "surrogateescape") if isinstance(input, str) else input)
        stdin.seek(0)
        with Process(*arguments, stdin=stdin, stdout=out, stderr=err, cwd=cwd, env=env) as process:
            try:
                status = process.wait(timeout)
            except TimeoutError:
                process.kill()
                raise TimeoutError(
                    f"{shlex.join(arguments)} took longer than {timeout} s and was killed. "
                    f"It had written:\n{_text(out)}{_text(err)}"
                ) from None
        return subprocess.CompletedProcess(arguments, status, _text(out), _text(err))


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


class Process:
    """``python -m ARGUMENTS`` with these standard files. It is killed at the end of the ``with``."""

    def __init__(
        self,
        *arguments: str,
        stdin: IO[Any],
        stdout: IO[Any],
        stderr: IO[Any],
        cwd: Path = ROOT,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._status: int | None = None
        self._connection, theirs = socket.socketpair()
        job = Job(list(arguments), str(cwd), dict(os.environ if env is None else env))
        with theirs:
            _next_server().start(job, [file.fileno() for file in (theirs, stdin, stdout, stderr)])

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; return the exit status, or the negative number of the signal that killed it."""
        if self._status is None:
            self._connection.settimeout(timeout)
            status = self._connection.recv(4)
            if not status:
                raise RuntimeError("the fork server has died; its standard error says why")
            self._status = int.from_bytes(status, "big", signed=True)
        return self._status

    def poll(self) -> int | None:
        """Return the exit status if the process has ended, without waiting."""
        try:
            return self.wait(0)
        except BlockingIOError:
            return None

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        self._connection.send(bytes([number]))

    def kill(self) -> None:
        """Kill the process with SIGKILL, unless it has ended, and wait until it is gone."""
        with contextlib.suppress(OSError):  # the server has closed the connection of an ended process
            self._connection.shutdown(socket.SHUT_WR)
        self.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self.kill()
        finally:
            self._connection.close()


class Piped(Process):
    """``python -m ARGUMENTS`` with a pipe for each standard file: `stdin`, `stdout` and `stderr`."""

    def __init__(self, *arguments: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> None:
        stdin, write = os.pipe()
        read, stdout = os.pipe()
        read_errors, stderr = os.pipe()
        self.stdin = os.fdopen(write, "w", encoding="utf-8")
        self.stdout = os.fdopen(read, encoding="utf-8")
        self.stderr = os.fdopen(read_errors, encoding="utf-8")
        with os.fdopen(stdin) as one, os.fdopen(stdout, "w") as two, os.fdopen(stderr, "w") as three:
            super().__init__(*arguments, stdin=one, stdout=two, stderr=three, cwd=cwd, env=env)

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Close standard input, wait for the end, and return the rest of standard output and error."""
        self.stdin.close()
        with ThreadPoolExecutor() as executor:
            reads = [executor.submit(file.read) for file in (self.stdout, self.stderr)]
            try:
                self.wait(timeout)
            finally:
                self.kill()  # so that the reads end
            return reads[0].result(), reads[1].result()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        for file in (self.stdin, self.stdout, self.stderr):
            with contextlib.suppress(BrokenPipeError):  # what was written last is no longer wanted
                file.close()


class _Server:
    """A fork server; it exits and kills its forks when its control socket is closed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair()
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONIOENCODING"}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.helpers.running.forkserver", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                cwd=ROOT,
                env=environment,  # each fork sets its own PYTHONIOENCODING, or none
            )
        atexit.register(self._stop)

    def start(self, job: Job, fds: list[int]) -> None:
        """Fork a process for a job; `fds` are the connection to its `Process` and its standard files."""
        body = json.dumps(vars(job)).encode()
        with self._lock:
            socket.send_fds(self._control, [len(body).to_bytes(4, "big")], fds)
            self._control.sendall(body)

    def _stop(self) -> None:
        self._control.close()
        self._process.wait()


_turns = itertools.cycle(range(2))
_servers: dict[int, _Server] = {}
_starting = threading.Lock()


def _next_server() -> _Server:
    if not hasattr(os, "fork"):
        pytest.skip("this system does not fork processes")
    with _starting:
        turn = next(_turns)
        if turn not in _servers:
            _servers[turn] = _Server()
        return _servers[turn]
