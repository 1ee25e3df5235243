"""Changes of the evidence of a run, each a function of the folder that the run was written to.

A change is sealed if all else is made to fit afterwards: the digest in each line, and the closing line.
"""

from __future__ import annotations

import gzip
import re
import shutil
from base64 import b32encode
from collections.abc import Callable
from hashlib import sha1
from io import BytesIO
from pathlib import Path
from typing import Any

from warcio.archiveiterator import ArchiveIterator
from warcio.recordloader import ArcWarcRecord
from warcio.warcwriter import WARCWriter

from scrapy_norobots.features.evidence.gzip_file import GzipFile
from tests.helpers.judges.evidence import lines_of, seal, write_lines
from tests.helpers.samples.made_up import ABOUT, BODY_MAX

Change = Callable[[Path], object]
Place = Callable[[Path, int], Path]

BLOCK, PAYLOAD = "WARC-Block-Digest", "WARC-Payload-Digest"


def decisions_file(folder: Path, number: int = 1) -> Path:
    return folder / f"town-1-{number:05}.decisions.jsonl.gz"


def warc(folder: Path, number: int = 1) -> Path:
    return folder / f"town-1-{number:05}.warc.gz"


def with_lines(change: Callable[[list[dict[str, Any]]], object], *, sealed: bool = False) -> Change:
    """Change the list of the lines."""

    def apply(folder: Path) -> None:
        found = lines_of(decisions_file(folder))
        change(found)
        write_lines(decisions_file(folder), found)
        if sealed:
            seal(folder)

    return apply


def with_line(number: int, sealed: bool = False, **changes: Any) -> Change:
    return with_lines(lambda found: found[number].update(changes), sealed=sealed)


def with_records(
    change: Callable[[int, ArcWarcRecord], list[ArcWarcRecord]], *, sealed: bool = False, number: int = 1
) -> Change:
    """Write the records anew that a function returns for each."""

    def apply(folder: Path) -> None:
        path = warc(folder, number)
        with path.open("rb") as file, path.with_suffix(".new").open("wb") as new:
            writer = WARCWriter(new, gzip=True, warc_version="1.1")
            for place, record in enumerate(ArchiveIterator(file)):
                for changed in change(place, record):
                    writer.write_record(changed)
        path.with_suffix(".new").replace(path)
        if sealed:
            seal(folder)

    return apply


def with_block(place: int, old: bytes, new: bytes, *, is_stale: bool = False, sealed: bool = True) -> Change:
    """Replace bytes in the payload of a record, with or without the digests that WARC tools know."""

    def change(at: int, record: ArcWarcRecord) -> list[ArcWarcRecord]:
        if at == place:
            payload = record.raw_stream.read()
            assert old in payload
            payload = payload.replace(old, new)
            digests = {name: record.rec_headers.get_header(name) for name in (BLOCK, PAYLOAD)}
            record.raw_stream = BytesIO(payload)
            record.length = record.payload_length = len(payload)
            for name, digest in digests.items():
                if digest and not is_stale:
                    record.rec_headers.remove_header(name)
        return [record]

    return with_records(change, sealed=sealed)


def with_field(place: int, name: str, value: str | None, *, sealed: bool = True) -> Change:
    """Change a field of a WARC record; None removes it."""

    def change(at: int, record: ArcWarcRecord) -> list[ArcWarcRecord]:
        if at == place:
            record.rec_headers.remove_header(name)
            if value is not None:
                record.rec_headers.add_header(name, value)
        return [record]

    return with_records(change, sealed=sealed)


def with_status(place: int, status: str) -> Change:
    def change(at: int, record: ArcWarcRecord) -> list[ArcWarcRecord]:
        if at == place:
            record.http_headers.statusline = status
            record.rec_headers.remove_header(BLOCK)
        return [record]

    return with_records(change, sealed=True)


def with_setting(name: str, value: str, *, is_stale: bool = False, sealed: bool = True) -> Change:
    line = f"{name}: {ABOUT[name]}\r\n".encode()
    return with_block(0, line, f"{name}: {value}\r\n".encode(), is_stale=is_stale, sealed=sealed)


def with_members(change: Callable[[list[bytes]], object], *, sealed: bool = True) -> Change:
    """Change the list of the records as they are written."""

    def apply(folder: Path) -> None:
        found = [data for _, data in GzipFile(warc(folder)).members(BODY_MAX)]
        change(found)
        warc(folder).write_bytes(b"".join(map(gzip.compress, found)))
        if sealed:
            seal(folder)

    return apply


def without_digest(number: int) -> Change:
    def change(found: list[bytes]) -> None:
        found[number] = re.sub(rb"WARC-Block-Digest: .*\r\n", b"", found[number])

    return with_members(change)


def without_line_feed(folder: Path) -> None:
    path = decisions_file(folder)
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes())[:-1]))


def with_text(old: str, new: str) -> Change:
    """Replace a text in the lines as they are written."""

    def apply(folder: Path) -> None:
        path = decisions_file(folder)
        text = gzip.decompress(path.read_bytes()).decode()
        assert old in text
        path.write_bytes(gzip.compress(text.replace(old, new, 1).encode()))

    return apply


def recompressed(path: Callable[[Path], Path]) -> Change:
    def apply(folder: Path) -> None:
        data = path(folder).read_bytes()
        path(folder).write_bytes(data + gzip.compress(b""))

    return apply


def remove(number: int, found: list[Any]) -> None:
    del found[number]


def repeat(number: int, found: list[Any]) -> None:
    found.insert(number, found[number])


def swap(number: int, found: list[Any]) -> None:
    found[number], found[number + 1] = found[number + 1], found[number]


def cut(count: int, found: list[Any]) -> None:
    del found[-count:]


def rename(kind: Place, name: str, folder: Path) -> None:
    kind(folder, 1).rename(folder / name)


def unlink(kind: Place, number: int, folder: Path) -> None:
    kind(folder, number).unlink()


def copy(kind: Place, number: int, folder: Path) -> None:
    shutil.copy(kind(folder, 1), kind(folder, number))


def swap_files(kind: Place, folder: Path) -> None:
    one, other = kind(folder, 1), kind(folder, 2)
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)


def with_header(number: int, old: bytes, new: bytes) -> Change:
    """Replace bytes in the header of a record, as it is written."""

    def change(found: list[bytes]) -> None:
        head, end, block = found[number].partition(b"\r\n\r\n")
        assert old in head
        found[number] = head.replace(old, new, 1) + end + block

    return with_members(change)


def with_kind(number: int, kind: bytes, body: bytes) -> Change:
    """Make another record of one, with a body of its own."""

    def change(found: list[bytes]) -> None:
        head = re.sub(
            rb"(?m)^(?:WARC-\w+-Digest|Content-\w+): .*\r\n",
            b"",
            found[number].partition(b"\r\n\r\n")[0] + b"\r\n",
        )
        head = re.sub(rb"WARC-Type: \w+", b"WARC-Type: " + kind, head)
        digest = b32encode(sha1(body).digest())
        found[number] = head + b"WARC-Block-Digest: sha1:%s\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n" % (
            digest,
            len(body),
            body,
        )

    return with_members(change)


def without_field(number: int, name: bytes, *, also: Change = lambda _: None) -> Change:
    change = with_members(
        lambda found: found.__setitem__(number, re.sub(name + rb": .*\r\n", b"", found[number]))
    )

    def apply(folder: Path) -> None:
        also(folder)
        change(folder)

    return apply


def both(first: Change, second: Change, folder: Path) -> None:
    first(folder)
    second(folder)
