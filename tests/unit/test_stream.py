"""`Stream`: the limits of its window, and failures."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import MagicMock

import pytest
from scrapy import Request
from scrapy.settings import Settings

from scrapy_norobots.commands import stream
from scrapy_norobots.commands.answerer import Answerer
from scrapy_norobots.commands.base import CommandError
from scrapy_norobots.commands.progress import Progress
from scrapy_norobots.commands.sources import Found
from scrapy_norobots.commands.stream import Stream
from scrapy_norobots.rules.access import Judge, StatusPolicy
from scrapy_norobots.rules.freshness import Freshness
from scrapy_norobots.rules.snapshot import Snapshot
from scrapy_norobots.standard import Origin, RobotsTxt
from tests.unit.test_circuit_breaker import can_wait_for_deferreds

if not can_wait_for_deferreds():
    pytest.skip("this version of Scrapy awaits no Deferred where no reactor runs", allow_module_level=True)

WINDOW = 50
SLOW = "http://slow.example/"


class FakeReader:
    """Reads `wanted` URLs, and counts them; the first is of the slow site."""

    def __init__(self, wanted: int, sites: int) -> None:
        self.wanted = wanted
        self.sites = sites
        self.read = 0

    def batches(self) -> Iterator[list[str]]:
        yield [SLOW]
        for start in range(1, self.wanted, 10):
            self.read = start + 10
            yield [f"http://{n % self.sites}.example/{n}" for n in range(start, start + 10)]

    def fraction(self, answered: int) -> None:
        return None


class FakeSource:
    """Loads sites one after another, and the slow one when `may_load_slow` is set."""

    def __init__(self) -> None:
        self.may_load_slow = asyncio.Event()
        self.error: Exception | None = None
        self.known: dict[Origin, Found] = {}
        self.loads: list[str] = []
        freshness = Freshness(ttl_min=0, ttl=60, error_ttl=60, stale_ttl=60)
        judge = Judge(StatusPolicy.of("allow"), freshness, RobotsTxt)
        origin = Origin("http", "town.example", 80)
        self.found = Found(judge.judge(Snapshot(origin, origin.robots_url, 0, 200, body=b"")))

    def get(self, origin: Origin) -> Found | None:
        return self.known.get(origin)

    async def load(self, origin: Origin, request: Request) -> Found | None:
        self.loads.append(origin.host)
        if origin.host == "slow.example":
            await self.may_load_slow.wait()
        if self.error is not None:
            raise self.error
        self.known[origin] = self.found
        return self.found


class Check:
    """A stream with its reader, its source and its output."""

    def __init__(self, wanted: int, sites: int = 7, *, robots: int = 1) -> None:
        self.reader = FakeReader(wanted, sites)
        self.source = FakeSource()
        self.written: list[str] = []
        crawler = MagicMock(settings=Settings({"CONCURRENT_REQUESTS": 4}), crawling=True)
        robot_names = [f"Bot{n}x" for n in range(robots)]
        self.stream = Stream(
            crawler,
            self.reader,  # type: ignore[arg-type]
            self.source,
            Answerer(robot_names, as_json=False),
            self.written.extend,
            Progress(is_wanted=False),
            ThreadPoolExecutor(1),
        )

    async def until_full(self) -> None:
        while not self.stream._is_full():
            await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
def small_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "WINDOW", WINDOW)


@pytest.mark.parametrize(("robots", "count"), [(1, 2_000), (5, 2_000), (80, 200)])
def test_no_more_is_read_than_the_window_holds(robots: int, count: int) -> None:
    async def work() -> None:
        check = Check(count, sites=3, robots=robots)
        running = asyncio.ensure_future(check.stream.run())
        await check.until_full()
        assert check.written == []
        assert len(check.stream._window) == max(WINDOW // robots, 1)
        assert check.reader.read <= WINDOW // robots + 20
        check.source.may_load_slow.set()
        await running
        urls = [re.split(" +", line)[1] for answer in check.written for line in answer.split("\n")[:1]]
        assert urls == [SLOW, *(f"http://{n % 3}.example/{n}" for n in range(1, count + 1))]
        assert sum(answer.count("\n") + 1 for answer in check.written) == (count + 1) * robots

    asyncio.run(work())


def test_all_origins_in_the_window_are_loaded_behind_a_slow_one() -> None:
    async def work() -> None:
        check = Check(1_000, sites=1_000)
        running = asyncio.ensure_future(check.stream.run())
        await check.until_full()
        while len(check.source.loads) < WINDOW:
            await asyncio.sleep(0.01)
        assert check.source.loads[:3] == ["slow.example", "1.example", "2.example"]
        check.source.may_load_slow.set()
        await running
        assert len(check.written) == 1_001

    asyncio.run(work())


def test_long_answers_fill_the_window_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "_WINDOW_SIZE", 1000)

    async def work() -> None:
        check = Check(1000)
        running = asyncio.ensure_future(check.stream.run())
        await check.until_full()
        assert len(check.stream._window) < 20
        check.source.may_load_slow.set()
        await running
        assert len(check.written) == 1001

    asyncio.run(work())


@pytest.mark.parametrize("error", [CommandError("the store failed"), RuntimeError("a bug")])
def test_failure_ends_the_stream_while_questions_are_read(error: Exception) -> None:
    async def work() -> None:
        check = Check(1_000)
        check.source.error = error
        with pytest.raises(type(error), match=str(error)):
            await check.stream.run()
        assert check.reader.read < 1_000

    asyncio.run(work())


def test_answers_that_cannot_be_written_end_the_stream() -> None:
    async def work() -> None:
        check = Check(1_000)
        check.source.may_load_slow.set()
        check.stream._write = MagicMock(side_effect=CommandError("standard output: full"))
        with pytest.raises(CommandError, match="full"):
            await check.stream.run()

    asyncio.run(work())


def test_stopped_crawl_answers_the_questions_that_were_read() -> None:
    async def work() -> None:
        check = Check(1_000, sites=1_000)
        running = asyncio.ensure_future(check.stream.run())
        await check.until_full()
        stopping = asyncio.ensure_future(check.stream._stop())
        check.source.may_load_slow.set()
        await stopping
        with pytest.raises(CommandError, match="was stopped before all URLs were read"):
            await running
        assert len(check.written) >= WINDOW
        assert check.written[0].startswith(f"allowed   {SLOW} ")

    asyncio.run(work())
