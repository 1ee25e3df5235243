"""The hosts that the benchmarks crawl: one process that answers on all of 127.0.0.0/8, at little cost.

``python -m benchmarks.server`` prints its port and serves until its standard input ends. The second number of
the address says what a host is: ``127.1.x.x`` is healthy; the robots.txt of ``127.2.x.x`` never comes, though
its pages do; ``127.3.x.x`` is healthy and keeps no connection open, so that there can be many.
"""

from __future__ import annotations

import asyncio
import sys

ROBOTS = b"User-agent: *\nDisallow: /back/\nDisallow: /attic/\n"
PAGE = b"<!DOCTYPE html><html><title>A page</title><body>" + b"<p>Some words.</p>" * 100 + b"</body></html>"


def _answer(body: bytes, kind: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n"
    return head % (kind, len(body)) + body


ROBOTS_ANSWER = _answer(ROBOTS, b"text/plain")
PAGE_ANSWER = _answer(PAGE, b"text/html")


class Host(asyncio.Protocol):
    """One connection to one of the hosts."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Find out which host this is."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        address = transport.get_extra_info("sockname")[0]
        self._is_dead = address.startswith("127.2.")
        self._closes = address.startswith("127.3.")
        self._received = b""

    def data_received(self, data: bytes) -> None:
        """Answer the requests that are complete."""
        self._received += data
        while b"\r\n\r\n" in self._received:
            head, _, self._received = self._received.partition(b"\r\n\r\n")
            if not head.startswith(b"GET /robots.txt "):
                self._transport.write(PAGE_ANSWER)
            elif not self._is_dead:
                self._transport.write(ROBOTS_ANSWER)
            if self._closes:
                self._transport.close()


async def serve(hosts: type[asyncio.Protocol]) -> None:
    """Print the port, and serve until standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(hosts, "0.0.0.0", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve(Host))
