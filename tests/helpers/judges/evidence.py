"""The evidence of crawls as its users read it: the WARC files by warcio, the decisions by gzip and json."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
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
    return [one for path in files(folder, ".warc.gz") for one in records_of(path, check_digests="raise")]


def records_of(path: Path, **options: Any) -> list[Stored]:
    """Return the records of a WARC file."""
    found = []
    with path.open("rb") as file:
        for record in ArchiveIterator(file, **options):
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
    return [line for path in files(folder, ".jsonl.gz") for line in lines_of(path) if "verdict" in line]


def lines_of(path: Path) -> list[Decision]:
    """Return the lines of a file: decisions, the opening line and perhaps the closing one."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def write_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    path.write_bytes(gzip.compress("".join(f"{json.dumps(line)}\n" for line in lines).encode()))


def seal(folder: Path) -> None:
    """Make chains and closing lines that fit the files, as somebody can who forges all of them.

    Each run has one file of answers.
    """
    for path in files(folder, ".jsonl.gz"):
        run = path.name.rpartition("-")[0]
        head, number, counts, sealed = 64 * "0", 0, Counter[str](), []
        for line in lines_of(path):
            if "verdict" in line or not {"opens", "closes"} & line.keys():
                number += 1
                counts[str(line.get("verdict"))] += 1
            elif "closes" in line:
                warc = folder / f"{run}-00001.warc.gz"
                data = warc.read_bytes()
                line["decisions"] = counts
                line["answers"] = sum("Norobots-Origin" in one.headers for one in records_of(warc))
                line["files"] = {warc.name: {"size": len(data), "sha256": sha256(data).hexdigest()}}
            line |= {"seq": number, "prev": head}
            head = sha256(json.dumps(line).encode() + b"\n").hexdigest()
            sealed.append(line)
        write_lines(path, sealed)


def audit(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    done = processes.run("scrapy", "robots-audit", *map(str, arguments))
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return done


def change_decisions(folder: Path, change: Callable[[Decision], object]) -> None:
    """Rewrite the decisions, each changed by a function, with a chain that fits."""
    for path in files(folder, ".jsonl.gz"):
        lines = lines_of(path)
        for line in lines:
            if "verdict" in line:
                change(line)
        write_lines(path, lines)
    seal(folder)


def change_answers(folder: Path, keep: Callable[[Any], Any]) -> None:
    """Rewrite the WARC files with the records that a function returns, and a closing line that fits."""
    for path in files(folder, ".warc.gz"):
        with path.open("rb") as file, path.with_suffix(".new").open("wb") as new:
            writer = WARCWriter(new, gzip=True, warc_version="1.1")
            for record in ArchiveIterator(file):
                changed = keep(record)
                if changed is not None:
                    writer.write_record(changed)
        path.with_suffix(".new").replace(path)
    seal(folder)


def verdicts(made: Sequence[Decision]) -> dict[str, str]:
    """Return the verdict on each path."""
    return {one["url"].partition("/")[2].partition("/")[2].partition("/")[2]: one["verdict"] for one in made}
