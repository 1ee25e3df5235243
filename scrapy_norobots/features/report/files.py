"""Report files: the setting with their paths, tested when the crawl starts and written when it ends.

A report is written to a temporary file and then moved to its path, so that readers never see half a report.
It never replaces the report of a crawl that ran at the same time.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy_norobots.features.report.page import RENDERERS
from scrapy_norobots.placeholders import expand
from scrapy_norobots.settings import Section, error, read, setting

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.settings import BaseSettings


def _report_paths(settings: BaseSettings) -> tuple[str, ...]:
    name = "NOROBOTS_REPORT"
    paths: tuple[str, ...] = read(settings, name)
    for path in paths:
        if "://" in path:
            raise error(name, settings.get(name), f"{path!r} is a URL; expected a file path")
        if Path(path).suffix.lower() not in RENDERERS:
            raise error(name, settings.get(name), f"{path!r} must end in {', '.join(RENDERERS)}")
    return paths


@dataclass(frozen=True, slots=True)
class ReportConfig(Section):
    """The paths of the report files, with placeholders."""

    paths: tuple[str, ...] = setting(_report_paths)


def prepare(template: str, spider: Spider, start: datetime) -> Path:
    """Return the path that a template names, and create its directory.

    Raises `ValueError`, with `NOROBOTS_REPORT` and its value, if a placeholder is unknown or a report cannot
    be written there.
    """
    name = expand("NOROBOTS_REPORT", template, spider, start)
    try:
        path = Path(os.path.realpath(name))  # write through symbolic links
        _check_writable(path)
    except (OSError, ValueError) as exc:  # ValueError: a null character
        raise error("NOROBOTS_REPORT", template, f"cannot be written: {exc}") from exc
    return path


def write(path: Path, data: bytes, started: datetime) -> Path:
    """Write the report of a crawl and return its path; raises `OSError`, and then writes nothing.

    An older file is replaced. A file that was written after `started` is the report of another crawl, which
    stays; a number is then added to the name of this one.
    """
    with _temporary_file(path, data) as temporary:
        return temporary.replace(next(name for name in _names(path) if _reserve(name, started)))


def _names(path: Path) -> Iterator[Path]:
    yield path
    for number in count(2):
        yield path.with_stem(f"{path.stem}-{number}")


def _reserve(path: Path, started: datetime) -> bool:
    """Create a file to reserve the path; return False if a report of another crawl is there."""
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return path.stat().st_mtime < started.timestamp()
    return True


def _check_writable(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is {'a directory' if path.is_dir() else 'not a regular file'}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with _temporary_file(path, b""):
        pass


@contextmanager
def _temporary_file(path: Path, data: bytes) -> Iterator[Path]:
    """Write a temporary file in the directory of a path, and delete it afterwards unless it was moved."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        temporary.write_bytes(data)
        yield temporary
    except OSError as exc:
        if exc.filename == str(temporary):
            exc.filename = str(path)  # the user knows no other
        raise
    finally:
        temporary.unlink(missing_ok=True)
