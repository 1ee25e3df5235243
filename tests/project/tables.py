"""The tables of the docs that are made from the code: ``python -m tests.project.tables`` writes them."""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser
from collections.abc import Callable
from itertools import takewhile
from typing import NamedTuple

from scrapy.settings import Settings

from scrapy_norobots.commands.base import RobotsCommand
from scrapy_norobots.commands.robots_audit import RobotsAudit
from scrapy_norobots.commands.robots_check import RobotsCheck
from scrapy_norobots.settings import SETTINGS
from scrapy_norobots.waiting.states import STATES
from tests.helpers.running.processes import ROOT

# The second table of settings begins with this one.
FIRST_RARE = "NOROBOTS_TTL"
# Those with options beside --json, in the order of the page.
COMMANDS: tuple[type[RobotsCommand], ...] = (RobotsCheck, RobotsAudit)


def settings() -> list[str]:
    """Return the rows of both tables of settings."""
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


def states() -> list[str]:
    """Return the rows of the table of states."""
    rows = []
    for state, ends in STATES.items():
        nexts = "<br>".join(f"`{to.name}`: {why}" for to, why in ends.items())
        rows.append(f"| `{state.name}`: {state.value} | {nexts} |\n")
    return ["".join(rows)]


def options() -> list[str]:
    """Return the rows of the table of each command, from its help."""
    return [_options_of(command()) for command in COMMANDS]


def _options_of(command: RobotsCommand) -> str:
    parser = ArgumentParser(add_help=False)
    command.settings = Settings()
    command.add_options(parser)
    (scrapys,) = (group for group in parser._action_groups if group.title == "Global Options")
    rows = []
    for action in parser._actions:
        if action not in scrapys._group_actions:
            value = f" {action.metavar}" if action.metavar else ""
            rows.append(f"| `{action.option_strings[-1]}{value}` | {action.help} |\n")
    return "".join(rows)


class Tables(NamedTuple):
    """The tables of one kind: their page, what their rows begin with, and what makes their rows."""

    page: str
    begin: str
    make: Callable[[], list[str]]

    def found(self) -> list[str]:
        """Return the rows of the tables on the page."""
        return self._pattern().findall((ROOT / "docs" / self.page).read_text())

    def write(self) -> None:
        path, made = ROOT / "docs" / self.page, iter(self.make())
        path.write_text(self._pattern().sub(lambda _: next(made), path.read_text()))

    def _pattern(self) -> re.Pattern[str]:
        return re.compile(rf"(?:^\| {self.begin}.*\n)+", re.MULTILINE)


TABLES = {
    "settings": Tables("settings.md", r"\[`NOROBOTS_", settings),
    "states": Tables("how-it-works.md", "`[A-Z_]+`: ", states),
    "options": Tables("commands.md", "`--", options),
}

if __name__ == "__main__":
    for tables in TABLES.values():
        tables.write()
