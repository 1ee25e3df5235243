"""The process from which `processes` forks others: ``python -m tests.helpers.running.forkserver CONTROL``.

It imports what crawls import, then forks for each `Job` from the socket CONTROL. A job has four file
descriptors: a connection, and the standard files of the fork. A byte from the connection is the number of a
signal for the fork. The connection returns the exit status; if the other side closes it, the fork is killed.
If the other side closes CONTROL, all forks are killed.

The server runs one thread and installs no reactor. A fork returns from `Server.serve` and runs its module as
the main program of its process, so that it ends as any Python does: threads, `atexit`, exit status.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import json
import os
import re
import runpy
import select
import signal
import socket
import sys
import threading
from dataclasses import dataclass, field
from typing import NoReturn


@dataclass(frozen=True)
class Job:
    """The program of a fork: ``python -m arguments`` with a working directory and an environment."""

    arguments: list[str]
    cwd: str
    environment: dict[str, str]


def preload() -> None:
    """Import Scrapy, the modules of its default components, this package, and the tests' spiders."""
    import warnings
    from importlib import import_module
    from pkgutil import walk_packages

    import scrapy.crawler  # noqa: F401
    from scrapy.core.engine import ExecutionEngine
    from scrapy.exceptions import ScrapyDeprecationWarning
    from scrapy.settings import default_settings

    for value in vars(default_settings).values():
        for path in [*value, *value.values()] if isinstance(value, dict) else [value]:
            # In older versions of Twisted, these two import the reactor.
            if isinstance(path, str) and re.match(r"scrapy\.(?!.*\.(ftp|telnet)\.)", path):
                import_module(path.rpartition(".")[0])
    with warnings.catch_warnings():
        if hasattr(ExecutionEngine, "download_async"):  # older versions log deprecation warnings of their own
            warnings.simplefilter("error", ScrapyDeprecationWarning)
        import scrapy_norobots

        for module in walk_packages(scrapy_norobots.__path__, "scrapy_norobots."):
            with contextlib.suppress(ImportError):  # an optional dependency
                import_module(module.name)
        from tests.helpers import spiders

        for module in walk_packages(spiders.__path__, "tests.helpers.spiders."):
            if module.name != "tests.helpers.spiders.fleet":  # it imports scrapy-redis
                import_module(module.name)
    assert "twisted.internet.reactor" not in sys.modules
    assert threading.active_count() == 1


@dataclass
class Server:
    """The forks and their connections."""

    control: socket.socket
    _running: dict[socket.socket, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._woken, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        signal.set_wakeup_fd(self._waker.fileno())
        self._handlers = {
            signal.SIGCHLD: signal.signal(signal.SIGCHLD, lambda *_: None),  # it only wakes `select`
            signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN),  # handled by the tests' process
        }

    def serve(self) -> Job:
        """Fork for each job, and return it in the fork; never return in the server."""
        while True:
            ready, _, _ = select.select([self.control, self._woken, *self._running], [], [])
            for connection in self._running.keys() & set(ready):
                if number := connection.recv(1):
                    os.kill(self._running[connection], number[0])
                else:
                    os.kill(self._running[connection], signal.SIGKILL)
                    self._reap(connection, 0)
            if self._woken in ready:
                self._woken.recv(4096)
                for connection in list(self._running):
                    self._reap(connection, os.WNOHANG)
            if self.control in ready:
                job, connection, files = self._receive()
                pid = os.fork()
                if pid == 0:
                    self._leave(connection, files)
                    return job
                self._running[connection] = pid
                for file in files:
                    os.close(file)

    def _receive(self) -> tuple[Job, socket.socket, list[int]]:
        size, fds, _, _ = socket.recv_fds(self.control, 4, 4)
        if not size:
            for pid in self._running.values():
                os.kill(pid, signal.SIGKILL)
            signal.set_wakeup_fd(-1)  # their ends may be signalled when the socket is closed already
            sys.exit()
        body = self.control.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL)
        return Job(**json.loads(body)), socket.socket(fileno=fds[0]), fds[1:]

    def _reap(self, connection: socket.socket, options: int) -> None:
        """Send the exit status of a fork, if it has ended."""
        pid, status = os.waitpid(self._running[connection], options)
        if pid:
            with contextlib.suppress(OSError):  # the other side does not wait any more
                connection.send(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
            connection.close()
            del self._running[connection]

    def _leave(self, connection: socket.socket, files: list[int]) -> None:
        """In a fork, close the files of the server, and use the standard files of the job."""
        signal.set_wakeup_fd(-1)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        for end in (self.control, self._woken, self._waker, connection, *self._running):
            end.close()
        for place, file in enumerate(files):
            os.dup2(file, place)
            os.close(file)


def open_standard_files() -> None:
    """Create `sys.stdin` and the others again, as Python does when it starts, for the new files."""
    encoding = os.environ.get("PYTHONIOENCODING")
    for place, name in enumerate(("stdin", "stdout", "stderr")):
        before, is_read = getattr(sys, name), name == "stdin"
        buffering = -1 if is_read or not before.write_through else 0  # as PYTHONUNBUFFERED says
        file = io.TextIOWrapper(
            open(place, "rb" if is_read else "wb", buffering, closefd=False),  # noqa: SIM115
            encoding or before.encoding,
            "strict" if encoding and name != "stderr" else before.errors,
            line_buffering=before.line_buffering,
            write_through=before.write_through,
        )
        setattr(sys, name, file)
        setattr(sys, f"__{name}__", file)


def begin(job: Job) -> None:
    """Run the program of a job in this process."""
    os.chdir(job.cwd)
    os.environ.clear()
    os.environ.update(job.environment)
    open_standard_files()
    sys.argv = job.arguments
    sys.path[0] = job.cwd
    try:
        runpy.run_module(job.arguments[0], run_name="__main__", alter_sys=True)
    except SystemExit as exc:
        if not isinstance(exc.code, int | None):
            raise
        end(exc.code or 0)
    end(0)


def end(status: int) -> NoReturn:
    """Exit as Python does, except that modules are not cleared, which takes half as long as a small crawl."""
    threading._shutdown()  # type: ignore[attr-defined]  # what Python itself calls
    atexit._run_exitfuncs()
    gc.collect()
    for file in (sys.stdout, sys.stderr):
        file.flush()
    os._exit(status)


if __name__ == "__main__":
    preload()
    gc.freeze()  # so the garbage collectors of forks skip all imported objects
    begin(Server(socket.socket(fileno=int(sys.argv[1]))).serve())
