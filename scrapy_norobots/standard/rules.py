"""The rules of one robot, ready to be asked (clauses U1 to U6).

A `RuleSet` keeps sorted prefixes of which none begins another. If any of them begins a target, it is
the last that does not sort after the target: one bisection and one `str.startswith` answer for any
number of rules. A `Glance` is enough of it to let most URLs pass without taking them apart.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from scrapy_norobots.standard.urls import Origin, is_normal, normal, split, written

# U4: values that are whole URLs, and those of schemes that have no host and so name nothing here.
WHOLE_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")
OTHER_SCHEME = re.compile(
    r"(?:about|blob|data|file|ftp|gopher|javascript|mailto|news|sms|tel|urn):", re.ASCII | re.IGNORECASE
)


def prefix_of(value: str) -> tuple[Origin | None, str] | None:
    """Return which origin's targets a rule's value forbids, and the prefix they start with.

    The origin is None for a rule that counts wherever the file does. Returns None for a value that
    forbids nothing: an empty one (U2), or a URL that no robots.txt can rule (U4).
    """
    if WHOLE_URL.match(value):
        try:
            origin, target = split(value)
        except ValueError:
            return None
        return None if origin is None or target is None else (origin, target)
    if not value or OTHER_SCHEME.match(value):
        return None
    return None, value if value.startswith("/") else "/" + value


# Up to so many prefixes, it is faster to try them all than to look one up.
_FEW = 20

# Up to so many characters are looked at to tell how many prefixes begin, and to tell them apart.
_LONGEST_BEGINNING = 200
_LONGEST_KEY = 32

# What is enough to see that a URL is allowed, as most are, if it starts with `base` and is plain: without
# ``%``, ``/.``, tab and line end. The normal form of a plain URL differs from it only in characters that
# become ``%XX`` (U6), so it is forbidden only if it starts, from `start` on, with what stands before the
# first ``%`` of a prefix. If these heads are few, they are `few`, and `keys` is empty. Else `few` is how they
# all begin, `keys` has what each of them has at `cut`, but for the `short` ones, which end before. `base` is
# how URLs of an origin begin, up to the first ``/`` of the path, `start` the place of this ``/``; the origin
# and the rules themselves answer what remains. It is a plain tuple, (base, start, few, cut, keys, short,
# origin, rules): one with names takes four times as long to take apart.
Glance: TypeAlias = (
    "tuple[str, int, tuple[str, ...], slice, frozenset[str], tuple[str, ...], Origin, RuleSet]"
)


class Heads(NamedTuple):
    """What stands before the first ``%`` of prefixes, as a glance asks it; `cut` is counted from the path."""

    few: tuple[str, ...]
    cut: slice
    keys: frozenset[str]
    short: tuple[str, ...]


class RuleSet:
    """What one robot may not fetch."""

    __slots__ = ("_heads", "_lines", "_of_origin", "_prefixes")

    def __init__(self, rules: Iterable[tuple[int, str]]) -> None:
        """Prepare rules, (line, value) in file order; of two that forbid the same, the first counts."""
        general: dict[str, int] = {}
        of_origin: dict[Origin, dict[str, int]] = {}
        for line, value in rules:
            if value.startswith("/") and is_normal(value):  # as most are
                general.setdefault(value, line)
                continue
            found = prefix_of(value)
            if found is not None:
                origin, prefix = found
                prefixes = general if origin is None else of_origin.setdefault(origin, {})
                prefix = written(prefix)
                prefixes.setdefault(prefix, line)
                prefixes.setdefault(normal(prefix, is_prefix=True), line)  # U6
        self._prefixes, self._lines = _minimal(general)
        self._of_origin = {origin: _minimal(prefixes) for origin, prefixes in of_origin.items()}
        self._heads: dict[Origin | None, Heads] = {}

    def glance(self, url: str, origin: Origin) -> Glance | None:
        """Return what is enough for most URLs that begin as this one of `origin`, None if it has no path."""
        start = url.find("/", url.find("://") + 3)
        base = url[: start + 1]
        if start < 0 or split(base + "-") != (origin, "/-"):
            return None
        own = origin if origin in self._of_origin else None
        heads = self._heads.get(own)
        if heads is None:
            prefixes = self._prefixes + (self._of_origin[own][0] if own else [])
            heads = self._heads[own] = _heads({prefix.partition("%")[0] for prefix in prefixes})
        cut = slice(start + heads.cut.start, start + heads.cut.stop)
        return base, start, heads.few, cut, heads.keys, heads.short, origin, self

    def match(self, origin: Origin | None, target: str) -> int | None:
        """Return the line of a rule that forbids the target, as written or in normal form (U6), else None."""
        if is_normal(target):
            return self.look_up(origin, target)
        target = written(target)
        line = self.look_up(origin, target)
        return self.look_up(origin, normal(target)) if line is None else line

    def look_up(self, origin: Origin | None, target: str) -> int | None:
        """Return the line of a rule that forbids the target, just as it stands here, else None."""
        line = _find(self._prefixes, self._lines, target)
        if line is None and origin in self._of_origin:
            return _find(*self._of_origin[origin], target)
        return line


def _minimal(lines: dict[str, int]) -> tuple[list[str], array[int]]:
    """Return the shortest of some prefixes, and their lines."""
    prefixes = _shortest(lines)
    return prefixes, array("q", map(lines.__getitem__, prefixes))


def _shortest(prefixes: Iterable[str]) -> list[str]:
    """Sort prefixes and drop those that begin with another: it forbids all that they do."""
    kept: list[str] = []
    for prefix in sorted(prefixes):
        if not kept or not prefix.startswith(kept[-1]):
            kept.append(prefix)
    return kept


def _heads(prefixes: Iterable[str]) -> Heads:
    heads = _shortest(prefixes)
    if len(heads) <= _FEW:
        return Heads(tuple(heads), slice(0, 0), frozenset(), ())
    # Sorted as they are, what the first and the last have in common, all have.
    pairs = enumerate(zip(heads[0][:_LONGEST_BEGINNING], heads[-1], strict=False))
    same = next((at for at, (one, other) in pairs if one != other), len(heads[0][:_LONGEST_BEGINNING]))
    few = {heads[0][:same]}
    for length in range(same + 1, same + 10):
        longer = {head[:length] for head in heads}
        if len(longer) > _FEW:
            break
        few = longer
    # The longer the keys, the more of them; so a few heads may be shorter.
    end = min(sorted(map(len, heads))[_FEW], same + _LONGEST_KEY)
    cut = slice(same, end)
    keys = frozenset(head[cut] for head in heads if len(head) >= end)
    return Heads(tuple(few), cut, keys, tuple(head for head in heads if len(head) < end))


def _find(prefixes: list[str], lines: array[int], target: str) -> int | None:
    index = bisect_right(prefixes, target) - 1
    return lines[index] if index >= 0 and target.startswith(prefixes[index]) else None
