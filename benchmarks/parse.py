"""``parse``: how fast files are read, and what they then take in memory, beside other parsers."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.files import robots_txts
from benchmarks.peers import OURS, PARSERS, Parser, check_all, readable
from benchmarks.report import progress, table
from benchmarks.timing import in_turns, memory


def run(rounds: int, folder: Path | None) -> None:
    """Measure and print the table."""
    check_all()
    files = readable(robots_txts(folder))
    total = sum(map(len, files))
    progress(f"parse: {len(files):,} files, {total / 1e6:.1f} MB")
    least = in_turns({parser.name: partial(_read_all, parser, files) for parser in PARSERS}, rounds)
    sizes = {parser.name: memory(partial(_read_all, parser, files)) / len(files) for parser in PARSERS}
    peers = [parser.name for parser in PARSERS if parser.name != OURS]
    fastest, smallest = min(least[name] for name in peers), min(sizes[name] for name in peers)
    rows = [
        [
            name,
            f"{total / least[name] / 1e6:.1f} MB/s ({fastest / least[name]:.2f}×)",
            f"{sizes[name] / 1e3:.2f} kB ({sizes[name] / smallest:.2f}×)",
        ]
        for name in least
    ]
    size = f"{len(files):,} files of {total / len(files) / 1e3:.2f} kB"
    title = f"parse: {size}; × the fastest and the smallest peer"
    table(title, ["parser", "read (best of rounds)", "memory a file"], rows, "robotexclusionrulesparser")


def _read_all(parser: Parser, files: list[bytes]) -> list[object]:
    # Each body is a copy of its own, so that the memory of one that is kept is seen as well.
    return [parser.read(bytes(bytearray(body))) for body in files]
