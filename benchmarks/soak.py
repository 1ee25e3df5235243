"""``soak``: a long crawl of hosts that change, fail and die, with a Redis that is killed repeatedly.

Every feature is on. Expected at the end: memory has not grown, no request is held or waits, nothing was
requested that is always forbidden, no item came of a page that must not be indexed, and the audit of the
evidence agrees with every decision. ``python -m benchmarks soak --minutes 60``.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.report import progress, table
from benchmarks.server import serve
from tests.helpers.running.redisserver import RedisServer

_ROOT = Path(__file__).parent.parent
HOSTS = 300
# How many requests are always in progress: when one ends, the next one starts. Most wait for closed hosts.
AT_ONCE = 60
SETTINGS: dict[str, Any] = {
    "ADDONS": {"scrapy_norobots.Addon": 500},
    "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
    "LOG_LEVEL": "WARNING",
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "RETRY_ENABLED": False,
    "DOWNLOAD_TIMEOUT": 10,
    "NOROBOTS_TTL": 20,
    "NOROBOTS_TTL_MIN": 0,
    "NOROBOTS_ERROR_TTL": 5,
    "NOROBOTS_STALE_TTL": 60,
    "NOROBOTS_TIMEOUT": 3,
    "NOROBOTS_MEMORY_MAX": 4 * 1024**2,  # about 2,000 origins
    "NOROBOTS_RETRY_CLOSED": 2,
    "NOROBOTS_ALSO_OBEY": ["rfc9309"],
    "NOROBOTS_ALSO_ROBOTS": ["GPTBot"],
    "NOROBOTS_CRAWL_DELAY_MAX": 0.5,
    "NOROBOTS_CRAWL_DELAY_SHARED": True,
    "NOROBOTS_META": True,
    "NOROBOTS_USAGE": True,
    "NOROBOTS_PURPOSES": ["search"],
}
# Every host always forbids this.
NEVER = "/never/"
_NO_SEARCH = "norobots/forbidden_by/UsageStatements"
_RESTART, _DOWN = 300, 15  # seconds between two kills of Redis, and until it is started again


class Town(asyncio.Protocol):
    """The hosts: 127.4.x.x are crawled repeatedly, 127.5.x.x once. Their behaviour changes every minute."""

    asked = pages = forbidden = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set the host from the address of the connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._host = transport.get_extra_info("sockname")[0]

    def data_received(self, data: bytes) -> None:
        """Respond to one request after a while, and close the connection."""
        target = data.split(b" ", 2)[1].decode()
        if target == "/robots.txt":
            Town.asked += 1
            self._robots()
            return
        Town.pages += 1
        Town.forbidden += target.startswith(NEVER)
        page = b'<html><meta name="robots" content="noindex">' if target.startswith("/c/") else b"<html>"
        asyncio.get_running_loop().call_later(0.1, self._answer, "200 OK", page)

    def _robots(self) -> None:
        # The behaviour for a minute, which starts at another time for each host.
        mood = random.Random(f"{self._host} {(time.time() + hash(self._host) % 60) // 60}").random()
        if mood < 0.08:
            return  # no response
        if mood < 0.16:
            self._transport.abort()
        elif mood < 0.24:
            self._answer("503 Service Unavailable", b"")
        elif mood < 0.30:
            self._answer("403 Forbidden", b"")
        else:
            paths = NEVER, f"/{'ab'[mood < 0.65]}/"
            body = "User-agent: *\n" + "".join(f"Disallow: {path}\n" for path in paths)
            body += "Crawl-delay: 0.4\n" * (mood < 0.5)
            body += f"Content-Signal: ai-train=no, search={'no' if mood > 0.9 else 'yes'}\n"
            self._answer("200 OK", body.encode())

    def _answer(self, status: str, body: bytes) -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self._transport.write(head.encode() + body)
        self._transport.close()


async def serve_town() -> None:
    """Run the hosts until standard input ends; then print their counts of requests."""
    await serve(Town)
    print(json.dumps({"asked": Town.asked, "pages": Town.pages, "forbidden": Town.forbidden}), flush=True)


def crawl(port: int, minutes: float, store: str, folder: str) -> None:
    """Run the crawl, and print its results."""
    from scrapy import Request, Spider
    from scrapy.crawler import CrawlerProcess

    from scrapy_norobots import NoRobotsMiddleware

    chance = random.Random(1994)
    end = time.monotonic() + 60 * minutes
    memory: list[tuple[float, float]] = []

    class Walker(Spider):
        name = "soak"
        came = dropped = new = 0

        async def start(self) -> Any:
            for _ in range(AT_ONCE):
                yield self.next_request()

        def next_request(self) -> Request:
            if chance.random() < 0.1:
                Walker.new += 1
                host = f"127.5.{Walker.new // 250 % 250}.{Walker.new % 250 + 1}"
            else:
                number = chance.randrange(HOSTS)
                host = f"127.4.{number // 250}.{number % 250 + 1}"
            path = chance.choice(["/a/", "/b/", "/c/", NEVER]) + str(chance.randrange(1000))
            return Request(f"http://{host}:{port}{path}", dont_filter=True, errback=self.failed)

        def parse(self, response: Any) -> Any:
            Walker.came += 1
            yield from [{"url": response.url}] * ("/c/" in response.url)
            yield from self.go_on()

        def failed(self, failure: Any) -> Any:
            Walker.dropped += 1
            yield from self.go_on()

        def go_on(self) -> Any:
            if not memory or time.monotonic() - memory[-1][0] >= 15:
                memory.append((time.monotonic(), resident()))
            if time.monotonic() < end:
                yield self.next_request()

    files = {"NOROBOTS_EVIDENCE": f"{folder}/evidence", "NOROBOTS_REPORT": f"{folder}/report.html"}
    process = CrawlerProcess({**SETTINGS, **files, "NOROBOTS_STORE": store})
    crawler = process.create_crawler(Walker)
    process.crawl(crawler)
    process.start()
    engine: Any = crawler.engine
    [middleware] = [
        one for one in engine.downloader.middleware.middlewares if isinstance(one, NoRobotsMiddleware)
    ]
    assert crawler.stats is not None
    json.dump(
        {
            "came": Walker.came,
            "dropped": Walker.dropped,
            "origins": HOSTS + Walker.new,
            "held": len(middleware.loader.loads) + len(getattr(middleware._room, "_parked", ())),
            "memory": memory,
            "stats": crawler.stats.get_stats(),
        },
        sys.stdout,
        default=str,
    )


def resident() -> float:
    """Return the current memory of this process, in MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1000


