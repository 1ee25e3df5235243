"""Where reports go: paths with placeholders, tried when the crawl starts and written whole at its end.

A report is written beside its place and moved there, so that whoever reads it never sees half of one. It
never replaces the report of a crawl that ran at the same time.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from scrapy import Spider


def prepare(template: str, spider: Spider, start: datetime) -> Path:
    """Return the file that a path template names, its folder made.

    As in Scrapy's `FEEDS`, ``%(time)s`` is the time of the start, and any other placeholder an attribute of
    the spider. Raises `ValueError` that names `NOROBOTS_REPORT` and the value, if a report could not be
    written there.
    """
    try:
        name = template % _Values(spider, start)
    except (KeyError, TypeError, ValueError) as exc:
        raise ValueError(
            f"NOROBOTS_REPORT = {template!r}: unknown placeholder ({exc}); use %(time)s, an attribute of "
            "the spider such as %(name)s, or '%%' for a '%'"
        ) from exc
    try:
        path = Path(os.path.realpath(os.path.expanduser(name)))  # noqa: PTH111  # so that a link stays one
        _try(path)
    except (OSError, ValueError) as exc:  # ValueError: a null character
        raise ValueError(f"NOROBOTS_REPORT = {template!r}: cannot be written: {exc}") from exc
    return path


class _Values:
    """What placeholders stand for: the attributes of a spider, its arguments among them, and the time."""

    def __init__(self, spider: Spider, start: datetime) -> None:
        self._spider = spider
        self._time = start.isoformat().replace(":", "-")

    def __getitem__(self, name: str) -> object:
        if name == "time":
            return self._time
        if not hasattr(self._spider, name):
            raise KeyError(name)
        value = getattr(self._spider, name)
        if isinstance(value, (int, float)):
            return value  # for %(number)03d
        return str(value).replace("/", "-").replace(os.sep, "-")  # it names no folder


def write(path: Path, data: bytes, started: datetime) -> Path:
    """Write the report of a crawl, whole or not at all, and return its path; raises `OSError`.

    A file from before the crawl is replaced. One that was written since then is the report of another crawl,
    which stays; this one gets a number.
    """
    with _beside(path) as (file, temporary):
        file.write(data)
        file.close()
        free = next(name for name in _names(path) if _may_take(name, started))
        temporary.replace(free)
    return free


def _names(path: Path) -> Iterator[Path]:
    yield path
    for number in count(2):
        yield path.with_stem(f"{path.stem}-{number}")


def _may_take(path: Path, started: datetime) -> bool:
    """Take a path by a new file, unless there is one of another crawl."""
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return path.stat().st_mtime < started.timestamp()
    return True


def _try(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is {'a directory' if path.is_dir() else 'not a regular file'}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with _beside(path):
        pass


@contextmanager
def _beside(path: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """Open a new file in a path's folder, and let nothing of it stay there."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with temporary.open("xb") as file:
            yield file, temporary
    finally:
        temporary.unlink(missing_ok=True)
