"""The hosts of the benchmarks: one fast process that serves all of 127.0.0.0/8.

``python -m benchmarks.server`` prints its port and serves until its standard input ends. The second number of
the address selects the kind of host: ``127.1.x.x`` is healthy; the robots.txt of ``127.2.x.x`` never comes,
but its pages do; ``127.3.x.x`` is healthy and closes each connection, so that there can be many;
``127.4.x.x`` responds after 0.05 to 0.35 seconds and ``127.5.x.x`` after 0.2 to 5, each host always after the
same time. The robots.txt of ``127.6.x.x`` answers 503 for up to 4 seconds after its first request.
``127.7.x.x`` is healthy, closes each connection, and has a robots.txt of 100 kB.
``127.8.x.x`` is healthy; its files have 50 to 500 rules, from the directory in the argument or generated.

``/shortest`` at ``127.0.0.1`` returns, as JSON, the shortest interval in seconds between two requests to one
host that responds late, since the last request for it.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from functools import cache
from pathlib import Path

from benchmarks.files import sites
from scrapy_norobots import RobotsTxt

ROBOTS = b"User-agent: *\nDisallow: /back/\nDisallow: /attic/\n"
LARGE_ROBOTS = b"User-agent: *\n" + b"".join(b"Disallow: /town/street-%d/house\n" % n for n in range(3000))
PAGE = b"<!DOCTYPE html><html><title>A page</title><body>" + b"<p>Some words.</p>" * 100 + b"</body></html>"


def _answer(body: bytes, kind: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n"
    return head % (kind, len(body)) + body


# The shortest and longest response time of hosts in seconds, by the start of their address.
SECONDS = {"127.4.": (0.05, 0.35), "127.5.": (0.2, 5.0)}

# The longest time in seconds for which hosts are closed, by the start of their address; and when each opens.
CLOSED = {"127.6.": 4.0}
opens: dict[str, float] = {}

# The last request to each of these hosts, and the shortest interval between two requests to one of them.
last_asked: dict[str, float] = {}
shortest: list[float] = []


def seconds_of(address: str) -> float:
    """Return the response time of a host in seconds."""
    least, most = SECONDS.get(address[:6], (0.0, 0.0))
    return random.Random(address).uniform(least, most)


def is_closed(address: str) -> bool:
    """Whether the robots.txt of a host fails now; called for each request for it."""
    if address[:6] not in CLOSED:
        return False
    now = time.monotonic()
    return now < opens.setdefault(address, now + random.Random(address).uniform(0, CLOSED[address[:6]]))


def shortest_interval() -> bytes:
    """Return the shortest interval between two requests to a host, and reset it."""
    answer = json.dumps(min(shortest, default=None)).encode()
    shortest.clear()
    last_asked.clear()
    opens.clear()
    return _answer(answer, b"application/json")


@cache
def middling() -> list[bytes]:
    """Return robots.txt answers of 50 to 500 rules which, by each reading, let Scrapy fetch ``/0``."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    return [
        _answer(body, b"text/plain")
        for body, _ in sites(folder, 1)
        if 50 <= body.lower().count(b"allow:") <= 500
        and all(
            RobotsTxt.parse(body, reading=reading).allowed("/0", "Scrapy") for reading in ("1994", "rfc9309")
        )
    ]


CLOSED_ANSWER = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
ROBOTS_ANSWER = _answer(ROBOTS, b"text/plain")
LARGE_ROBOTS_ANSWER = _answer(LARGE_ROBOTS, b"text/plain")
PAGE_ANSWER = _answer(PAGE, b"text/html")


class Host(asyncio.Protocol):
    """One connection to one of the hosts."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set the host from the address of the connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        address = transport.get_extra_info("sockname")[0]
        self._is_dead = address.startswith("127.2.")
        self._has_large_file = address.startswith("127.7.")
        self._closes = address.startswith("127.3.") or self._has_large_file
        self._address = address
        self._robots = ROBOTS_ANSWER
        if address.startswith("127.8."):
            _, _, high, low = map(int, address.split("."))
            self._robots = middling()[(high * 250 + low) % len(middling())]
        self._seconds = seconds_of(address)
        self._received = b""

    def data_received(self, data: bytes) -> None:
        """Respond to complete requests."""
        self._received += data
        while b"\r\n\r\n" in self._received:
            head, _, self._received = self._received.partition(b"\r\n\r\n")
            if self._seconds:
                self._note_time()
            if head.startswith(b"GET /shortest "):
                self._send(shortest_interval())
            elif not head.startswith(b"GET /robots.txt "):
                self._send(PAGE_ANSWER)
            elif self._has_large_file:
                self._send(LARGE_ROBOTS_ANSWER)
            elif not self._is_dead:
                self._send(CLOSED_ANSWER if is_closed(self._address) else self._robots)
            if self._closes:
                self._transport.close()

    def _send(self, answer: bytes) -> None:
        if self._seconds:
            asyncio.get_running_loop().call_later(self._seconds, self._transport.write, answer)
        else:
            self._transport.write(answer)

    def _note_time(self) -> None:
        now = time.monotonic()
        if self._address in last_asked:
            shortest.append(now - last_asked[self._address])
        last_asked[self._address] = now


async def serve(hosts: type[asyncio.Protocol]) -> None:
    """Print the port, and serve until standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(hosts, "0.0.0.0", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    middling()  # takes some time, which no crawl is to wait for
    asyncio.run(serve(Host))
