"""The runs in a folder of evidence: their files by name, and the settings that decisions depend on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from scrapy_norobots.features.evidence import fields
from scrapy_norobots.features.evidence.judges import described_path
from scrapy_norobots.features.evidence.line_reader import decode
from scrapy_norobots.rules.access import ALLOW, DENY, PRESETS, StatusPolicy

_NAME = re.compile(r"(.+)-(\d{5,})", re.DOTALL)


@dataclass
class RunFiles:
    """The files of a run by their numbers; `repeated` are further files of the same name."""

    name: str
    answers: dict[int, Path] = field(default_factory=dict)
    decisions: dict[int, Path] = field(default_factory=dict)
    repeated: list[Path] = field(default_factory=list)

    def missing(self) -> Iterator[str]:
        """Yield the names of files that are missing before the last one of their kind."""
        kinds = ((self.answers, fields.WARC_SUFFIX), (self.decisions, fields.DECISIONS_SUFFIX))
        for files, suffix in kinds:
            numbers = sorted(files)
            expected = 1
            for number in numbers:
                if number > expected:
                    last = f" to {number - 1:05}" if number > expected + 1 else ""
                    yield f"{self.name}-{expected:05}{last}{suffix}"
                expected = number + 1


def runs_of(files: Iterable[Path]) -> tuple[list[RunFiles], list[Path]]:
    """Return the runs whose files these are, by name, and the files whose names are not of a run."""
    runs: dict[str, RunFiles] = {}
    others = []
    for path in sorted(files):
        suffix = next(
            (one for one in (fields.DECISIONS_SUFFIX, fields.WARC_SUFFIX) if path.name.endswith(one)), None
        )
        if suffix is None:
            continue
        match = _NAME.fullmatch(path.name.removesuffix(suffix))
        if match is None:
            others.append(path)
            continue
        run = runs.setdefault(match[1], RunFiles(match[1]))
        parts = run.answers if suffix == fields.WARC_SUFFIX else run.decisions
        if int(match[2]) in parts:
            run.repeated.append(path)
        else:
            parts[int(match[2])] = path
    return [runs[name] for name in sorted(runs)], others


class Settings(NamedTuple):
    """The settings of a crawl that its decisions depend on, and what judged.

    `has_allowed` is whether decisions to allow a request are stored. `robot` is None if decisions are made by
    the header of each request.
    """

    policy: StatusPolicy
    multivalue: bool
    aiohttp: bool
    dry_run: bool
    parsers: tuple[str, ...]
    python: str
    also_robots: tuple[str, ...] = ()
    purposes: tuple[str, ...] | None = None
    has_allowed: bool = True
    robot: str | None = None

    @property
    def parser_names(self) -> list[str]:
        """The class names of the parsers, as decisions have them."""
        return [described_path(parser).rpartition(".")[2] for parser in self.parsers]

    @classmethod
    def of(cls, about: Mapping[str, str]) -> Settings:
        """Return the settings that a `warcinfo` record states; raise `ValueError` if it does not."""
        try:
            parsers = json.loads(about[fields.PARSERS])
            if not parsers or not all(isinstance(parser, str) for parser in parsers):
                raise ValueError("no parsers")
            purposes = json.loads(about[fields.PURPOSES])
            return cls(
                _policy(about[fields.POLICY]),
                _flag(about[fields.MULTIVALUE]),
                _flag(about[fields.AIOHTTP]),
                _flag(about[fields.DRY_RUN]),
                tuple(parsers),
                about[fields.PYTHON],
                tuple(map(str, json.loads(about[fields.ALSO_ROBOTS]))),
                None if purposes is None else tuple(map(str, purposes)),
                _flag(about.get(fields.ALLOWED, "True")),
                json.loads(about.get(fields.ROBOT, "null")),
            )
        except (KeyError, TypeError, AttributeError, RecursionError) as exc:
            raise ValueError("no settings") from exc


def _flag(text: str) -> bool:
    if text not in ("True", "False"):
        raise ValueError("not a flag")
    return text == "True"


def _policy(text: str) -> StatusPolicy:
    table = decode(text)
    if not set(PRESETS["allow"]) <= set(table) or not set(table.values()) <= {ALLOW, DENY}:
        raise ValueError("not a policy")
    return StatusPolicy(MappingProxyType(table))
