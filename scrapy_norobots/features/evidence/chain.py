"""`Chain`: numbers the lines of a run, and has each line name the digest of the line before it.

A line is one of three kinds. A file begins with an opening line, which has the name of the file (`opens`).
Then come decisions. The last line of a run is a closing line (`closes`). `seq` is the number of a decision,
counted from 1 through all files of the run; in other lines, that of the decision before. `prev` is the
SHA-256 of the line before, with its line feed; in the first line of a run, 64 zeros. The digest of the last
line is the *head*: it changes if anything in any line does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

OPENS, CLOSES = "opens", "closes"

# What the first line of a run names, which has no line before it.
START = 64 * "0"


class Chain:
    """The chain of one run: how many decisions it has so far, and its head."""

    def __init__(self) -> None:
        self.decisions = 0
        self.head = START

    def decision(self, facts: bytes) -> bytes:
        """Return the line of a decision; `facts` is a JSON object that is not empty."""
        self.decisions += 1
        return self._line(facts)

    def other(self, facts: Mapping[str, Any]) -> bytes:
        """Return an opening or closing line."""
        return self._line(json.dumps(facts).encode())

    def _line(self, facts: bytes) -> bytes:
        line = b'{"seq": %d, "prev": "%s", %s\n' % (self.decisions, self.head.encode(), facts[1:])
        self.head = sha256(line).hexdigest()
        return line


class ChainReader:
    """Checks the lines of a run, in the order of its files.

    `decisions` and `head` are those after the last line that was checked.
    """

    def __init__(self) -> None:
        self.decisions = 0
        self.head = START

    def problem(self, line: bytes, facts: Mapping[str, Any]) -> str:
        """Return what is wrong with the place of a line in the chain, empty if nothing is.

        Whatever it is, the next line is compared with this one. Raises `TypeError` if the line has no number.
        """
        number, previous = facts.get("seq"), facts.get("prev")
        if type(number) is not int:
            raise TypeError(f"seq is {number!r}")
        problem = ""
        expected = self.decisions + (OPENS not in facts and CLOSES not in facts)
        if number > expected:
            missing = number - expected
            problem = f"{missing:,} decision{'s' * (missing != 1)} before it {_are(missing)} missing"
        elif number < expected:
            problem = f"its number is {number}, not {expected}: a line was added, repeated or moved"
        elif previous != self.head:
            problem = "the line before it was changed or removed (prev)"
        self.decisions = number
        # Without the line feed, a last line that was cut off would seem whole.
        self.head = sha256(line + b"\n").hexdigest()
        return problem


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
