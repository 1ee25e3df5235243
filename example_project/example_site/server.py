"""The web server of the library: serves a ``Library`` on a local port, and logs its visitors."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from example_site.judge import place
from example_site.pages import Library, Page

if TYPE_CHECKING:
    from collections.abc import Iterator

ROBOTS_TXT = Path(__file__).with_name("robots.txt")


@dataclass(frozen=True)
class Visit:
    """A request (``target`` is its path and query as sent) and the status of its response."""

    method: str
    target: str
    status: int
    user_agent: str


class Site(ThreadingHTTPServer):
    """Serves ``library`` at ``url`` and logs ``visits``; ``open_site`` starts and stops it."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, library: Library, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.collection = library
        self.url = f"http://127.0.0.1:{self.server_port}"
        self._visits: list[Visit] = []
        self._lock = Lock()

    @property
    def visits(self) -> list[Visit]:
        """All requests so far, in the order of their responses."""
        with self._lock:
            return list(self._visits)

    def note(self, visit: Visit) -> None:
        """Add a visit to the log; thread-safe."""
        with self._lock:
            self._visits.append(visit)

    def page(self, target: str) -> Page | None:
        """Return the page at ``target``; None if there is none."""
        if target == "/robots.txt":
            return Page("robots.txt", data=ROBOTS_TXT.read_bytes(), type="text/plain")
        return self.collection.pages.get(place(target))

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore closed connections; report any other error as usual."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def open_site(library: Library, port: int = 0) -> Iterator[Site]:
    """Serve ``library`` in a thread inside the ``with``; port 0 is any free port."""
    site = Site(library, port)
    thread = Thread(target=site.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        site.shutdown()
        thread.join()
        site.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Site

    def do_GET(self) -> None:
        page = self.server.page(self.path)
        if page is None:
            self.send_error(404)
            return
        body = page.render(self.server.url)
        self.send_response(302 if page.moved_to else 200)
        if page.moved_to:
            self.send_header("Location", page.moved_to)
        self.send_header("Content-Type", page.type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log the visit, just before its response is sent."""
        agent = self.headers.get("User-Agent", "") if hasattr(self, "headers") else ""
        target = getattr(self, "path", "")  # both are missing after an invalid request
        self.server.note(Visit(self.command or "", target, int(code), agent))

    def log_message(self, *args: object) -> None:
        """Print nothing."""
