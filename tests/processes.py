"""Python processes that start quickly, forked from a process that has Scrapy and this package imported.

`run` does what `subprocess.run` does with ``python -m MODULE``; `Process` goes on while the test does.
Importing takes most of the time of a small crawl, and `tests.forkserver` does it once. Each process has its
own environment, folder, standard files and signal handlers, no reactor, and ends as Python ends. It is killed
when its `Process` is closed. When the process of the tests ends, however that ends, all are killed.

What Python itself reads when it starts (the hash seed, PYTHONWARNINGS, PYTHONPATH) is the fork server's. Two
servers take turns, so that processes in a row differ in the hash seed.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING

import pytest

from tests.forkserver import Job

if TYPE_CHECKING:
    from typing_extensions import Self

ROOT = Path(__file__).parent.parent


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
        stdin: IO[bytes],
        stdout: IO[bytes],
        stderr: IO[bytes],
        cwd: Path = ROOT,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._status: int | None = None
        self._connection, theirs = socket.socketpair()
        job = Job(list(arguments), str(cwd), dict(os.environ if env is None else env))
        with theirs:
            _next_server().start(job, [file.fileno() for file in (theirs, stdin, stdout, stderr)])

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; return the exit status, or the negative number of the signal that ended it."""
        if self._status is None:
            self._connection.settimeout(timeout)
            status = self._connection.recv(4)
            if not status:
                raise RuntimeError("the fork server has died; its standard error says why")
            self._status = int.from_bytes(status, "big", signed=True)
        return self._status

    def kill(self) -> None:
        """Kill the process with SIGKILL, unless it has ended, and wait until it is gone."""
        with contextlib.suppress(OSError):  # the server closes the connection of one that has ended
            self._connection.shutdown(socket.SHUT_WR)
        self.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.kill()
        finally:
            self._connection.close()


class _Server:
    """A fork server: it ends, and kills what it has forked, when its control socket is closed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair()
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONIOENCODING"}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.forkserver", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                cwd=ROOT,
                env=environment,  # each fork has a PYTHONIOENCODING of its own, or none
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
