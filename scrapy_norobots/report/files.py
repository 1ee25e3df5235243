"""Where reports go: paths with placeholders, tried when the crawl starts and written whole at its end.

A report is written beside its place and moved there, so that whoever reads it never sees half of one.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import BinaryIO


def prepare(template: str, spider: str, start: datetime) -> Path:
    """Return the file that a path template names, its folder made.

    ``%(name)s`` is the spider's name and ``%(time)s`` the time of the start, as in Scrapy's `FEEDS`. Raises
    `ValueError` that names `NOROBOTS_REPORT` and the value, if a report could not be written there.
    """
    time = start.isoformat().replace(":", "-")
    try:
        name = template % {"name": spider.replace("/", "-").replace(os.sep, "-"), "time": time}
    except (KeyError, TypeError, ValueError) as exc:
        raise ValueError(
            f"NOROBOTS_REPORT = {template!r}: has a placeholder other than %(name)s and %(time)s, "
            f"or a '%' that is not doubled ({exc})"
        ) from exc
    try:
        path = Path(os.path.realpath(os.path.expanduser(name)))  # noqa: PTH111  # so that a link stays one
        _try(path)
    except (OSError, ValueError) as exc:  # ValueError: a null character
        raise ValueError(f"NOROBOTS_REPORT = {template!r}: cannot be written: {exc}") from exc
    return path


def write(path: Path, data: bytes) -> None:
    """Write a file, whole or not at all; raises `OSError`."""
    with _beside(path) as (file, temporary):
        file.write(data)
        file.close()
        temporary.replace(path)


def _try(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is {'a folder' if path.is_dir() else 'no file'}")
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