def run(minutes: float) -> None:
    """Crawl, restart Redis repeatedly, and print the results."""
    command = [sys.executable, "-m", "benchmarks.soak"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "text": True, "cwd": _ROOT}
    with tempfile.TemporaryDirectory() as folder, RedisServer(Path(folder)) as redis:
        town = subprocess.Popen([*command, "serve"], stdin=subprocess.PIPE, **pipes)
        assert town.stdin is not None
        assert town.stdout is not None
        port = town.stdout.readline().strip()
        log = Path(folder) / "log"
        with log.open("w") as errors:
            job = [port, str(minutes), redis.url, folder]
            walker = subprocess.Popen([*command, *job], stderr=errors, **pipes)
            restarts = _watch(walker, redis)
        assert walker.stdout is not None
        seen = json.loads(walker.stdout.read())
        town.stdin.close()
        site = json.loads(town.stdout.read())
        lines = log.read_text().splitlines()
        progress("audit")
        audit = [sys.executable, "-m", "scrapy", "robots-audit", f"{folder}/evidence"]
        audited = subprocess.run(audit, capture_output=True, text=True, check=False, cwd=_ROOT)
    _say(minutes, seen, site, restarts, lines)
    print(f"robots-audit: {audited.stdout}{audited.stderr}exit status {audited.returncode}")


def _watch(walker: subprocess.Popen[str], redis: RedisServer) -> int:
    restarts = 0
    start = time.monotonic()
    while True:
        try:
            walker.wait(timeout=_RESTART)
        except subprocess.TimeoutExpired:
            redis.stop()
            time.sleep(_DOWN)
            redis.start()
            restarts += 1
            progress(f"{(time.monotonic() - start) / 60:.0f} minutes; Redis killed {restarts} times")
        else:
            return restarts


def _say(minutes: float, seen: dict[str, Any], site: dict[str, int], restarts: int, lines: list[str]) -> None:
    used = [megabytes for _, megabytes in seen["memory"]]
    sixth = max(1, len(used) // 6)
    stats = seen["stats"]
    rows = {
        "pages": f"{seen['came']:,}",
        "requests dropped": f"{seen['dropped']:,}",
        "origins": f"{seen['origins']:,}",
        "downloads of a robots.txt": f"{stats['robotstxt/request_count']:,}",
        "of which in vain": f"{sum(v for k, v in stats.items() if 'robotstxt/exception' in k):,}",
        "kills of Redis": f"{restarts}; warnings that it failed "
        f"{sum('the crawl continues without the store' in line for line in lines)}, "
        f"that it works again {sum('works again' in line for line in lines)}",
        "requests for what is always forbidden": str(site["forbidden"]),
        "items of pages that must not be indexed": str(stats.get("item_scraped_count", 0)),
        "items dropped for that reason": f"{stats['norobots/meta/noindex']:,}",
        "requests dropped because their site does not want to be searched": f"{stats[_NO_SEARCH]:,}",
        "robots.txt files with a Crawl-delay": f"{stats['norobots/crawl_delay/kept']:,}",
        "memory": f"{median(used[sixth : 2 * sixth]):.1f} MB in the second sixth, "
        f"{median(used[-sixth:]):.1f} MB in the last, {max(used):.1f} MB at most",
        "requests that waited for closed hosts": f"{stats['norobots/retry/waited']:,}; "
        f"{stats['norobots/retry/came_back']:,} came back, {stats['norobots/retry/given_up']:,} given up",
        "held or waiting at the end": f"{seen['held'] + stats.get('norobots/retry/left', 0)} requests",
        "errors in the log": str(sum(" ERROR: " in line or "Traceback" in line for line in lines)),
    }
    table(f"soak: {minutes:g} minutes", ["", ""], [[name, text] for name, text in rows.items()])


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(serve_town())
    else:
        crawl(int(sys.argv[1]), float(sys.argv[2]), *sys.argv[3:])
