"""Names of robots: get the name from a User-Agent, and compare it with a record's (clauses A1, A2 and A5).

The standard asks robots to be liberal here: "A case insensitive substring match of the name without
version information is recommended."
"""

from __future__ import annotations

import re
from functools import lru_cache

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


def to_name(robot: str | bytes) -> str:
    """Return the name of a robot without version, given a name or a whole User-Agent header.

    Raises `TypeError` for types other than `str` and `bytes`.
    """
    try:
        return _to_name(robot)
    except TypeError:
        raise TypeError(f"a robot must be a str or bytes, not {type(robot).__name__}") from None


@lru_cache(maxsize=4096)
def _to_name(robot: str | bytes) -> str:
    return robot_name(robot if isinstance(robot, str) else bytes.decode(robot, "utf-8", "surrogateescape"))


def names_robot(value: str, folded_name: str) -> bool:
    """Return whether the value of a ``User-agent`` line names the robot with this case-folded name (A2, A5).

    An empty value names no robot; nor does ``*``, which marks the default record.
    """
    if value == "*":
        return False
    name = _to_name(value) if len(value) <= _LONGEST_REMEMBERED else robot_name(value)
    wanted = name.casefold()
    return wanted != "" and wanted in folded_name
