"""``hostile``: how long a robots.txt that is built to take time blocks a crawl.

For each kind of file of `benchmarks.linear`, at 2 MB: a host with such a file is crawled together with a
healthy one, with two robot names. Measured: the longest time for which the event loop was blocked.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import median
from typing import Any

from benchmarks.crawl import HANDLERS, NAMES, ROOTS
from benchmarks.linear import KINDS, SIZE, of_size
from benchmarks.report import progress, table

PAGES = 40
SETTINGS = {
    "NOROBOTS_META": True,
    "NOROBOTS_MAXSIZE": 2 * SIZE,  # a few of the files are a little longer than the default allows
    "NOROBOTS_RETRY_CLOSED": 0,
    "DOWNLOAD_WARNSIZE": 0,
}
_PAGE = b"<html><title>A page</title><p>Some words.</html>"


def body_of(kind: str) -> bytes:
    """Return a file of a kind."""
    return of_size(KINDS[kind], SIZE)


def meta_page() -> bytes:
    """Return a page of META tags, all different."""
    tags = b"".join(b'<meta name="robots" content="x%d">' % number for number in range(SIZE // 38))
    return b"<html><head>" + tags


@contextmanager
def serving(robots: bytes, page: bytes) -> Iterator[int]:
    """Serve a hostile robots.txt and page on 127.0.0.2, and healthy ones on 127.0.0.1."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            is_hostile = self.connection.getsockname()[0] == "127.0.0.2"
            if self.path == "/robots.txt":
                body, kind = (robots if is_hostile else b""), "text/plain"
            else:
                body, kind = (page if is_hostile else _PAGE), "text/html"
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    class Hosts(ThreadingHTTPServer):
        def handle_error(self, *args: object) -> None:  # a crawl that ends closes its connections
            pass

    server = Hosts(("0.0.0.0", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()


def longest_standstill(handler: str, robots: bytes, page: bytes = _PAGE, **settings: Any) -> float:
    """Crawl with a handler, and return the longest time for which the event loop was blocked, in seconds."""
    with serving(robots, page) as port:
        hosts = [("127.0.0.2", "Scrapy"), ("127.0.0.2", "FooBot"), ("127.0.0.1", "Scrapy")]
        job = {
            "requests": [
                [f"http://{host}:{port}/{number}", robot] for number in range(PAGES) for host, robot in hosts
            ],
            "settings": {**SETTINGS, **HANDLERS[handler], **settings},
        }
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.hostile"],
            input=json.dumps(job),
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOTS[handler],
        )
    if done.returncode != 0:
        raise RuntimeError(f"the crawl with {handler!r} failed:\n{done.stderr[-2000:]}")
    return float(done.stdout)


def run(rounds: int) -> None:
    """Measure and print the table."""
    cases: dict[str, tuple[bytes, bytes, bool]] = {kind: (body_of(kind), _PAGE, False) for kind in KINDS}
    cases["rules, from a store"] = (body_of("rules"), _PAGE, True)
    cases["META tags of a page"] = (b"", meta_page(), False)
    seen: dict[str, dict[str, list[float]]] = {}
    for number in range(1, rounds + 1):
        for case, (robots, page, is_stored) in cases.items():
            progress(f"round {number} of {rounds}: {case}")
            for handler in HANDLERS:
                with tempfile.TemporaryDirectory() as folder:
                    store = {"NOROBOTS_STORE": f"sqlite:///{folder}/robots.sqlite"} if is_stored else {}
                    if is_stored:
                        longest_standstill(handler, robots, page, **store)
                    took = longest_standstill(handler, robots, page, **store)
                seen.setdefault(case, {}).setdefault(handler, []).append(took)
    rows, worst = [], dict.fromkeys(HANDLERS, 0.0)
    for case, of_handler in seen.items():
        medians = {handler: median(took) for handler, took in of_handler.items()}
        worst = {handler: max(worst[handler], medians[handler]) for handler in HANDLERS}
        rows.append([case, *(f"{medians[handler]:.3f} s" for handler in HANDLERS)])
    rows.append(["longest of all", *(f"{worst[handler]:.3f} s" for handler in HANDLERS)])
    columns = ["robots.txt of 2 MB", *(NAMES[handler] for handler in HANDLERS)]
    table(f"hostile: longest standstill, medians of {rounds} rounds", columns, rows)


def main() -> None:
    """Run the job on standard input, and print the longest blocking time in seconds."""
    from scrapy import Request, Spider, signals
    from scrapy.crawler import CrawlerProcess

    job = json.load(sys.stdin)
    longest = 0.0

    class Pages(Spider):
        name = "pages"

        async def start(self) -> Any:
            self.crawler.signals.connect(self.watch, signals.request_reached_downloader)
            for url, robot in job["requests"]:
                yield Request(url, headers={"User-Agent": robot}, errback=lambda _: None)

        def watch(self) -> None:
            self.crawler.signals.disconnect(self.watch, signals.request_reached_downloader)
            loop = asyncio.get_running_loop()
            last = loop.time()

            def tick() -> None:
                nonlocal last, longest
                now = loop.time()
                longest, last = max(longest, now - last), now
                loop.call_later(0.001, tick)

            tick()

        def parse(self, response: Any) -> None:
            pass

    process = CrawlerProcess({"LOG_LEVEL": "CRITICAL", "TELNETCONSOLE_ENABLED": False, **job["settings"]})
    process.crawl(Pages)
    process.start()
    print(longest)


if __name__ == "__main__":
    main()
