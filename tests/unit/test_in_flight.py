"""`BodiesInFlight`: all bodies together respect the limit, and larger ones are stopped."""

from __future__ import annotations

from contextlib import ExitStack

from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import StopDownload

from scrapy_norobots.load.body import BodiesInFlight


class Downloads:
    """Sends the signal `bytes_received`, as download handlers do."""

    def __init__(self, bytes_max: int) -> None:
        self.crawler = Crawler(Spider)
        self.bodies = BodiesInFlight(self.crawler.signals, bytes_max)
        self._ends = ExitStack()
        self.requests: list[Request] = []

    def start(self) -> Request:
        meta = self._ends.enter_context(self.bodies.counted())
        self.requests.append(Request("http://town.example/robots.txt", meta=meta))
        return self.requests[-1]

    def receive(self, request: Request, size: int) -> Exception | None:
        ((_, result),) = self.crawler.signals.send_catch_log(
            signals.bytes_received, data=bytes(size), request=request, spider=None
        )
        return getattr(result, "value", None)

    def end(self) -> None:
        self._ends.close()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 500)), max_size=60))
def test_the_limit_is_never_exceeded(chunks: list[tuple[int, int]]) -> None:
    downloads = Downloads(1000)
    requests = [downloads.start() for _ in range(10)]
    sizes = dict.fromkeys(range(10), 0)
    for number, size in chunks:
        others = sum(sizes.values()) - sizes[number]
        is_given_up = downloads.receive(requests[number], size) is not None
        sizes[number] += size
        # The free room must be at least its size.
        assert is_given_up == (sizes[number] > 1000 - others - sizes[number])
        if is_given_up:
            sizes[number] = 0
        assert sum(sizes.values()) <= 1000
    downloads.end()


def test_bytes_of_an_earlier_try_are_not_counted() -> None:
    downloads = Downloads(1000)
    request = downloads.start()
    for _ in range(3):
        assert downloads.receive(request, 400) is None
        request = request.copy()
    downloads.end()


def test_a_download_without_a_waiter_is_stopped() -> None:
    downloads = Downloads(1000)
    request = downloads.start()
    downloads.bodies.stop_late_ones()
    downloads.end()
    assert isinstance(downloads.receive(request, 1), StopDownload)
