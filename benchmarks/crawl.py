"""Measure one crawl in a separate process; `measure` starts it, with the hosts of `benchmarks.server`.

Handlers: ``none`` (no robots.txt handling), ``scrapy`` (Scrapy's own middleware), ``norobots`` (this
package) and, if `comparing_with` adds it, ``before`` (this package in another checkout).
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from benchmarks.report import progress

HANDLERS: dict[str, dict[str, Any]] = {
    "none": {"ROBOTSTXT_OBEY": False},
    "scrapy": {"ROBOTSTXT_OBEY": True},
    "norobots": {"ADDONS": {"scrapy_norobots.Addon": 500}},
}
NAMES = {"none": "no robots.txt handling", "scrapy": "Scrapy's own middleware", "norobots": "scrapy-norobots"}
_ROOT = Path(__file__).parent.parent
# The directory from which a handler's crawl imports this package.
ROOTS = dict.fromkeys(HANDLERS, _ROOT)


@dataclass(frozen=True)
class Measured:
    """The results of one crawl.

    `arrivals` are the seconds from the start of the crawl to each page of a healthy host, in order; `cpu` is
    processor seconds without imports; `peak` is the highest memory use of the process, in bytes.
    """

    arrivals: list[float]
    seconds: float
    cpu: float
    peak: int
    stats: dict[str, Any]
    shortest: float | None = None

    @property
    def median(self) -> float:
        """The time until half of the healthy hosts' pages had arrived, in seconds."""
        return self.arrivals[len(self.arrivals) // 2]


@contextmanager
def serving(hosts: str = "benchmarks.server", folder: Path | None = None) -> Iterator[int]:
    """Run the hosts of a module, with robots.txt files from a directory; yields their port."""
    command = [sys.executable, "-m", hosts, *([] if folder is None else [str(folder.resolve())])]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.stdin.close()


@contextmanager
def comparing_with(folder: Path) -> Iterator[None]:
    """Add the handler ``before``: the package in another checkout, such as the one of the last release.

    Its crawls import this checkout's benchmarks together with that package.
    """
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "scrapy_norobots").symlink_to((folder / "scrapy_norobots").resolve(strict=True))
        (root / "benchmarks").symlink_to(_ROOT / "benchmarks")
        HANDLERS["before"] = HANDLERS["norobots"]
        NAMES["before"] = "scrapy-norobots before"
        ROOTS["before"] = root
        yield
        del HANDLERS["before"], NAMES["before"], ROOTS["before"]


def measure(
    handler: str,
    urls: list[str],
    settings: dict[str, Any],
    timeout: float = 1200,
    healthy: str = "",
    *,
    follows: bool = False,
) -> Measured:
    """Crawl URLs with a handler and measure it; only pages with `healthy` in their URLs are timed.

    If it `follows` links, the first page has them to all others; else all are start URLs.
    """
    job = {
        "urls": urls,
        "settings": {**settings, **HANDLERS[handler]},
        "healthy": healthy,
        "starts": 1 if follows else len(urls),
    }
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.crawl"],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        cwd=ROOTS[handler],
    )
    if done.returncode != 0:
        raise RuntimeError(f"the crawl with {handler!r} failed:\n{done.stderr[-2000:]}")
    return Measured(**json.loads(done.stdout))


def compare(paths: list[str], settings: dict[str, Any], rounds: int) -> dict[str, list[Measured]]:
    """Crawl pages with each handler in turn, round by round; a path is an address, ``:{port}`` and a target.

    Each result includes the shortest interval between two requests to one of the slow hosts.
    """
    seen: dict[str, list[Measured]] = {handler: [] for handler in HANDLERS}
    with serving() as port:
        urls = [f"http://{path.format(port=port)}" for path in paths]
        for number in range(1, rounds + 1):
            for handler in HANDLERS:
                progress(f"round {number} of {rounds}: {NAMES[handler]}")
                measured = measure(handler, urls, settings)
                assert len(measured.arrivals) == len(urls), "every page comes"
                with urlopen(f"http://127.0.0.1:{port}/shortest") as answer:
                    seen[handler].append(replace(measured, shortest=json.load(answer)))
    return seen


def main() -> None:
    """Run the crawl of the job on standard input, and write the results to standard output."""
    from scrapy import Request, Spider
    from scrapy.crawler import CrawlerProcess

    job = json.load(sys.stdin)

    class Pages(Spider):
        name = "pages"
        start_urls = job["urls"][: job["starts"]]

        def parse(self, response: Any) -> Iterator[Request]:
            # The hosts at 127.2 are the dead ones.
            if "//127.2." not in response.url and job["healthy"] in response.url:
                arrivals.append(time.perf_counter() - start)
            if response.url == job["urls"][0]:
                yield from map(Request, job["urls"][job["starts"] :])

    arrivals: list[float] = []
    process = CrawlerProcess(
        {
            "LOG_LEVEL": "CRITICAL",
            "TELNETCONSOLE_ENABLED": False,
            "REMOTE_CONTROL_ENABLED": False,
            "NOROBOTS_RETRY_CLOSED": 0,  # otherwise, a crawl with dead hosts ends minutes later
            **job["settings"],
        }
    )
    crawler = process.create_crawler(Pages)
    process.crawl(crawler)
    start, cpu = time.perf_counter(), time.process_time()
    process.start()
    assert crawler.stats is not None
    json.dump(
        {
            "arrivals": arrivals,
            "seconds": time.perf_counter() - start,
            "cpu": time.process_time() - cpu,
            "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "stats": crawler.stats.get_stats(),
        },
        sys.stdout,
        default=str,
    )


if __name__ == "__main__":
    main()
