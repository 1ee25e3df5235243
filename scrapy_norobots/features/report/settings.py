"""The setting of one crawl for its report."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy_norobots.features.report.page import RENDERERS
from scrapy_norobots.settings import Section, error, list_of, setting, value_of

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def _report_paths(settings: BaseSettings, name: str) -> tuple[str, ...]:
    value = value_of(settings, name)
    parts = [value] if isinstance(value, os.PathLike) else list_of(settings, name)
    if parts is None or not all(isinstance(part, (str, os.PathLike)) for part in parts):
        raise error(name, value, "must be a path or a list of paths")
    paths = tuple(os.fspath(part) for part in parts)
    for path in paths:
        if "://" in path:
            raise error(name, value, f"{path!r} is a URL; expected a file path")
        if Path(path).suffix.lower() not in RENDERERS:
            raise error(name, value, f"{path!r} must end in {', '.join(RENDERERS)}")
    return paths


@dataclass(frozen=True, slots=True)
class ReportConfig(Section):
    """The paths of the report files, with placeholders."""

    paths: tuple[str, ...] = setting(_report_paths, "NOROBOTS_REPORT")
