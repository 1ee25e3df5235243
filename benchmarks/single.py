"""``single``: what the plugin costs where there is nothing to wait for: one host, 5,000 pages."""

from __future__ import annotations

from benchmarks.broad import NAMES
from benchmarks.crawl import HANDLERS, Measured, measure, serving
from benchmarks.report import progress, table, with_ratio

PAGES = 5_000
SETTINGS = {"CONCURRENT_REQUESTS": 16, "CONCURRENT_REQUESTS_PER_DOMAIN": 16}


def run(rounds: int) -> None:
    """Measure and print the table."""
    seen: dict[str, list[Measured]] = {handler: [] for handler in HANDLERS}
    with serving() as port:
        urls = [f"http://127.1.0.1:{port}/{page}" for page in range(PAGES)]
        for number in range(1, rounds + 1):
            for handler in HANDLERS:
                progress(f"round {number} of {rounds}: {NAMES[handler]}")
                measured = measure(handler, urls, SETTINGS)
                assert len(measured.arrivals) == PAGES
                seen[handler].append(measured)
    rows = []
    for handler, all_measured in seen.items():
        base = seen["scrapy"]
        cpu = with_ratio(
            [one.cpu / PAGES * 1e6 for one in all_measured], [one.cpu / PAGES * 1e6 for one in base], "µs"
        )
        memory = with_ratio([one.peak / 1e6 for one in all_measured], [one.peak / 1e6 for one in base], "MB")
        rows.append([NAMES[handler], cpu, memory])
    columns = ["handler", "processor time a page", "peak memory"]
    table(f"single: medians of {rounds} rounds, ratios to Scrapy's own middleware", columns, rows)
