"""What a benchmark says at its end: a table of medians and ratios, and what it was measured with."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import version
from statistics import median

from rich.console import Console
from rich.table import Table

console = Console()


def versions(*peers: str) -> str:
    """Say which versions and which machine figures were measured with."""
    names = ("scrapy-norobots", "scrapy", "twisted", "protego", *peers)
    parts = [f"{name} {version(name)}" for name in names]
    return (
        f"{', '.join(parts)}; Python {sys.version.split()[0]}, {platform.machine()}, {os.cpu_count()} cores"
    )


def with_ratio(values: list[float], base: list[float], unit: str = "s") -> str:
    """Give the median of `values`, and that of their ratios to `base`, taken round by round."""
    ratio = median(value / other for value, other in zip(values, base, strict=True))
    return f"{median(values):.2f} {unit} ({ratio:.2f}×)"


def table(title: str, columns: list[str], rows: list[list[str]], *peers: str) -> None:
    """Print a table and the versions, those of some more packages among them."""
    made = Table(*columns, title=title, title_justify="left")
    for row in rows:
        made.add_row(*row)
    console.print(made)
    console.print(versions(*peers), highlight=False, soft_wrap=True)


def progress(text: str) -> None:
    """Say on standard error what is being measured."""
    print(text, file=sys.stderr, flush=True)
