"""``readings``: how often the 1994 standard and RFC 9309 differ on the links of a site."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from protego import Protego

from benchmarks.files import page_urls, robots_txts
from benchmarks.report import progress, table
from scrapy_norobots.standard import RobotsTxt

_ROBOT = "Scrapy"
_URLS_A_FILE = 50


def run(folder: Path | None) -> None:
    """Count and print the table.

    A directory has the files ``robots/HOST``, and ``links/HOST`` with one URL per line. Without it, both are
    generated.
    """
    sites = urls = 0
    forbidden: dict[str, list[int]] = {"both": [], "1994 alone": [], "RFC 9309 alone": []}
    for body, links in _sites(folder):
        sites += 1
        urls += len(links)
        strict, later = RobotsTxt.parse(body), Protego.parse(body.decode("utf-8", "ignore"))
        verdicts = [(strict.allowed(url, _ROBOT), later.can_fetch(url, _ROBOT)) for url in links]
        for name, verdict in zip(forbidden, ((False, False), (False, True), (True, False)), strict=True):
            forbidden[name].append(verdicts.count(verdict))
    progress(f"readings: {urls:,} links of {sites:,} sites")
    rows = [[name, f"{sum(counts):,}", f"{sum(map(bool, counts)):,}"] for name, counts in forbidden.items()]
    table(f"readings: {urls:,} links of {sites:,} sites", ["forbidden by", "links", "of sites"], rows)


def _sites(folder: Path | None) -> Iterator[tuple[bytes, list[str]]]:
    """Yield the robots.txt of each site and URLs of it."""
    if folder is None:
        urls = page_urls(5_000)
        for number, body in enumerate(robots_txts()):
            start = number * _URLS_A_FILE % len(urls)
            yield body, urls[start : start + _URLS_A_FILE]
        return
    for links in sorted((folder / "links").iterdir()):
        robots = folder / "robots" / links.name
        if robots.is_file():
            yield robots.read_bytes(), links.read_text("utf-8", "replace").splitlines()
