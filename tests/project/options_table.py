"""Make the tables of options in ``docs/commands.md``: ``python -m tests.project.options_table``."""

from __future__ import annotations

import re
from argparse import ArgumentParser

from scrapy.settings import Settings

from scrapy_norobots.commands.base import RobotsCommand
from scrapy_norobots.commands.robots_audit import RobotsAudit
from scrapy_norobots.commands.robots_check import RobotsCheck
from tests.helpers.running.processes import ROOT

PAGE = ROOT / "docs" / "commands.md"
TABLE = re.compile(r"(?:^\| `--.*\n)+", re.MULTILINE)
# Those with options beside --json, in the order of the page.
COMMANDS: tuple[type[RobotsCommand], ...] = (RobotsCheck, RobotsAudit)


def tables() -> list[str]:
    """Return the rows of each table, from the help of the command."""
    return [_table(command()) for command in COMMANDS]


def _table(command: RobotsCommand) -> str:
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


if __name__ == "__main__":
    made = iter(tables())
    PAGE.write_text(TABLE.sub(lambda _: next(made), PAGE.read_text()))
