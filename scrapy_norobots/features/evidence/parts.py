"""`Parts`: a file of a run and those that follow it, numbered, each of about the same size.

What has been flushed is complete, and stays if a later write fails. A file that was removed or replaced
during the crawl is an `OSError`, so that nobody believes that it is there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple


class Part(NamedTuple):
    """A file that is closed: its name, its size in bytes and its SHA-256."""

    name: str
    size: int
    digest: str


class Out:
    """A file that is being written, and the digest of what was written to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO = path.open("xb")
        self.flush, self.tell = self._file.flush, self._file.tell
        self.digest = sha256()

    def write(self, data: bytes) -> int:
        """Write bytes."""
        self.digest.update(data)
        return self._file.write(data)

    def close(self) -> None:
        """Close it."""
        self._file.close()

    def close_at(self, size: int) -> None:
        """Close it, and remove what follows on a number of bytes. At its path, there may be another file."""
        descriptor = os.dup(self._file.fileno())
        try:
            with suppress(OSError):
                self._file.close()
            os.ftruncate(descriptor, size)
        finally:
            os.close(descriptor)

    def check(self) -> None:
        """Raise `FileNotFoundError` if the file is not in its folder any more."""
        if not os.path.samestat(_stat(self.path), os.fstat(self._file.fileno())):
            raise FileNotFoundError(2, "another file has replaced it", str(self.path))


def _stat(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except OSError as exc:  # a file may stand in place of the folder, or a link to itself
        raise FileNotFoundError(exc.errno, exc.strerror, str(path)) from exc


class Parts:
    """The files of one kind of a run; `closed` are those that are full.

    `begin` is called with each new file and the closed ones, to write what it begins with. Raises
    `FileExistsError` if a file of this name exists already.
    """

    def __init__(
        self, folder: Path, run: str, suffix: str, size_max: int, begin: Callable[[Out, list[Part]], object]
    ) -> None:
        self._folder = folder.absolute()  # the crawl may change the working directory
        self._run = run
        self._suffix = suffix
        self._size_max = size_max
        self._begin_with = begin
        self.closed: list[Part] = []
        self._begin()

    def file(self) -> Out:
        """Return the file to write to; begin the next one if it is full."""
        if self._complete >= self._size_max:
            self.close()
            self._begin()
        return self._file

    def last(self) -> Out:
        """Return the last file, full or not."""
        return self._file

    def flush(self) -> None:
        """Hand what has been written to the system; it is complete then."""
        self._file.flush()
        self._file.check()
        self._complete = self._file.tell()

    def close(self) -> None:
        """Close the last file, once all are known to be there."""
        self.flush()
        for part in self.closed:
            if _stat(self._folder / part.name).st_size != part.size:
                raise FileNotFoundError(2, "the file was changed", part.name)
        self.closed.append(Part(self._file.path.name, self._complete, self._file.digest.hexdigest()))
        self._file.close()

    def abandon(self) -> None:
        """Close the last file after an error, without what was written in part."""
        with suppress(OSError, ValueError):  # a ValueError if it is closed, and thus whole
            self._file.close_at(self._complete)

    def _begin(self) -> None:
        path = self._folder / f"{self._run}-{len(self.closed) + 1:05}{self._suffix}"
        # If that fails, the last file stays: one that exists is not ours, and must not be truncated.
        self._file = Out(path)
        self._complete = 0
        self._begin_with(self._file, self.closed)
        self.flush()
