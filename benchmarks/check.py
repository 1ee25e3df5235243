"""``check``: what it takes to ask a parsed file about a URL, beside other parsers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.files import page_urls, robots_txts
from benchmarks.peers import OURS, PARSERS, Parser, check_all, readable
from benchmarks.report import progress, table
from benchmarks.timing import in_turns

_URLS_A_FILE = 50
_RULES = (10, 100, 1_000, 10_000, 100_000)
_PEERS = [parser.name for parser in PARSERS if parser.name != OURS]


def run(rounds: int, folder: Path | None) -> None:
    """Measure and print the tables."""
    check_all()
    files = readable(robots_txts(folder))
    progress(f"check: {len(files):,} files")
    _on_files(files, rounds)
    _by_number_of_rules(rounds)


def _on_files(files: list[bytes], rounds: int) -> None:
    urls = page_urls(5_000)
    starts = [number * _URLS_A_FILE % len(urls) for number in range(len(files))]
    urls_of = [urls[start : start + _URLS_A_FILE] for start in starts]
    parsed = {parser: [parser.read(body) for body in files] for parser in PARSERS}
    for parser in PARSERS:  # the first question, for which a robot's rules are looked up, is another figure
        _ask_all(parser, parsed[parser], urls_of)
    each = in_turns(
        {parser.name: partial(_ask_all, parser, parsed[parser], urls_of) for parser in PARSERS}, rounds
    )
    once = in_turns({parser.name: partial(_read_and_ask, parser, files) for parser in PARSERS}, rounds)
    fastest, fastest_once = (min(times[name] for name in _PEERS) for times in (each, once))
    rows = [
        [
            name,
            f"{each[name] / len(files) / _URLS_A_FILE * 1e6:.2f} µs ({fastest / each[name]:.1f}×)",
            f"{once[name] / len(files) * 1e6:.0f} µs ({fastest_once / once[name]:.1f}×)",
        ]
        for name in each
    ]
    title = f"check: {_URLS_A_FILE} URLs to each of {len(files):,} files; × as fast as the fastest peer"
    table(title, ["parser", "a check", "a file read and asked once"], rows, "robotexclusionrulesparser")


def _ask_all(parser: Parser, parsed: list[Any], urls_of: list[list[str]]) -> None:
    for file, urls in zip(parsed, urls_of, strict=True):
        parser.ask(file, urls)


def _read_and_ask(parser: Parser, files: list[bytes]) -> None:
    for body in files:
        parser.ask(parser.read(body), ["https://www.garden.example/some/page.html"])


def _by_number_of_rules(rounds: int) -> None:
    """Ask files of ever more rules, of which none forbids anything."""
    pages = page_urls(20_000)
    alike = [f"https://www.garden.example/nest{17 * number % 100_000}/chick" for number in range(20_000)]
    asked: dict[str, list[tuple[Callable[[], object], int]]] = {}
    for count in _RULES:
        body = b"User-agent: *\n" + b"".join(b"Disallow: /nest%d/egg/\n" % number for number in range(count))
        for parser in PARSERS:
            file = parser.read(body)
            parser.ask(file, pages[:1])
            for name, urls in ((parser.name, pages), (f"{parser.name}, URLs like the rules", alike)):
                if urls is alike and parser.name not in (OURS, "protego"):
                    continue
                # Peers try rule after rule; a few URLs are enough for them to show.
                some = urls if parser.name == OURS else urls[: max(20_000 // count, 10)]
                asked.setdefault(name, []).append((partial(parser.ask, file, some), len(some)))
    things = {f"{name} {at}": ask for name, asks in asked.items() for at, (ask, _) in enumerate(asks)}
    least = in_turns(things, rounds)
    rows = []
    for name, asks in asked.items():
        times = [least[f"{name} {at}"] / count for at, (_, count) in enumerate(asks)]
        rows.append([name, *(f"{time * 1e6:.2f} µs ({time / times[0]:.1f}×)" for time in times)])
    title = "check: by the number of rules; × the time of 10 rules"
    table(title, ["parser", *(f"{count:,} rules" for count in _RULES)], rows, "robotexclusionrulesparser")
