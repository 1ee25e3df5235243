"""``ask``: the time to read a file and check 1, 10 and 100 URLs, compared with other parsers.

Also the time of a check by the number of rules, and the memory of a file after questions about one robot.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.files import page_urls, sites
from benchmarks.peers import OURS, PARSERS, Parser, check_all, readable
from benchmarks.report import progress, table
from benchmarks.timing import in_turns, memory

_URLS = (1, 10, 100)
_RULES = (10, 100, 1_000, 10_000, 100_000)

Sites = list[tuple[bytes, list[str]]]


def run(rounds: int, folder: Path | None) -> None:
    """Measure and print the tables."""
    check_all()
    files = [(body, urls) for body, urls in sites(folder, _URLS[-1]) if readable([body])]
    progress(f"ask: {len(files):,} files")
    _on_files(files, rounds)
    _by_number_of_rules(rounds)


def _on_files(files: Sites, rounds: int) -> None:
    actions = {
        f"{parser.name} {count}": partial(
            _read_and_ask, parser, [(body, urls[:count]) for body, urls in files]
        )
        for parser in PARSERS
        for count in _URLS
    }
    least = in_turns(actions, rounds)
    sizes = {parser.name: memory(partial(_asked_once, parser, files)) / len(files) for parser in PARSERS}
    rows = []
    for parser in PARSERS:
        cells = []
        for count in _URLS:
            time, protegos = least[f"{parser.name} {count}"], least[f"protego {count}"]
            cells.append(f"{time / len(files) * 1e6:.0f} µs ({protegos / time:.2f}×)")
        rows.append([parser.name, *cells, f"{sizes[parser.name] / 1e3:.2f} kB"])
    total = sum(len(body) for body, _ in files)
    title = f"ask: {len(files):,} files of {total / len(files) / 1e3:.2f} kB; × as fast as Protego"
    columns = ["parser", *(f"{count} URLs" for count in _URLS), "memory a file"]
    table(title, columns, rows, "robotexclusionrulesparser")


def _read_and_ask(parser: Parser, files: Sites) -> None:
    for body, urls in files:
        parser.ask(parser.read(body), urls)


def _asked_once(parser: Parser, files: Sites) -> list[object]:
    asked = []
    for body, urls in files:
        file = parser.read(
            bytes(bytearray(body))
        )  # a copy of the body, so that a parser that keeps it is charged for it
        parser.ask(file, urls[:1])
        asked.append(file)
    return asked


def _by_number_of_rules(rounds: int) -> None:
    """Measure checks of URLs that no rule forbids, in files with 10 to 100,000 rules."""
    pages = page_urls(20_000)
    alike = [f"https://www.garden.example/nest{17 * number % 100_000}/chick" for number in range(20_000)]
    asked: dict[str, list[tuple[Callable[[], object], int]]] = {}
    for count in _RULES:
        body = b"User-agent: *\n" + b"".join(b"Disallow: /nest%d/egg/\n" % number for number in range(count))
        for parser in PARSERS:
            file = parser.read(body)
            parser.ask(file, pages[:1])
            for name, urls in ((parser.name, pages), (f"{parser.name}, URLs like the rules", alike)):
                if urls is alike and not parser.name.startswith((OURS, "protego")):
                    continue
                # Other parsers try each rule, so a few URLs are enough for them.
                some = urls if parser.name.startswith(OURS) else urls[: max(20_000 // count, 10)]
                asked.setdefault(name, []).append((partial(parser.ask, file, some), len(some)))
    things = {f"{name} {at}": ask for name, asks in asked.items() for at, (ask, _) in enumerate(asks)}
    least = in_turns(things, rounds)
    rows = []
    for name, asks in asked.items():
        times = [least[f"{name} {at}"] / count for at, (_, count) in enumerate(asks)]
        rows.append([name, *(f"{time * 1e6:.2f} µs ({time / times[0]:.1f}×)" for time in times)])
    title = "ask: one more URL, by the number of rules; × the time of 10 rules"
    table(title, ["parser", *(f"{count:,} rules" for count in _RULES)], rows, "robotexclusionrulesparser")
