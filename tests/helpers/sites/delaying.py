"""A TCP proxy that delays what a server sends, like a network on the way, and counts round trips."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self


class DelayingProxy:
    """A context manager: the proxy for a port of this machine runs in the current event loop.

    Responses arrive `seconds` later. `round_trips` counts the pieces that clients sent; a client that waits
    for each response sends one piece for each small request.
    """

    def __init__(self, target: int, seconds: float = 0) -> None:
        self._target = target
        self._seconds = seconds
        self._connections: set[asyncio.Task[None]] = set()
        self.round_trips = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        to_server = None
        try:
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self._target)
            await asyncio.gather(self._forward(reader, to_server), self._delay(from_server, writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            for end in (writer, to_server):
                if end is not None:
                    end.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(2**20):
            self.round_trips += 1
            writer.write(piece)
        writer.close()

    async def _delay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def send() -> None:
            while True:
                when, piece = await pieces.get()
                await asyncio.sleep(when - loop.time())
                writer.write(piece)

        sending = asyncio.create_task(send())
        with suppress(OSError):
            while piece := await reader.read(2**20):
                pieces.put_nowait((loop.time() + self._seconds, piece))
        sending.cancel()
        writer.close()
