"""The settings of one crawl for evidence."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy_norobots.settings import Section, error, flag, setting, value_of

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def _folder(settings: BaseSettings, name: str) -> str:
    """Return the path of a folder, with its placeholders; empty if no folder is set."""
    value = value_of(settings, name)
    if not isinstance(value, (str, os.PathLike)) or isinstance(path := os.fspath(value), bytes):
        raise error(name, value, "must be the path of a folder")
    if "://" in path:
        raise error(name, value, "must be the path of a folder, not a URL")
    return path


@dataclass(frozen=True, slots=True)
class EvidenceConfig(Section):
    """The settings of one crawl for evidence.

    `folder` is a path with placeholders; if it is empty, nothing is recorded.
    """

    folder: str = setting(_folder, "NOROBOTS_EVIDENCE")
    allowed: bool = setting(flag, "NOROBOTS_EVIDENCE_ALLOWED")
    required: bool = setting(flag, "NOROBOTS_EVIDENCE_REQUIRED")
