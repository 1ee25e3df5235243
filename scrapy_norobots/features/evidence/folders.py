"""Finds the evidence files in folders, and says what it passes over."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from scrapy_norobots.features.evidence.fields import DECISIONS_SUFFIX, WARC_SUFFIX


class Folders:
    """The evidence files in folders and their subfolders, each once. `problems` are what could not be read.

    A symbolic link to a folder is not followed, since it may lead anywhere. It is a problem, unless its
    folder is read anyway.
    """

    def __init__(self, folders: list[Path]) -> None:
        self.problems: list[tuple[str, str]] = []
        self._links: list[tuple[str, str]] = []
        self._seen: set[str] = set()
        # The key is the real path, as a file may be reached on several ways.
        found: dict[str, Path] = {}
        for folder in folders:
            for path in self._walk(folder):
                found.setdefault(os.path.realpath(path), path)
        self.files = list(found.values())
        for link, target in self._links:
            if target not in self._seen:
                self.problems.append(
                    (link, "is a link to a folder, which is not followed; name that folder too")
                )

    def _walk(self, folder: Path) -> Iterator[Path]:
        for name, folders, files in os.walk(folder, onerror=self._add_error):
            place = Path(name)
            self._seen.add(os.path.realpath(place))
            links = [place / one for one in folders if (place / one).is_symlink()]
            self._links += [(str(link), os.path.realpath(link)) for link in links]
            for one in files:
                if one.endswith((WARC_SUFFIX, DECISIONS_SUFFIX)) and self._is_file(place / one):
                    yield place / one

    def _is_file(self, path: Path) -> bool:
        try:
            # Neither a link that leads nowhere, nor a pipe, which would have to be waited for.
            is_file = stat.S_ISREG(path.stat().st_mode)
        except OSError as exc:
            self._add_error(exc)
            return False
        if not is_file:
            self.problems.append((str(path), "is not a file"))
        return is_file

    def _add_error(self, exc: OSError) -> None:
        self.problems.append((str(exc.filename), exc.strerror or str(exc)))
