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

from scrapy_norobots.features.evidence import fields
from scrapy_norobots.features.evidence.chain import CLOSES, OPENS

# A line as it is written. Neither value of these four has an escape, so none has to be decoded.
_LINE = re.compile(
    r'\{"seq": ([1-9][0-9]*), "prev": "([0-9a-f]+)", "time": "([0-9TZ:.-]+)", '
    r'"url": "([^"\\\x00-\x1f]*)", (".*)\}'
)

# The keys of the lines that are not decisions, and the types of their values.
_OPENING = {"seq": int, "prev": str, OPENS: str}
_CLOSING = {
    "seq": int, "prev": str, CLOSES: str, "time": str, "decisions": dict, "answers": int, "lost": int,
    "files": dict,
}  # fmt: skip
_FILE = {"size": int, "sha256": str}

# How many ends of lines are remembered, and how long one may be, in characters.
_REMEMBERED = 30_000
_LONGEST_REMEMBERED = 2_000


def check_opening_line(facts: Mapping[str, Any]) -> None:
    """Raise `ValueError` or `TypeError` if an opening line has another form than those that are written."""
    _check_form(facts, _OPENING)


def check_closing_line(facts: Mapping[str, Any]) -> None:
    """Raise `ValueError` or `TypeError` if a closing line has another form than those that are written."""
    _check_form(facts, _CLOSING)
    fields.check_date(facts["time"])
    for file in facts["files"].values():
        if type(file) is not dict:
            raise TypeError(f"files is {facts['files']!r}")
        _check_form(file, _FILE)


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
            return decode(text), ""
        number, previous, time, url, end = match.groups()
        first = self._first.get(end)
        if first is None:
            return self._read_first(text, end)
        facts = first.copy()
        facts["seq"], facts["prev"], facts["time"], facts["url"] = int(number), previous, time, url
        return facts, end

    def _read_first(self, text: str, end: str) -> tuple[Mapping[str, Any], str]:
        facts = decode(text)
        if len(end) > _LONGEST_REMEMBERED:
            return facts, ""
        if len(self._first) >= _REMEMBERED:
            self._first.clear()
        # Interned keys take no memory for each line.
        self._first[end] = {intern(key): value for key, value in facts.items()}
        return facts, end


def _check_form(facts: Mapping[str, Any], types: Mapping[str, type]) -> None:
    """Raise `ValueError` if a dict has other keys than these, `TypeError` if a value has another type."""
    if facts.keys() != types.keys():
        raise ValueError(f"its keys are {', '.join(facts)}")
    for name, kind in types.items():
        if type(facts[name]) is not kind:
            raise TypeError(f"{name} is {facts[name]!r}")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_unique)


def decode(text: str) -> Any:
    """Return the value of a JSON text; raise `ValueError` if it is none, or if an object has a key twice."""
    return _DECODER.decode(text)
