"""The output of a benchmark: a table of medians and ratios, and the versions that were measured.

Tables are printed, and on request also added to ``benchmarks/results/NAME.md``.
"""

from __future__ import annotations

import os
import platform
import sys
from datetime import date
from importlib.metadata import version
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

console = Console()
RESULTS = Path(__file__).parent / "results"
_printed: list[str] = []


def versions(*peers: str) -> str:
    """Return the versions and the machine of a measurement, as text."""
    names = ("scrapy-norobots", "scrapy", "twisted", "protego", *peers)
    parts = [f"{name} {version(name)}" for name in names]
    return (
        f"{', '.join(parts)}; Python {sys.version.split()[0]}, {platform.machine()}, {os.cpu_count()} cores"
    )


def with_ratio(values: list[float], base: list[float], unit: str = "s") -> str:
    """Return the median of `values`, and the median of their ratios to `base`, round by round."""
    ratio = median(value / other for value, other in zip(values, base, strict=True))
    return f"{median(values):.2f} {unit} ({ratio:.2f}×)"


def table(title: str, columns: list[str], rows: list[list[str]], *peers: str) -> None:
    """Print a table and the versions, including those of `peers`."""
    made = Table(*columns, title=title, title_justify="left")
    for row in rows:
        made.add_row(*row)
    console.print(made)
    console.print(versions(*peers), highlight=False, soft_wrap=True)
    lines = [columns, ["---"] * len(columns), *rows]
    markdown = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    _printed.append(f"{title}:\n\n{markdown}\n\n{versions(*peers)}\n")


def save(name: str) -> None:
    """Add the tables that were printed to the file of a benchmark, under today's date."""
    with (RESULTS / f"{name}.md").open("a") as file:
        file.write("\n".join((f"\n## {date.today()}\n", *_printed)))


def progress(text: str) -> None:
    """Print what is being measured to standard error."""
    print(text, file=sys.stderr, flush=True)
