"""``scale``: new origins a second with a store in Redis, by 1, 2 and 4 processes, without a network.

The loader and the store are those of a crawl. Only the downloads are made up: of the origins, 60 % have a
file, 25 % answer 404, and 15 % are dead. Then each process loads the origins of the next process, which are
in the store. ``SCALE_ORIGINS`` in the environment sets the number of origins (100,000).
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

from benchmarks.files import robots_txts
from benchmarks.report import progress, table
from tests.helpers.running.redisserver import RedisServer

ORIGINS = int(os.environ.get("SCALE_ORIGINS", "100000"))
PROCESSES = (1, 2, 4)
AT_ONCE = 500  # as many downloads as NOROBOTS_CONCURRENT_FETCHES allows
_ROOT = Path(__file__).parent.parent

# The share of origins, the status (None: dead), and the seconds of a download, from and to.
OUTCOMES: tuple[tuple[float, int | None, float, float], ...] = (
    (0.60, 200, 0.02, 0.4),
    (0.25, 404, 0.02, 0.4),
    (0.15, None, 0.5, 0.5),  # the real time to a timeout would only measure the timeout
)


def crawl(processes: int) -> dict[str, float]:
    """Load all origins twice with a number of processes, and return their combined results."""
    import redis

    with tempfile.TemporaryDirectory() as folder, RedisServer(Path(folder)) as server:
        with redis.Redis.from_url(server.url) as client:
            before = client.info("memory")["used_memory"]
            workers = [
                subprocess.Popen(
                    [sys.executable, "-m", "benchmarks.scale"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    cwd=_ROOT,
                )
                for _ in range(processes)
            ]
            for number, worker in enumerate(workers):
                assert worker.stdin is not None
                worker.stdin.write(json.dumps([server.url, number, processes]) + "\n")
                worker.stdin.flush()
            found = {}
            for phase in ("new", "known"):
                calls = calls_of(client)
                lines = [json.loads(worker.stdout.readline()) for worker in workers if worker.stdout]
                found[phase] = ORIGINS / max(line["seconds"] for line in lines)
                found[f"calls, {phase}"] = (calls_of(client) - calls) / ORIGINS
                found["peak"] = max(line["peak"] for line in lines)
                if phase == "new":
                    found["redis"] = client.info("memory")["used_memory"] - before
                for worker in workers:
                    assert worker.stdin is not None
                    worker.stdin.write("\n")
                    worker.stdin.flush()
        for worker in workers:
            assert worker.wait() == 0
    return found


def calls_of(client: Any) -> int:
    """Return how many calls Redis has answered: each look-up and each script has one MGET."""
    return int(client.info("commandstats").get("cmdstat_mget", {}).get("calls", 0))


def run(rounds: int) -> None:
    """Measure and print the table."""
    seen: dict[int, list[dict[str, float]]] = {}
    for number in range(1, rounds + 1):
        for processes in PROCESSES:
            progress(f"round {number} of {rounds}: {processes} processes")
            seen.setdefault(processes, []).append(crawl(processes))
    rows = []
    for processes, found in seen.items():
        middle = {name: median(one[name] for one in found) for name in found[0]}
        rows.append(
            [
                str(processes),
                f"{middle['new']:,.0f}",
                f"{middle['known']:,.0f}",
                f"{middle['calls, new']:.2f}",
                f"{middle['calls, known']:.2f}",
                f"{middle['redis'] / ORIGINS:,.0f} B",
                f"{middle['peak'] / 1e6:,.0f} MB",
            ]
        )
    columns = ["processes", "new a second", "known a second", "calls, new", "calls, known", "Redis", "peak"]
    table(f"scale: {ORIGINS:,} origins; medians of {rounds} rounds", columns, rows, "redis")


async def work(url: str, number: int, processes: int) -> None:
    """Load the origins of one process, and then those of the next one."""
    from scrapy import Request
    from scrapy.utils.test import get_crawler

    from scrapy_norobots.events import Events
    from scrapy_norobots.load.loader import RobotsLoader
    from scrapy_norobots.rules.access import OriginCache
    from scrapy_norobots.rules.snapshot import Snapshot
    from scrapy_norobots.settings import Config
    from scrapy_norobots.standard import Origin

    made = get_crawler(settings_dict={"NOROBOTS_STORE": url, "TWISTED_REACTOR_ENABLED": False})
    crawler: Any = SimpleNamespace(
        settings=made.settings, stats=made.stats, signals=made.signals, engine=None, spider=None
    )
    config = Config.from_settings(crawler.settings)
    loader = RobotsLoader(crawler, config, Events())
    files = robots_txts()
    headers = {"content-type": "text/plain", "date": "Tue, 14 Nov 2023 22:13:20 GMT", "etag": '"5f3a-60a1"'}

    class Network:
        """Takes the place of the loader's `Fetcher`."""

        async def fetch(self, origin: Origin, page: Request, previous: Snapshot | None) -> Snapshot:
            some = random.Random(origin.host)
            _, status, least, most = some.choices(OUTCOMES, [share for share, *_ in OUTCOMES])[0]
            await asyncio.sleep(some.uniform(least, most))
            if status is None:
                return Snapshot(origin, origin.robots_url, time.time(), error="TimeoutError: ")
            body = some.choice(files) if status == 200 else b""
            return Snapshot(origin, origin.robots_url, time.time(), status, headers=headers, body=body)

    loader._fetcher = Network()  # type: ignore[assignment]
    for share in (number, (number + 1) % processes):
        loader.origins = OriginCache(memory_max=config.memory_max)
        numbers = iter(range(share, ORIGINS, processes))

        async def load(numbers: Any = numbers) -> None:
            for one in numbers:
                origin = Origin("https", f"www.town-{one}.example", 443)
                await loader.load(origin, Request(f"{origin}/"), "FooBot")

        start = time.perf_counter()
        await asyncio.gather(*(load() for _ in range(AT_ONCE)))
        peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps({"seconds": time.perf_counter() - start, "peak": peak}), flush=True)
        await asyncio.to_thread(sys.stdin.readline)
    assert loader._store is not None
    await loader._store.close()
    assert not crawler.stats.get_value("norobots/store/failures")


if __name__ == "__main__":
    asyncio.run(work(*json.loads(sys.stdin.readline())))
