"""``forbidden``: the gain of dropping forbidden requests when they are scheduled; one site of 150 pages.

robots.txt forbids nine of ten of the 100 links of each page: ``unique``, different URLs on each page, or
``same``, the same 90 URLs on all pages. The plugin is compared with a subclass of its middleware, which drops
such requests in the downloader, as Scrapy's own middleware does. Measured: processor time and peak memory of
the crawl.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.crawl import serving
from benchmarks.report import progress, table, with_ratio
from benchmarks.server import serve

_ROOT = Path(__file__).parent.parent
PAGES, ALLOWED, FORBIDDEN = 150, 10, 90
ROBOTS = b"User-agent: *\nDisallow: /staff/\n"
KINDS = ("unique", "same")
NAMES = {"downloader": "dropped in the downloader", "scheduled": "dropped when scheduled"}


class LinksToForbidden(asyncio.Protocol):
    """One connection to a site with the pages ``/KIND/NUMBER``."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._received = b""

    def data_received(self, data: bytes) -> None:
        """Answer each complete request."""
        self._received += data
        while b"\r\n\r\n" in self._received:
            head, _, self._received = self._received.partition(b"\r\n\r\n")
            target = head.split(b" ")[1].decode()
            is_robots = target == "/robots.txt"
            body = ROBOTS if is_robots else _page(*target.strip("/").split("/"))
            kind = b"text/plain" if is_robots else b"text/html"
            head = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n"
            self._transport.write(head % (kind, len(body)) + body)


def _page(kind: str, number: str) -> bytes:
    page = int(number)
    links = [f"/{kind}/{link}" for link in range(page * ALLOWED + 1, (page + 1) * ALLOWED + 1)]
    first = page * FORBIDDEN if kind == "unique" else 0
    links += [f"/staff/{link}" for link in range(first, first + FORBIDDEN)]
    return "".join(f'<a href="{link}">A link</a>' for link in links).encode()


def run(rounds: int) -> None:
    """Measure, and print the table."""
    seen: dict[tuple[str, str], list[dict[str, Any]]] = {}
    with serving(__name__) as port:
        for number in range(1, rounds + 1):
            for kind in KINDS:
                for where, name in NAMES.items():
                    progress(f"round {number} of {rounds}: {kind}, {name}")
                    seen.setdefault((kind, where), []).append(_measure(port, kind, where))
    rows = []
    for (kind, where), crawls in seen.items():
        base = seen[kind, "downloader"]
        cpu = with_ratio([one["cpu"] for one in crawls], [one["cpu"] for one in base])
        peak = with_ratio([one["peak"] / 1e6 for one in crawls], [one["peak"] / 1e6 for one in base], "MB")
        rows.append([kind, NAMES[where], cpu, peak, str(crawls[0]["dropped"])])
    columns = ["forbidden links", "", "processor time", "peak memory", "dropped"]
    table(f"forbidden: medians of {rounds} rounds", columns, rows)


def _measure(port: int, kind: str, where: str) -> dict[str, Any]:
    command = [sys.executable, "-m", __name__, str(port), kind, where]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=_ROOT)
    if done.returncode != 0:
        raise RuntimeError(f"the crawl failed:\n{done.stderr[-2000:]}")
    measured: dict[str, Any] = json.loads(done.stdout)
    assert measured["pages"] == PAGES, "every page comes"
    return measured


def crawl(port: str, kind: str, where: str) -> None:
    """Crawl, and print the measured values."""
    from scrapy import Request, Spider
    from scrapy.crawler import CrawlerProcess

    from scrapy_norobots import NoRobotsMiddleware

    class Subclass(NoRobotsMiddleware):
        pass

    class Pages(Spider):
        name = "pages"
        start_urls = [f"http://127.0.0.1:{port}/{kind}/0"]  # noqa: RUF012  # as users write it
        pages = 0

        def parse(self, response: Any) -> Iterator[Request]:
            type(self).pages += 1
            for link in response.css("a::attr(href)").getall():
                _, folder, number = link.split("/")
                if folder == "staff" or int(number) < PAGES:
                    yield Request(response.urljoin(link))

    process = CrawlerProcess(
        {
            "LOG_LEVEL": "CRITICAL",
            "TELNETCONSOLE_ENABLED": False,
            "REMOTE_CONTROL_ENABLED": False,
            "ADDONS": {"scrapy_norobots.Addon": 500},
            "DOWNLOADER_MIDDLEWARES": {Subclass: 100} if where == "downloader" else {},
        }
    )
    crawler = process.create_crawler(Pages)
    process.crawl(crawler)
    cpu = time.process_time()
    process.start()
    assert crawler.stats is not None
    measured = {
        "cpu": time.process_time() - cpu,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "pages": Pages.pages,
        "dropped": crawler.stats.get_value("robotstxt/forbidden"),
    }
    json.dump(measured, sys.stdout)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        crawl(*sys.argv[1:])
    else:
        asyncio.run(serve(LinksToForbidden))
