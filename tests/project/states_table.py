"""Make the table of states in ``docs/how-it-works.md``: ``python -m tests.project.states_table``."""

from __future__ import annotations

import re

from scrapy_norobots.waiting.states import STATES
from tests.helpers.running.processes import ROOT

PAGE = ROOT / "docs" / "how-it-works.md"
TABLE = re.compile(r"(?:^\| `[A-Z_]+`: .*\n)+", re.MULTILINE)


def table() -> str:
    """Return the rows of the table."""
    rows = []
    for state, ends in STATES.items():
        nexts = "<br>".join(f"`{to.name}`: {why}" for to, why in ends.items())
        rows.append(f"| `{state.name}`: {state.value} | {nexts} |\n")
    return "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(TABLE.sub(lambda _: table(), PAGE.read_text()))
