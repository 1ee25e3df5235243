"""Where reports go: paths with placeholders, tried when the crawl starts and written whole at its end.

A report is written beside its place and moved there, so that whoever reads it never sees half of one.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import BinaryIO


def prepare(templates: Iterable[str], spider: str) -> list[Path]:
    """Return the files that path templates name, their folders made.

    ``%(name)s`` is the spider's name and ``%(time)s`` the time, UTC, as in Scrapy's `FEEDS`. Raises
    `ValueError` that names `NOROBOTS_REPORT` and the value, if a report could not be written there.
    """
    time = datetime.now(timezone.utc).replace(microsecond=0).isoformat().replace(":", "-")
    return [_prepare(template, {"name": spider, "time": time}) for template in templates]


def write(path: Path, data: bytes) -> None:
    """Write a file, whole or not at all; raises `OSError`."""
    with _beside(path) as (file, temporary):
        file.write(data)
        file.close()
        temporary.replace(path)


def _prepare(template: str, names: dict[str, str]) -> Path:
    try:
        path = Path(os.path.realpath(template % names))
        if path.exists() and not path.is_file():
            raise OSError("there is something that is no file")
        path.parent.mkdir(parents=True, exist_ok=True)
        with _beside(path):
            pass
    except OSError as exc:
        raise ValueError(f"NOROBOTS_REPORT = {template!r}: cannot be written: {exc}") from exc
    except (KeyError, TypeError, ValueError) as exc:
        raise ValueError(
            f"NOROBOTS_REPORT = {template!r}: has a placeholder other than %(name)s and %(time)s, "
            f"or a '%' that is not doubled ({exc})"
        ) from exc
    return path


@contextmanager
def _beside(path: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """Open a new file in a path's folder, and let nothing of it stay there."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with temporary.open("xb") as file:
            yield file, temporary
    finally:
        temporary.unlink(missing_ok=True)
