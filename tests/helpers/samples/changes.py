"""Changes of the evidence of a run, each a function of the folder that the run was written to."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scrapy_norobots.features.evidence.fields import DECISIONS_SUFFIX, WARC_SUFFIX
from tests.helpers.judges.evidence import change_records, lines_of, write_lines

Change = Callable[[Path], object]


def decisions_file(folder: Path) -> Path:
    return folder / f"town-1{DECISIONS_SUFFIX}"


def warc(folder: Path) -> Path:
    return folder / f"town-1{WARC_SUFFIX}"


def with_lines(change: Callable[[list[dict[str, Any]]], object]) -> Change:
    """Change the list of the lines."""

    def apply(folder: Path) -> None:
        found = lines_of(decisions_file(folder))
        change(found)
        write_lines(decisions_file(folder), found)

    return apply


def with_line(url: str, /, **changes: Any) -> Change:
    """Change the decision on a URL, or the line that has a key of this name."""

    def change(found: list[dict[str, Any]]) -> None:
        [line] = [one for one in found if url in (one.get("url"), *one)]
        line.update(changes)

    return with_lines(change)


def with_text(old: str, new: str) -> Change:
    """Replace a text in the lines as they are written."""

    def apply(folder: Path) -> None:
        path = decisions_file(folder)
        text = gzip.decompress(path.read_bytes()).decode()
        assert old in text
        path.write_bytes(gzip.compress(text.replace(old, new, 1).encode()))

    return apply


def with_records(change: Callable[[list[bytes]], object]) -> Change:
    """Change the list of the records as they are written."""
    return lambda folder: change_records(folder, change)


def with_record(number: int, pattern: bytes, new: bytes) -> Change:
    """Replace what matches a pattern in a record."""

    def change(found: list[bytes]) -> None:
        changed = re.sub(pattern, new, found[number], count=1)
        assert changed != found[number]
        found[number] = changed

    return with_records(change)


def with_field(number: int, name: str, value: str) -> Change:
    """Change a field of a record."""
    return with_record(number, rb"(?m)^%s: .*\r$" % name.encode(), f"{name}: {value}\r".encode())


def with_setting(**changes: Any) -> Change:
    return with_lines(lambda found: found[0]["settings"].update(changes))


def with_bytes(path: Callable[[Path], Path], change: Callable[[bytes], bytes]) -> Change:
    """Change the bytes of a file."""
    return lambda folder: path(folder).write_bytes(change(path(folder).read_bytes()))


def remove(number: int) -> Callable[[list[Any]], object]:
    return lambda found: found.pop(number)


def repeat(number: int) -> Callable[[list[Any]], object]:
    return lambda found: found.insert(number, found[number])


def swap(number: int) -> Callable[[list[Any]], object]:
    return lambda found: found.insert(number, found.pop(number + 1))


def cut(count: int) -> Callable[[list[Any]], object]:
    return lambda found: found.__delitem__(slice(-count, None))


def rename(path: Callable[[Path], Path], name: str) -> Change:
    return lambda folder: path(folder).rename(folder / name)


def unlink(path: Callable[[Path], Path]) -> Change:
    return lambda folder: path(folder).unlink()
