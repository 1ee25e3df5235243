"""``cost``: the processor time of a page whose host answers at once.

Crawls with 16 concurrent requests: one host of 1,500 pages, whose first page links to the others; 200 hosts
of 10 pages; and these with 40 and 200 hosts of 3 pages whose robots.txt never answers, for which Scrapy's own
middleware would wait. ``files`` have 50 to 500 rules, from a directory or generated; the others have two.
Ratios are medians over the rounds, each within one round. ``with rfc9309`` has both readings.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import broad
from benchmarks.crawl import HANDLERS, NAMES, Measured, measure, serving
from benchmarks.report import progress, table

PAGES = 1_500
SETTINGS: Mapping[str, Any] = {**broad.SETTINGS, "CONCURRENT_REQUESTS_PER_DOMAIN": 16}
BOTH = "with rfc9309"


def crawls(port: int) -> dict[str, list[str]]:
    """Return the URLs of each crawl."""
    urls = {}
    for name, network in (("", "127.1"), (", files", "127.8")):
        urls[f"one host{name}"] = [f"http://{network}.0.1:{port}/{page}" for page in range(PAGES)]
        urls[f"200 hosts, 0 dead{name}"] = broad.urls(port, 0, network)
    for dead in (40, 200):
        urls[f"200 hosts, {dead} dead"] = broad.urls(port, dead, broad.ANSWERS["immediately"])
    return urls


def run(rounds: int, folder: Path | None = None) -> None:
    """Measure and print the table."""
    handlers = {handler: (handler, dict(SETTINGS)) for handler in HANDLERS}
    handlers[BOTH] = ("norobots", {**SETTINGS, "NOROBOTS_ALSO_OBEY": ["rfc9309"]})
    seen: dict[tuple[str, str], list[Measured]] = {}
    with serving(folder=folder) as port:
        for number in range(1, rounds + 1):
            for crawl, urls in crawls(port).items():
                for name, (handler, settings) in handlers.items():
                    if name == "scrapy" and not crawl.startswith(("one", "200 hosts, 0")):
                        continue
                    progress(f"round {number} of {rounds}: {crawl}, {NAMES.get(name, name)}")
                    seen.setdefault((crawl, name), []).append(
                        measure(handler, urls, settings, follows=crawl.startswith("one"))
                    )
    rows = []
    for (crawl, name), all_measured in seen.items():
        own = seen.get((crawl, "scrapy"), seen["200 hosts, 0 dead", "scrapy"])
        none = seen[crawl, "none"]
        assert {len(one.arrivals) for one in all_measured} == {len(none[0].arrivals)}, "every page comes"
        pairs = list(zip(all_measured, own, none, strict=True))
        cpu = median(one.cpu / len(one.arrivals) for one in all_measured) * 1e6
        ratio = median(one.cpu / other.cpu for one, other, _ in pairs)
        page = median(one.median / other.median for one, _, other in pairs)
        rows.append([crawl, NAMES.get(name, name), f"{cpu:,.0f} µs", f"{ratio:.2f}", f"{page:.2f}"])
    columns = ["crawl", "handler", "processor time a page", "of Scrapy's own", "median page, of no handling"]
    table(f"cost: medians of {rounds} rounds", columns, rows)
