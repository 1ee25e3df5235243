"""`Source`: the scheduler that the user has chosen, and what is known of its content."""

from __future__ import annotations

import math
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import pytest
from scrapy import Request, Spider
from scrapy.core.scheduler import Scheduler
from scrapy.utils.test import get_crawler

from scrapy_norobots.waiting.source import FILTERED, Source

if TYPE_CHECKING:
    from typing_extensions import Self


class DerivedScheduler(Scheduler):
    """A scheduler that is derived from Scrapy's."""


# Requests that go back


class Opened:
    """A scheduler, open, and the source around it."""

    def __init__(self, **settings: Any) -> None:
        plain = {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue"}
        self.crawler = get_crawler(Spider, {**plain, **settings})
        self.scheduler = DerivedScheduler.from_crawler(self.crawler)
        spider = Spider("pages")
        spider.crawler = self.crawler
        self.scheduler.open(spider)
        self.source = Source(self.crawler, self.scheduler)

    def stats(self) -> dict[str, int]:
        assert self.crawler.stats is not None
        start = "scheduler/"
        counts = self.crawler.stats.get_stats().items()
        return {name.removeprefix(start): n for name, n in counts if name.startswith(start)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.scheduler.close("finished")

    def take_all(self) -> list[Request]:
        return list(iter(self.source.take, None))


def requests(count: int, *, is_start: bool = False) -> list[Request]:
    meta = {"is_start_request": True} if is_start else {}
    kind = "start" if is_start else "page"
    return [Request(f"http://town.example/{kind}/{number}", meta=dict(meta)) for number in range(count)]


FIFO_IN_MEMORY = {"SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue"}
FIFO = {**FIFO_IN_MEMORY, "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue"}
NO_START_QUEUE = {"SCHEDULER_START_MEMORY_QUEUE": None, "SCHEDULER_START_DISK_QUEUE": None}


@pytest.mark.parametrize("has_job", [False, True], ids=["in memory", "with JOBDIR"])
@pytest.mark.parametrize("is_start", [False, True], ids=["pages", "start requests"])
@pytest.mark.parametrize(
    ("queue", "taken"),
    [(NO_START_QUEUE, 1), (NO_START_QUEUE, 3), ({}, 8), (NO_START_QUEUE, 8), (FIFO, 8), (FIFO_IN_MEMORY, 8)],
    ids=["1", "3", "all", "without a start queue", "first in, first out", "first in, first out in memory"],
)
def test_requests_that_go_back_come_in_the_same_order_again(
    queue: dict[str, Any], taken: int, is_start: bool, has_job: bool, tmp_path: Path
) -> None:
    """A queue that is first in, first out, keeps the order only if all requests were taken."""
    jobs = [str(tmp_path / name) if has_job else None for name in ("one", "other")]
    with Opened(JOBDIR=jobs[0], **queue) as expected, Opened(JOBDIR=jobs[1], **queue) as opened:
        for source in (expected.source, opened.source):
            for request in requests(8, is_start=is_start):
                source.add(request)
        before = [request.url for request in expected.take_all()]
        parked = list(islice(iter(opened.source.take, None), taken))
        opened.source.give_back(opened.source.in_order(parked))
        assert len(before) == 8
        assert [request.url for request in opened.take_all()] == before


def test_a_scheduler_of_another_kind_keeps_the_order_and_has_no_stats() -> None:
    opened = Opened()
    other = MagicMock(spec=["enqueue_request", "next_request"])
    source = Source(opened.crawler, other)
    first, second = requests(2)
    assert not source.is_scrapys  # it may share its queue with other processes
    source.give_back(source.in_order([first, second]))
    assert [call.args for call in other.enqueue_request.call_args_list] == [(first,), (second,)]
    assert opened.stats() == {}


def test_a_request_that_the_scheduler_does_not_take_back_keeps_out_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    other = MagicMock(spec=["enqueue_request", "next_request"])
    other.enqueue_request.side_effect = [TypeError("cannot pickle this"), True]
    Source(Opened().crawler, other).give_back(requests(2))
    assert other.enqueue_request.call_count == 2
    assert "http://town.example/page/0" in caplog.text
    assert "cannot pickle this" in caplog.text


def test_a_request_that_a_scheduler_only_seems_to_take_back_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    refusing = MagicMock(spec=["enqueue_request", "next_request"], **{"enqueue_request.return_value": False})
    Source(Opened().crawler, refusing).give_back(requests(25))
    assert len(caplog.records) == 20  # the others have the level DEBUG
    with Opened(JOBDIR=str(tmp_path)) as opened:
        opened.source.give_back([Request("http://town.example/session", meta={"session": Lock()})])
    for name in ("page/0", "session"):
        assert f"does not take back <GET http://town.example/{name}>, which is lost" in caplog.text


@pytest.mark.parametrize("dont_filter", [False, True])
def test_the_duplicate_filter_lets_requests_go_back(dont_filter: bool) -> None:
    opened = Opened()
    request = Request("http://town.example/", dont_filter=dont_filter)
    assert opened.source.add(request)
    taken = opened.source.take()
    assert taken is not None
    opened.source.give_back([taken])
    again = opened.source.take()
    assert again is not None
    # Filters apply to the requests that are derived from it, such as redirects, as before.
    assert again.dont_filter is dont_filter
    assert FILTERED not in again.meta


# What is known of its content


def test_a_request_that_came_from_elsewhere_can_be_taken() -> None:
    """Such as one of an earlier run, or one that another process has put into a shared queue."""
    opened = Opened()
    opened.scheduler.enqueue_request(Request("http://town.example/", priority=2))
    assert len(opened.take_all()) == 1
    assert opened.source.highest_priority == -math.inf


def test_a_priority_is_known_until_its_last_request_is_taken() -> None:
    opened = Opened()
    assert all(map(opened.source.add, requests(2)))
    opened.source.take()
    assert opened.source.highest_priority == 0
