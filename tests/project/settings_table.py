"""Make the tables of ``docs/settings.md``: ``python -m tests.project.settings_table`` writes them there."""

from __future__ import annotations

import json
import re
from itertools import takewhile

from scrapy_norobots.settings import SETTINGS
from tests.helpers.running.processes import ROOT

PAGE = ROOT / "docs" / "settings.md"
# The second table begins with this one.
FIRST_RARE = "NOROBOTS_TTL"
TABLE = re.compile(r"(?:^\| \[`NOROBOTS_.*\n)+", re.MULTILINE)


def tables() -> list[str]:
    """Return the rows of both tables."""
    rows = {
        name: f"| [`{name}`](#{name.lower()}) | `{literal(one.default)}` | {one.about} |\n"
        for name, one in SETTINGS.items()
    }
    often = list(takewhile(lambda name: name != FIRST_RARE, rows))
    return ["".join(rows[name] for name in names) for names in (often, [*rows][len(often) :])]


def literal(value: object) -> str:
    """Return a default as it is written in Python, with double quotes."""
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))})"
    return json.dumps(value) if isinstance(value, str) else repr(value)


if __name__ == "__main__":
    made = iter(tables())
    PAGE.write_text(TABLE.sub(lambda _: next(made), PAGE.read_text()))
