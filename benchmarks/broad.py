"""``broad``: how much slow hosts delay other hosts.

200 healthy hosts of 10 pages, and 0, 10, 40 and 200 hosts of 3 pages whose robots.txt never answers; 16
concurrent requests, limits of 10 s. Measured: the time until half, and until all, pages of the healthy hosts
have arrived. Without robots.txt handling, the pages of the dead hosts arrive immediately, because only their
robots.txt is dead. There are two crawls: in the first, the healthy hosts answer immediately, so that only the
processor limits the crawl; in the second, they answer after 0.05 to 0.35 s, as on a real network.
"""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path
from statistics import median

from benchmarks.crawl import HANDLERS, NAMES, Measured, measure, serving
from benchmarks.report import progress, table, with_ratio

HEALTHY, PAGES, DEAD_PAGES = 200, 10, 3
DEAD = (0, 10, 40, 200)
# When the healthy hosts answer, and the start of their addresses (`benchmarks.server`).
ANSWERS = {"immediately": "127.1", "after 0.05 to 0.35 s": "127.4"}
DRAWN = "immediately"
SETTINGS = {
    "CONCURRENT_REQUESTS": 16,
    "DOWNLOAD_TIMEOUT": 10,
    "NOROBOTS_TIMEOUT": 10,
    "RETRY_ENABLED": False,
}
PLOT = Path(__file__).parent.parent / "docs" / "broad.svg"


def urls(port: int, dead: int, healthy: str) -> list[str]:
    """Return all pages of all hosts, in a mixed order that is always the same.

    `healthy` is the start of the addresses of the healthy hosts.
    """

    def pages(network: str, hosts: int, count: int) -> list[str]:
        return [
            f"http://{network}.{host // 250}.{host % 250 + 1}:{port}/{page}"
            for host in range(hosts)
            for page in range(count)
        ]

    mixed = pages(healthy, HEALTHY, PAGES) + pages("127.2", dead, DEAD_PAGES)
    random.Random(1994).shuffle(mixed)
    return mixed


def run(rounds: int) -> None:
    """Measure, print the table and draw the plot."""
    seen: dict[tuple[str, int, str], list[Measured]] = {}
    with serving() as port:
        for number in range(1, rounds + 1):
            for answers, dead in product(ANSWERS, DEAD):
                for handler in HANDLERS:
                    progress(f"round {number} of {rounds}: {dead} dead hosts, {NAMES[handler]}")
                    measured = measure(handler, urls(port, dead, ANSWERS[answers]), SETTINGS)
                    assert len(measured.arrivals) == HEALTHY * PAGES, "every page of a healthy host comes"
                    seen.setdefault((answers, dead, handler), []).append(measured)
    rows = []
    for (answers, dead, handler), all_measured in seen.items():
        base = seen[answers, dead, "none"]
        medians = with_ratio([one.median for one in all_measured], [one.median for one in base])
        lasts = with_ratio([one.arrivals[-1] for one in all_measured], [one.arrivals[-1] for one in base])
        cpu = with_ratio([one.cpu for one in all_measured], [one.cpu for one in base])
        rows.append([answers, str(dead), NAMES[handler], medians, lasts, cpu])
    columns = ["answers", "dead", "handler", "median healthy page", "last healthy page", "processor time"]
    table(f"broad: medians of {rounds} rounds", columns, rows)
    draw(
        {
            (dead, handler): median(one.median for one in seen[DRAWN, dead, handler])
            for answers, dead, handler in seen
            if answers == DRAWN
        }
    )


def draw(medians: dict[tuple[int, str], float]) -> None:
    """Draw the median page by the number of dead hosts, with a line for each handler."""
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "broad"  # makes the file reproducible
    figure, axes = plt.subplots(figsize=(7, 4))
    styles = {"none": ("0.5", ":"), "scrapy": ("tab:red", "--"), "norobots": ("tab:blue", "-")}
    for handler, (color, line) in styles.items():
        values = [medians[dead, handler] for dead in DEAD]
        axes.plot(range(len(DEAD)), values, line, color=color, marker="o", label=NAMES[handler])
    axes.set_xticks(range(len(DEAD)), [str(dead) for dead in DEAD])
    axes.set_xlabel("hosts whose robots.txt never answers")
    axes.set_ylabel("seconds until half of the pages arrived")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    axes.legend()
    axes.grid(visible=True, alpha=0.3)
    figure.tight_layout()
    figure.savefig(PLOT, metadata={"Date": None})
    progress(f"drawn: {PLOT}")
