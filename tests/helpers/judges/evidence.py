"""The evidence of crawls as its users read it: the WARC files by warcio, the decisions by gzip and json."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from warcio.archiveiterator import ArchiveIterator

from scrapy_norobots.features.evidence import fields
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
    """Return the lines of a file."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def write_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    path.write_bytes(gzip.compress(b"".join(fields.line_of(in_order(line)) for line in lines)))


def in_order(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line with its keys in the order in which a crawl writes them."""
    first = ["time", "url", "requested", "sent_as", "decided_for", "usage"]
    return {name: line[name] for name in [*first, *line] if name in line}


def members(path: Path) -> list[bytes]:
    """Return the gzip members of a file as they are."""
    data, found = path.read_bytes(), []
    while data:
        stream = zlib.decompressobj(wbits=31)
        stream.decompress(data)
        end = len(data) - len(stream.unused_data)
        found.append(data[:end])
        data = data[end:]
    return found


def head_of(folder: Path) -> str:
    """Return the head of the only run, as everybody can compute it."""
    [path] = files(folder, fields.DECISIONS_SUFFIX)
    return sha256(path.read_bytes()).hexdigest()


def seal(folder: Path) -> None:
    """Make all digests fit the files, as somebody can who forges all of them."""
    for path in files(folder, fields.DECISIONS_SUFFIX):
        run = path.name.removesuffix(fields.DECISIONS_SUFFIX)
        warc = folder / (run + fields.WARC_SUFFIX)
        records = deque(map(fields.record_line, members(warc) if warc.exists() else []))
        lines = lines_of(path)
        later = deque(fields.line_of(line) for line in lines if "record" in line)
        sealed: list[bytes] = []
        for line in lines:
            if "closes" in line:
                sealed.append(fields.closing_line(run, line["lost"], sha256(b"".join(sealed)).hexdigest()))
            elif "record" not in line:
                sealed.append(fields.line_of(line))
            else:
                later.popleft()
                while records and records[0] not in later:
                    sealed.append(records.popleft())
        path.write_bytes(gzip.compress(b"".join(sealed)))


def audit(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    done = processes.run("scrapy", "robots-audit", *map(str, arguments))
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return done


def change_decisions(folder: Path, change: Callable[[Decision], object]) -> None:
    """Rewrite the decisions, each changed by a function, with digests that fit."""
    for path in files(folder, fields.DECISIONS_SUFFIX):
        lines = lines_of(path)
        for line in lines:
            if "verdict" in line:
                change(line)
        write_lines(path, lines)
    seal(folder)


def change_records(folder: Path, change: Callable[[list[bytes]], object]) -> None:
    """Rewrite the WARC files with the list of records that a function changes, with lengths that fit."""
    for path in files(folder, fields.WARC_SUFFIX):
        unchanged = {gzip.decompress(one): one for one in members(path)}
        records = list(unchanged)
        change(records)
        path.write_bytes(b"".join(unchanged.get(one) or gzip.compress(_with_length(one)) for one in records))


def _with_length(record: bytes) -> bytes:
    head, end, block = record.partition(b"\r\n\r\n")
    length = b"\\g<1>%d" % len(block.removesuffix(end))
    return re.sub(rb"(?i)(\r\nContent-Length: )\d+", length, head) + end + block


def verdicts(made: Sequence[Decision]) -> dict[str, str]:
    """Return the verdict on each path."""
    return {one["url"].partition("/")[2].partition("/")[2].partition("/")[2]: one["verdict"] for one in made}
