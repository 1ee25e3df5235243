"""Names of robots: get the name from a User-Agent, and compare it with that of a ``User-agent`` line.

The standard of 1994 asks robots to be liberal: "A case insensitive substring match of the name without
version information is recommended" (clauses A1, A2 and A5). By RFC 9309, a robot has a product token, which
is compared as a whole (2.2.1). `Robot.of` returns both.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from scrapy_norobots.standard.lines import BLANKS

# The User-Agent of a robot in the form of browsers: Mozilla/5.0 (compatible; FooBot/1.2; +http://…).
_COMPATIBLE = re.compile(
    r"Mozilla/.*?[(;][ \t]*compatible;[ \t]*([^;) \t][^;)]*)", re.ASCII | re.DOTALL | re.IGNORECASE
)

# The end of a name: its version, or a comment in brackets. The pattern matches one blank and not several,
# which would take quadratic time for a long line of blanks.
_AFTER_NAME = re.compile(r"/|[ \t][(\[]")

# A version after a name without a slash; a number without a dot may be part of the name.
_DOTTED_VERSION = re.compile(r"[ \t]v?\d+(?:\.\w+)+\Z", re.ASCII | re.IGNORECASE)


# RFC 9309, 2.2.1: an identifier, or else a word up to a version.
_TOKEN = re.compile(r"[ \t\v\f]*([A-Za-z_-]+|[^\s/]+)", re.ASCII)
_MOZILLA = re.compile(r"Mozilla(?:/|\Z)", re.ASCII | re.IGNORECASE)
_COMMENT = re.compile(r"\((?:[^()]|\([^()]*\))*\)")

# Names are cached, because every request has a header, and most files have the same names. Longer names of a
# file are not cached, because many of them could fill the memory.
_LONGEST_REMEMBERED = 300


def robot_name(user_agent: str) -> str:
    """Return the name without version from a whole User-Agent header or a name (A1).

    >>> robot_name("FooBot/1.2 (+http://foo.example/bot)")
    'FooBot'
    >>> robot_name("Mozilla/5.0 (compatible; FooBot/1.2; +http://foo.example/bot)")
    'FooBot'
    """
    name = user_agent.strip(BLANKS)
    compatible = _COMPATIBLE.match(name)
    if compatible:
        name = compatible[1].rstrip(BLANKS)
    if end := _AFTER_NAME.search(name):
        name = name[: end.start()].rstrip(BLANKS)
    last_blank = max(map(name.rfind, BLANKS))
    if last_blank >= 0 and _DOTTED_VERSION.match(name, last_blank):
        name = name[:last_blank].rstrip(BLANKS)
    return name


class Robot(NamedTuple):
    """A robot as the readings know it: its `name` without version (A1), and its product `token` (2.2.1)."""

    name: str
    token: str

    @classmethod
    def of(cls, robot: str | bytes) -> Robot:
        """Return the robot with a name or a whole User-Agent header.

        Raises `TypeError` for types other than `str` and `bytes`.
        """
        try:
            return _to_robot(robot)
        except TypeError:
            raise TypeError(f"a robot must be a str or bytes, not {type(robot).__name__}") from None


@lru_cache(maxsize=4096)
def _to_robot(robot: str | bytes) -> Robot:
    text = robot if isinstance(robot, str) else bytes.decode(robot, "utf-8", "surrogateescape")
    return Robot(robot_name(text), token_of(_product(text)))


def to_name(robot: str | bytes) -> str:
    """Return the name of a robot without version, given a name or a whole User-Agent header.

    Raises `TypeError` for types other than `str` and `bytes`.
    """
    return Robot.of(robot).name


def _product(user_agent: str) -> str:
    """Return the part of a User-Agent header that starts with the first product that is not ``Mozilla``."""
    text = user_agent.strip(BLANKS)
    if compatible := _COMPATIBLE.match(text):
        return compatible[1]
    if not _MOZILLA.match(text):
        return text
    return next((word for word in _COMMENT.sub(" ", text).split() if not _MOZILLA.match(word)), text)


def token_of(value: str) -> str:
    """Return the product token with which a name or the value of a ``User-agent`` line begins, in lower case.

    A token has letters, ``_`` and ``-`` only, so a version, or other words, are not a part of it. A name that
    starts with another character has no token; its first word is compared in place of it.

    >>> token_of("FooBot/1.2"), token_of("360Bot 1.2")
    ('foobot', '360bot')
    """
    word = _TOKEN.match(value)
    return word[1].lower() if word else ""


def names_robot(value: str, folded_name: str) -> bool:
    """Return whether the value of a ``User-agent`` line names the robot with this case-folded name (A2, A5).

    An empty value names no robot; nor does ``*``, which marks the default record.
    """
    if value == "*":
        return False
    name = _to_line_name(value) if len(value) <= _LONGEST_REMEMBERED else robot_name(value)
    wanted = name.casefold()
    return wanted != "" and wanted in folded_name


_to_line_name = lru_cache(maxsize=4096)(robot_name)


def is_for_all(value: str) -> bool:
    """Return whether the value of a ``User-agent`` line is ``*``, or starts with it and a blank (2.2.1)."""
    return value[:1] == "*" and not value[1:2].strip(" \t\v\f")
