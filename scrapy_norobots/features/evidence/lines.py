"""`LineReader`: reads lines of decisions as dicts, and decodes what the lines of an origin share once.

`Chain` and `DecisionLines` write them: the number of a line, the digest of the one before, a time and a URL;
then come the facts that the lines of an origin share.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from sys import intern
from typing import Any

# A line as it is written. Neither value of these four has an escape, so none has to be decoded.
_LINE = re.compile(
    r'\{"seq": ([1-9][0-9]*), "prev": "([0-9a-f]+)", "time": "([0-9TZ:.-]+)", '
    r'"url": "([^"\\\x00-\x1f]*)", (".*)\}'
)

# How many ends of lines are remembered, and how long one may be, in characters.
_REMEMBERED = 30_000
_LONGEST_REMEMBERED = 2_000


class LineReader:
    """Reads the lines of a run."""

    def __init__(self) -> None:
        self._first: dict[str, dict[str, Any]] = {}  # the first line with an end

    def read(self, line: bytes) -> tuple[Mapping[str, Any], str]:
        """Return the facts of a line, and its end: what follows the URL, or nothing.

        Lines of the same end that is not empty differ in the values of `seq`, `prev`, `time` and `url` alone.
        Raises `ValueError` if a line is not JSON, or has a key twice.
        """
        text = line.decode()
        match = _LINE.fullmatch(text)
        if match is None:
            return _DECODER.decode(text), ""
        number, previous, time, url, end = match.groups()
        first = self._first.get(end)
        if first is None:
            return self._read_first(text, end)
        facts = first.copy()
        facts["seq"], facts["prev"], facts["time"], facts["url"] = int(number), previous, time, url
        return facts, end

    def _read_first(self, text: str, end: str) -> tuple[Mapping[str, Any], str]:
        facts = _DECODER.decode(text)
        if len(end) > _LONGEST_REMEMBERED:
            return facts, ""
        if len(self._first) >= _REMEMBERED:
            self._first.clear()
        # Interned keys take no memory for each line.
        self._first[end] = {intern(key): value for key, value in facts.items()}
        return facts, end


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_unique)
