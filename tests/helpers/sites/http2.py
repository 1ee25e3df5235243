"""A site that speaks HTTP/2; it needs ``h2``."""

from __future__ import annotations

from pathlib import Path
from socketserver import BaseRequestHandler

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived

from tests.helpers.sites.site import Answer, Answerer, Hit, Site


class Http2Site(Site):
    """An https `Site` for clients that speak HTTP/2. Its answers have short bodies."""

    def __init__(self, tls: tuple[Path, Path], robots: str | Answer | Answerer | None = None) -> None:
        super().__init__(robots, tls=tls)
        self._server.socket.context.set_alpn_protocols(["h2"])  # type: ignore[attr-defined]
        self._server.RequestHandlerClass = _Handler


class _Handler(BaseRequestHandler):
    def handle(self) -> None:
        connection = H2Connection(H2Configuration(client_side=False))
        connection.initiate_connection()
        self.request.sendall(connection.data_to_send())
        while received := self.request.recv(2**16):
            for event in connection.receive_data(received):
                if isinstance(event, RequestReceived):
                    self._answer(connection, event)
            self.request.sendall(connection.data_to_send())

    def _answer(self, connection: H2Connection, event: RequestReceived) -> None:
        headers = {name.decode(): value.decode() for name, value in event.headers}
        host = headers[":authority"].rpartition(":")[0]
        hit = Hit(headers[":method"], host, headers[":path"], headers)
        site = self.server.site  # type: ignore[attr-defined]
        site.hits.append(hit)
        answer = site.answer(hit)
        body = answer.body.encode() if isinstance(answer.body, str) else answer.body
        lines = [(":status", str(answer.status)), ("content-length", str(len(body)))]
        lines += [(name.lower(), value) for name, value in answer.headers.items()]
        connection.send_headers(event.stream_id, lines)
        connection.send_data(event.stream_id, body, end_stream=True)
