"""`Site`: a small HTTP server on a free local port, with a table of responses and a log."""

from __future__ import annotations

import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing from Python 3.11 on


@cache
def _has_many_hosts() -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.2", 0))
        except OSError:
            return False
    return True


def need_many_hosts() -> None:
    """Skip a test that needs servers at several addresses, unless this machine has all of 127.0.0.0/8."""
    if not _has_many_hosts():
        pytest.skip("only 127.0.0.1 is an address of this machine; on Linux all of 127.0.0.0/8 are")


@dataclass(frozen=True)
class Hit:
    """One request to a site; `target` is path and query as sent.

    `time` is the time of its arrival, in seconds, by a clock that all processes of a machine share.
    """

    method: str
    host: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""
    time: float = field(default_factory=time.monotonic, compare=False)


@dataclass(frozen=True)
class Answer:
    """A response of a site; `before` runs first, for example to wait."""

    body: bytes | str = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[], object] | None = None


Answerer = Callable[[Hit], Answer]


def page(*links: str) -> Answer:
    """An HTML page with links."""
    anchors = "".join(f'<a href="{link}">{link}</a>' for link in links)
    return Answer(f"<html><body>{anchors}</body></html>", headers={"Content-Type": "text/html"})


class Site:
    """A context manager: the server runs inside the ``with``.

    `answers` maps targets to answers, or a host and a target (``127.0.0.2/robots.txt``) where a site bound to
    0.0.0.0 is many; any other target is an empty page, except that robots.txt is missing unless it is given,
    as text or as an answer. A function from a hit to an answer may stand for an answer. With `tls`, a pair of
    certificate and key files, the site is an https one.
    """

    def __init__(
        self,
        robots: bytes | str | Answer | Answerer | None = None,
        answers: Mapping[str, Answer | Answerer] | None = None,
        host: str = "127.0.0.1",
        tls: tuple[Path, Path] | None = None,
    ) -> None:
        if host not in ("127.0.0.1", "localhost"):
            need_many_hosts()
        self.answers = dict(answers or {})
        if isinstance(robots, Answer) or callable(robots):
            self.answers["/robots.txt"] = robots
        elif robots is not None:
            self.answers["/robots.txt"] = Answer(robots, headers={"Content-Type": "text/plain"})
        self.hits: list[Hit] = []
        self.host = host
        self._server = _Server((host, 0), _Handler)
        self._server.site = self
        self._scheme = "http"
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
            self._scheme = "https"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The URL of the site without a final slash."""
        return self.url_of(self.host)

    def url_of(self, host: str) -> str:
        """Return the URL of one host of a site bound to 0.0.0.0."""
        return f"{self._scheme}://{host}:{self.port}"

    def answer(self, hit: Hit) -> Answer:
        """Return the response to a request."""
        answer = self.answers.get(hit.host + hit.target) or self.answers.get(hit.target)
        if callable(answer):
            return answer(hit)
        if answer is None:
            return Answer(status=404) if hit.target == "/robots.txt" else page()
        return answer

    def targets(self) -> list[str]:
        """The requested targets, in order."""
        return [hit.target for hit in self.hits]

    def pages(self) -> list[str]:
        """The requested targets except robots.txt, sorted."""
        return sorted(target for target in self.targets() if target != "/robots.txt")

    def robots_hits(self) -> list[Hit]:
        return [hit for hit in self.hits if hit.target == "/robots.txt"]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    site: Site

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that disconnect during a response, as some tests intend."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, ssl.SSLEOFError)):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer is sent at once; in two parts, the second would wait for an acknowledgement
    server: _Server

    def do_GET(self) -> None:
        site = self.server.site
        host = self.headers.get("Host", "").rpartition(":")[0]
        headers = {name.lower(): value for name, value in self.headers.items()}
        sent = self.rfile.read(int(headers.get("content-length", 0)))
        hit = Hit(self.command, host, self.path, headers, sent)
        site.hits.append(hit)
        answer = site.answer(hit)
        if answer.before is not None:
            answer.before()
        body = answer.body.encode() if isinstance(answer.body, str) else answer.body
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        length = answer.headers.get("Content-Length", str(len(body)))
        if "Content-Length" not in answer.headers:
            self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(body)
        # If the length is wrong on purpose, do not let the client wait for the rest.
        self.close_connection = self.close_connection or length != str(len(body))

    do_POST = do_GET  # noqa: N815  # the base class's name

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        """Print nothing; the log is `Site.hits`."""
