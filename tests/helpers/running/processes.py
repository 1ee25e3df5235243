"""Python processes that start quickly, forked from a process that has Scrapy and this package imported.

`run` is like `subprocess.run` for ``python -m MODULE``; a `Process` runs while the test continues, and has
pipes if it is `Piped`. Each process has its own environment, working directory, standard files and signal
handlers, has no reactor, and exits like any Python process. It is killed when its `Process` is closed. All
are killed when the process of the tests ends.

A `Server` is this module as a program. It imports what crawls import, runs one thread, installs no reactor,
and forks for each `Job` from its socket. A job has four file descriptors: a connection, and the standard
files of the fork. A byte from the connection is the number of a signal for the fork. The connection returns
the exit status; if the other side closes it, the fork is killed. If the other side closes the socket, all
forks are killed. What Python reads when it starts (the hash seed, PYTHONWARNINGS, PYTHONPATH) comes from the
server. Each process of the tests has a server of its own, with another hash seed.
"""

from __future__ import annotations

import atexit
import codecs
import contextlib
import gc
import importlib
import io
import json
import os
import pkgutil
import re
import runpy
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from typing_extensions import Self

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Job:
    """The program of a fork: ``python -m arguments`` with a working directory and an environment."""

    arguments: list[str]
    cwd: str
    environment: dict[str, str]


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
        with theirs, _lock:
            _server().start(job, [file.fileno() for file in (theirs, stdin, stdout, stderr)])

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


class _Connection:
    """A connection to a fork server, which exits and kills its forks when this is closed."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair()
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONIOENCODING"}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __spec__.name, str(theirs.fileno())],
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
        socket.send_fds(self._control, [len(body).to_bytes(4, "big")], fds)
        self._control.sendall(body)

    def _stop(self) -> None:
        self._control.close()
        self._process.wait()


_lock = threading.Lock()
_server = cache(_Connection)


# --- the server


def preload() -> None:
    """Import what crawls and commands import, so that no fork has to."""
    import warnings

    from scrapy.core.engine import ExecutionEngine
    from scrapy.exceptions import ScrapyDeprecationWarning

    _import_scrapy()
    with warnings.catch_warnings():
        if hasattr(ExecutionEngine, "download_async"):  # older versions log deprecation warnings of their own
            warnings.simplefilter("error", ScrapyDeprecationWarning)
        import scrapy_norobots

        with contextlib.suppress(ImportError):
            import http_sf  # noqa: F401  # which this package imports later
        _import_all(scrapy_norobots)
        from tests.helpers import spiders

        _import_all(spiders, without="tests.helpers.spiders.fleet")  # it imports scrapy-redis
    for encoding in ("charmap", "cp1252"):  # of pages that name none
        codecs.lookup(encoding)
    assert "twisted.internet.reactor" not in sys.modules
    assert threading.active_count() == 1


def _import_scrapy() -> None:
    """Import Scrapy with the modules of its commands and default components."""
    import scrapy.cmdline
    import scrapy.commands
    from scrapy.settings import default_settings

    can_do_without_reactor = hasattr(default_settings, "TWISTED_REACTOR_ENABLED")
    # In older versions, some modules import the reactor.
    wanted = re.compile(r"scrapy\." if can_do_without_reactor else r"scrapy\.(?!.*\.(ftp|telnet)\.)")
    for value in vars(default_settings).values():
        for path in [*value, *value.values()] if isinstance(value, dict) else [value]:
            if isinstance(path, str) and wanted.match(path):
                importlib.import_module(path.rpartition(".")[0])
    if can_do_without_reactor:
        _import_all(scrapy.commands)


def _import_all(package: ModuleType, without: str = "") -> None:
    """Import the modules of a package whose dependencies are installed."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if module.name != without:
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)


@dataclass
class Server:
    """The forks and their connections."""

    control: socket.socket
    _running: dict[socket.socket, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._woken, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        signal.set_wakeup_fd(self._waker.fileno())
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # handled by the tests' process
        self._handlers = {
            signal.SIGCHLD: signal.signal(signal.SIGCHLD, lambda *_: None),  # it only wakes `select`
            signal.SIGINT: signal.default_int_handler,  # a shell ignores it for what runs in the background
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
        # As PYTHONUNBUFFERED says; but Scrapy's signal handlers log, and a buffer refuses that in the middle
        # of a log call, so that the signal would be lost.
        is_through = not is_read and (before.write_through or name == "stderr")
        file = io.TextIOWrapper(
            open(place, "rb" if is_read else "wb", 0 if is_through else -1, closefd=False),  # noqa: SIM115
            encoding or before.encoding,
            "strict" if encoding and name != "stderr" else before.errors,
            line_buffering=before.line_buffering,
            write_through=is_through,
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
