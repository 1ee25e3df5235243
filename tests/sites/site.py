"""`Site`: a small HTTP server on a free port of this machine, with a table of answers and a log."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType


@dataclass(frozen=True)
class Hit:
    """One request that a site has seen; `target` is path and query as they were sent."""

    method: str
    target: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Answer:
    """What a site answers; `before` runs first, to wait for something, say."""

    body: bytes | str = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[], object] | None = None


def page(*links: str) -> Answer:
    """An HTML page with links."""
    anchors = "".join(f'<a href="{link}">{link}</a>' for link in links)
    return Answer(f"<html><body>{anchors}</body></html>", headers={"Content-Type": "text/html"})


class Site:
    """A context manager: the server runs inside the ``with``.

    `answers` maps targets to answers; any other target is an empty page, except that robots.txt is missing
    unless it is given, as text or as an answer.
    """

    def __init__(
        self,
        robots: bytes | str | Answer | None = None,
        answers: Mapping[str, Answer] | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self.answers = dict(answers or {})
        if isinstance(robots, Answer):
            self.answers["/robots.txt"] = robots
        elif robots is not None:
            self.answers["/robots.txt"] = Answer(robots, headers={"Content-Type": "text/plain"})
        self.hits: list[Hit] = []
        self.host = host
        self._server = _Server((host, 0), _Handler)
        self._server.site = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The site's address without a slash at the end."""
        return f"http://{self.host}:{self.port}"

    def targets(self) -> list[str]:
        """What was asked for, in order."""
        return [hit.target for hit in self.hits]

    def pages(self) -> list[str]:
        """What was asked for beside robots.txt, sorted."""
        return sorted(target for target in self.targets() if target != "/robots.txt")

    def robots_hits(self) -> list[Hit]:
        return [hit for hit in self.hits if hit.target == "/robots.txt"]

    def __enter__(self) -> Site:
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


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        site = self.server.site
        site.hits.append(Hit(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
        answer = site.answers.get(self.path)
        if answer is None:
            answer = Answer(status=404) if self.path == "/robots.txt" else page()
        if answer.before is not None:
            answer.before()
        body = answer.body.encode() if isinstance(answer.body, str) else answer.body
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        """Say nothing: the log is `Site.hits`."""
