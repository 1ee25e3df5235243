"""The evidence of crawls as its users read it: the WARC files by warcio, the decisions by gzip and json."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from warcio.archiveiterator import ArchiveIterator
from warcio.warcwriter import WARCWriter

from tests.helpers.running import processes

Decision = dict[str, Any]


class Stored(NamedTuple):
    """One WARC record."""

    kind: str
    headers: dict[str, str]
    status: str
    http: dict[str, str]
    body: bytes


def files(folder: Path, suffix: str) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name.endswith(suffix))


def answers(folder: Path) -> list[Stored]:
    """Return the records of all WARC files, and check the digests in them."""
    found = []
    for path in files(folder, ".warc.gz"):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, check_digests="raise"):
                body = record.raw_stream.read()
                http = record.http_headers
                found.append(
                    Stored(
                        record.rec_type,
                        dict(record.rec_headers.headers),
                        http.get_statuscode() if http else "",
                        dict(http.headers) if http else {},
                        body,
                    )
                )
    return found


def decisions(folder: Path) -> list[Decision]:
    return [decision for path in files(folder, ".jsonl.gz") for decision in lines_of(path)]


def lines_of(path: Path) -> list[Decision]:
    """Return the decisions in a file."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def audit(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    done = processes.run("scrapy", "robots-audit", *map(str, arguments))
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return done


def change_decisions(folder: Path, change: Callable[[Decision], object]) -> None:
    """Rewrite the lines of decisions, each changed by a function."""
    for path in files(folder, ".jsonl.gz"):
        lines = lines_of(path)
        for line in lines:
            change(line)
        path.write_bytes(gzip.compress("".join(f"{json.dumps(line)}\n" for line in lines).encode()))


def change_answers(folder: Path, keep: Callable[[Any], Any]) -> None:
    """Rewrite the WARC files with the records that a function returns."""
    for path in files(folder, ".warc.gz"):
        with path.open("rb") as file, path.with_suffix(".new").open("wb") as new:
            writer = WARCWriter(new, gzip=True, warc_version="1.1")
            for record in ArchiveIterator(file):
                changed = keep(record)
                if changed is not None:
                    writer.write_record(changed)
        path.with_suffix(".new").replace(path)


def verdicts(made: Sequence[Decision]) -> dict[str, str]:
    """Return the verdict on each path."""
    return {one["url"].partition("/")[2].partition("/")[2].partition("/")[2]: one["verdict"] for one in made}
