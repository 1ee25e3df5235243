"""The parts of the docs that come from the code: ``python -m tests.project.tables`` writes them there.

Each entry of `PARTS` has a page, a pattern that finds its parts, and a function that returns them. A heading
is written by hand, where the order of the code puts it.
"""

from __future__ import annotations

import json
import re
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterable
from functools import partial
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import NamedTuple

from scrapy.settings import Settings

from scrapy_norobots import values
from scrapy_norobots.commands.base import RobotsCommand
from scrapy_norobots.commands.robots_audit import RobotsAudit
from scrapy_norobots.commands.robots_check import RobotsCheck
from scrapy_norobots.events import Event, Events
from scrapy_norobots.features import FEATURES
from scrapy_norobots.features.report import listing
from scrapy_norobots.settings import SETTINGS
from scrapy_norobots.standard.findings import KINDS, Kind, Severity
from scrapy_norobots.waiting.states import STATES
from tests.helpers.running.processes import ROOT
from tests.helpers.spiders.raising import subscriptions

DOCS = ROOT / "docs"
PACKAGE = ROOT / "scrapy_norobots"
# The settings that are rarely needed begin with this one.
FIRST_RARE = "NOROBOTS_TTL"
# Those with options beside --json, in the order of the page.
COMMANDS: tuple[type[RobotsCommand], ...] = (RobotsCheck, RobotsAudit)
# What the reader of a value accepts. A number has its unit.
TYPES: dict[object, str] = {
    values.flag: "boolean",
    values.flag_or_word: "boolean or word",
    values.folder: "path",
    values.listed: "list",
    values.parsers: "list",
    values.paths: "path or list",
    values.policy: "name or dictionary",
    values.robots: "list",
    values.store: "URL",
}


def settings() -> list[str]:
    """Return the rows of the table of settings, which has those that are often needed."""
    often = takewhile(lambda name: name != FIRST_RARE, SETTINGS)
    return ["".join(f"| [`{name}`](#{name.lower()}) | {SETTINGS[name].about} |\n" for name in often)]


def defaults() -> list[str]:
    """Return the line below the heading of each setting. It says what those do that are not in the table."""
    rare = [*SETTINGS][[*SETTINGS].index(FIRST_RARE) :]
    return [
        f"### `{name}`\n\n"
        + (f"{setting.about[0].upper()}{setting.about[1:]}. " if name in rare else "")
        + f"Default: `{literal(setting.default)}` ({type_of(setting.read)}).\n"
        for name, setting in SETTINGS.items()
    ]


def literal(value: object) -> str:
    """Return a default as it is written in Python, with double quotes."""
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))})"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def type_of(read: object) -> str:
    """Return what a reader of values accepts, in a word."""
    if not isinstance(read, partial):
        return TYPES[read]
    return str(read.args[0]) if read.func is values.number else TYPES[read.func]


def options() -> list[str]:
    """Return the rows of each table of options, from the help of the command."""
    return [_options(command()) for command in COMMANDS]


def _options(command: RobotsCommand) -> str:
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


def states() -> list[str]:
    """Return the rows of the states of a request."""
    return [
        "".join(
            f"| `{state.name}` | {state.value} | {_codes(to.name for to in ends)} |\n"
            for state, ends in STATES.items()
        )
    ]


def place(file: Path) -> str:
    """Return the module or folder of the core, or the feature, in which a file is."""
    parts = [part for part in file.relative_to(PACKAGE).parts if part != "features"]
    return parts[0] if len(parts) == 1 else f"{parts[0]}/"


def events() -> list[str]:
    """Return the rows of the events, with those that send them, and the features that subscribe."""
    sources = {file: file.read_text() for file in sorted(PACKAGE.rglob("*.py")) if file.name != "events.py"}
    features = {one.__name__.rpartition(".")[2]: place(Path(str(one.__file__))) for one in FEATURES}
    heard = subscriptions()
    rows: dict[str, list[str]] = {}
    for event in (name for name, one in vars(Events()).items() if isinstance(one, Event)):
        sends = re.compile(rf"events\.{event}\.(send|tell|ask)\b")
        senders = {place(file): None for file, text in sources.items() if sends.search(text)}
        subscribers = [features[name] for name, kind in heard if kind == event]
        assert senders, event
        assert subscribers, event
        rows.setdefault(f"| {_codes(senders)} | {_codes(subscribers)} |\n", []).append(event)
    return ["".join(f"| {_codes(names)} {row}" for row, names in rows.items())]


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def findings() -> list[str]:
    """Return the rows of the kinds of findings, and of what only the report of a crawl shows so."""
    misplaced = Kind(Severity.ERROR, "R1", f"{listing.MISPLACED_MEANING} Only the report shows this.")
    return [
        "".join(
            f"| `{name}` | {kind.severity.value}, {kind.clause} | {kind.meaning} |\n"
            for name, kind in {**KINDS, listing.MISPLACED: misplaced}.items()
        ).replace("*", r"\*")  # two stars would be an emphasis
    ]


class Part(NamedTuple):
    """Parts of a page: what finds them, and what makes them."""

    page: Path
    pattern: re.Pattern[str]
    make: Callable[[], list[str]]


def rows(start: str) -> re.Pattern[str]:
    """Return a pattern that finds the rows of a table that start so."""
    return re.compile(rf"(?:^\| {start}.*\n)+", re.MULTILINE)


PARTS = (
    Part(DOCS / "settings.md", rows(r"\[`NOROBOTS_"), settings),
    Part(DOCS / "settings.md", re.compile(r"^### `NOROBOTS_\w+`\n\n.*Default: .*\n", re.MULTILINE), defaults),
    Part(DOCS / "commands.md", rows("`--"), options),
    Part(DOCS / "how-it-works.md", rows("`[A-Z_]+` \\| "), states),
    Part(DOCS / "how-it-works.md", rows(r"`[a-z_]+`[^|]*\| `\w+[./]"), events),
    Part(DOCS / "standard.md", rows(r"`[a-z0-9-]+` \| \w+, [A-Z]\d \| "), findings),
)


def write(part: Part) -> None:
    """Write a part, unless a heading is missing: all later texts would stand below a wrong one."""
    page, made = part.page.read_text(), part.make()
    for texts in zip_longest(part.pattern.findall(page), made, fillvalue=""):
        found, needed = (text.partition("\n")[0] for text in texts)
        if found != needed and "#" in (found[:1], needed[:1]):
            sys.exit(
                f"{part.page.name}: write {needed!r} and 'Default: .' before {found!r}, then run this again"
            )
    rest = iter(made)
    part.page.write_text(part.pattern.sub(lambda _: next(rest), page))


if __name__ == "__main__":
    for each in PARTS:
        write(each)
