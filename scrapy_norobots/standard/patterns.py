"""The rules of one robot by RFC 9309, prepared for fast matching (sections 2.2.2 and 2.2.3).

A `PatternSet` has rules of one kind. It finds one that matches by bisection among the prefixes, as `RuleSet`
does, then among the patterns. The rule that matches with the most octets decides, and of two equally long
ones the one that allows. Most URLs match no ``Disallow`` line, or no ``Allow`` line; an `Index` compares all
rules only if both kinds match. One pattern takes time proportional to the length of the target.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from scrapy_norobots.standard.rules import RuleSet, find, prefix_of, without_longer
from scrapy_norobots.standard.urls import (
    Origin,
    has_normal_octets,
    has_one_form,
    is_robots_txt,
    normal,
    octets,
    without_cut_off,
)

# RFC 9309, 2.2: a path has no blanks and no control characters. A "%" without digits may mean anything.
_NO_PATH = re.compile(r"[\x00-\x20\x7f]|%(?![0-9A-Fa-f]{2})")
_PART_OF_ESCAPE = re.compile(r"\*[0-9A-Fa-f]")
_IN_ESCAPE = re.compile(r"\*[0-9A-F]")


class Pattern(NamedTuple):
    """The path of a rule in normal form, and whether it allows; `origin` is set for a whole URL (U4)."""

    path: str
    allows: bool
    origin: Origin | None = None


def pattern_of(value: str, *, allows: bool) -> Pattern | None:
    """Return the pattern of a rule with this value; None if it has no effect.

    What the RFC leaves open never allows more: if the value of a ``Disallow`` line starts neither with ``/``
    nor with ``*``, it is read as in the strict reading (U4, U5), and its blanks are percent-encoded. Such an
    ``Allow`` line has no effect. `_split` does not call this for a value that is its own path.
    """
    if value.startswith(("/", "*")):
        return None if allows and _NO_PATH.search(value) else Pattern(_octets(value), allows)
    found = None if allows else prefix_of(value)
    return None if found is None else Pattern(_octets(found[1]), allows, found[0])


def _split(values: list[str], *, allows: bool) -> tuple[list[str], list[str], list[Pattern]]:
    """Return the paths that are prefixes, those that are patterns, and the rules with a whole URL."""
    joined = "".join(values)
    paths = values
    whole_urls: list[Pattern] = []
    if joined and not ({value[0] for value in values} <= {"/", "*"} and has_normal_octets(joined)):
        odd = {value for value in values if value[0] not in "/*" or not has_normal_octets(value)}
        patterns = [pattern for value in odd if (pattern := pattern_of(value, allows=allows))]
        paths = [value for value in values if value not in odd]
        paths += [pattern.path for pattern in patterns if pattern.origin is None]
        whole_urls = [pattern for pattern in patterns if pattern.origin is not None]
    if "*" not in joined and "$" not in joined:
        return paths, [], whole_urls
    plain: list[str] = []
    special: list[str] = []
    for path in paths:
        (special if "*" in path or path[-1] == "$" else plain).append(path)
    return plain, special, whole_urls


class PatternSet:
    """The rules of one kind, ``Disallow`` or ``Allow``, as patterns of targets."""

    __slots__ = ("_index", "_is_plain", "_prefixes", "_stars", "_whole_urls", "strict")

    def __init__(
        self,
        values: Iterable[str],
        *,
        allows: bool = False,
        index: Index | None = None,
        strict: RuleSet | None = None,
    ) -> None:
        """Prepare the rules with these values, of which empty ones have no effect.

        An `index` of all rules of the robot decides whether a rule is overruled. `strict` rules with one form
        are never overruled.
        """
        self._index, self.strict = index, strict
        paths, special, self._whole_urls = _split(list(filter(None, values)), allows=allows)
        # The patterns, by what a target must contain to match them; each has a "*", or a final "$".
        self._stars: dict[str, list[str]] = {}
        for path in special:
            short = path.rstrip("*")  # a final "*" matches the same, unless it follows a "$"
            if short[-1:] == "$":
                self._stars.setdefault(_last_part(path), []).append(path)
            elif "*" in short:
                self._stars.setdefault(_last_part(short), []).append(short)
            else:
                paths.append(short)  # to a list that `_split` has made
        self._prefixes = without_longer(sorted([*strict.paths, *paths] if strict else paths))
        # Whether a target without escapes and dot segments may be compared as it is: then no path, and no
        # part of one, can match within an escape.
        joined = "".join([*self._prefixes, *special])
        self._is_plain = not (self._whole_urls or "%" in joined or _IN_ESCAPE.search(joined))

    @property
    def size(self) -> int:
        """Approximate memory use, in bytes."""
        count = len(self._prefixes) + 4 * sum(map(len, self._stars.values()))
        own = 65 * count + 200 * len(self._whole_urls) + sum(map(len, self._prefixes))
        return own + sum(one.size for one in (self._index, self.strict) if one)

    def match(self, origin: Origin | None, target: str) -> str | None:
        """Return the path of a rule that matches `target` at `origin`; None if none does, or it is overruled.

        robots.txt itself may always be fetched (2.2.2), so no rule matches it.
        """
        is_plain = self._is_plain and "%" not in target and ("." not in target or "/." not in target)
        if is_plain or (not self._whole_urls and has_one_form(target)):
            prefixes = self._prefixes  # the usual case, as in `find` and `_starred`, but without calls
            place = bisect_right(prefixes, target)
            path = prefixes[place - 1] if place and target.startswith(prefixes[place - 1]) else None
            if path is None:
                for part in self._stars:
                    if part in target:
                        path = self._starred(target)
                        break
                else:
                    return None
        else:
            found = (self._match_form(origin, form) for same in _forms_of(target) for form in same)
            path = next((one for one in found if one is not None), None)
        if path is None or is_robots_txt(target):
            return None
        if self._index is None or (self.strict and self.strict.match(origin, target)):
            return path
        return path if self._index.forbids(origin, target) else None

    def _match_form(self, origin: Origin | None, form: str) -> str | None:
        path = find(self._prefixes, form)
        if path is None:
            path = self._starred(form)
        if path is None and self._whole_urls:
            own = (each.path for each in self._whole_urls if each.origin == origin)
            path = next((path for path in own if matches(path, form)), None)
        return path

    def _starred(self, form: str) -> str | None:
        for part, paths in self._stars.items():
            if part in form:
                for path in paths:
                    if form.startswith(path[: path.find("*")]) and matches(path, form):
                        return path
        return None


def with_signs(values: list[str]) -> list[str]:
    """Return the values with ``*`` or ``$``, which mean nothing special in the strict reading."""
    joined = "".join(values)
    if "*" not in joined and "$" not in joined:
        return []
    return [value for value in values if "*" in value or "$" in value]


class Index:
    """All rules of a robot with ``Allow`` lines, to find the one that matches with the most octets."""

    __slots__ = ("_allowing", "_lengths", "_plain", "_special", "values")

    def __init__(self, allows: list[str], disallows: list[str]) -> None:
        """Make an index of the rules with these values."""
        self.values = allows, disallows
        self._allowing: PatternSet | None = None
        self._lengths: list[int] | None = None  # the rest is prepared with it

    @property
    def size(self) -> int:
        """Approximate memory use, in bytes."""
        texts = [value for values in self.values for value in values]
        return 65 * len(texts) * (1 if self._lengths is None else 4) + sum(map(len, texts))

    def forbids(self, origin: Origin | None, target: str) -> bool:
        """Return whether a target that a ``Disallow`` line matches is forbidden."""
        if self._allowing is None:
            self._allowing = PatternSet(self.values[0], allows=True)
        if self._allowing.match(origin, target) is None:
            return True
        decided = self.deciding(origin, target)
        return decided is not None and not decided.allows

    def prepare(self) -> list[int]:
        """Do the work that the first call of `deciding` needs."""
        allows, disallows = (list(filter(None, values)) for values in self.values)
        forbidden, special, whole_urls = _split(disallows, allows=False)
        allowed, special_allowed, _ = _split(allows, allows=True)
        self._plain = dict.fromkeys(forbidden, False) | dict.fromkeys(allowed, True)  # allowing wins
        patterns = [Pattern(path, False) for path in special] + whole_urls
        patterns += [Pattern(path, True) for path in special_allowed]
        patterns.sort(key=_rank, reverse=True)
        self._special = [(_rank(pattern), _last_part(pattern.path), pattern) for pattern in patterns]
        self._lengths = sorted(set(map(len, self._plain)), reverse=True)
        return self._lengths

    def deciding(self, origin: Origin | None, target: str) -> Pattern | None:
        """Return the rule that decides about a target: the one that matches with the most octets.

        The target is compared as sent, and with dot segments resolved. A rule that forbids either decides.
        """
        decided: Pattern | None = None
        for forms in _forms_of(target):
            found = [self._longest(origin, form, is_sent=form is forms[0]) for form in forms]
            longest = max(filter(None, found), key=_rank, default=None)
            if longest is not None and not longest.allows:
                return longest
            decided = decided or longest
        return decided

    def _longest(self, origin: Origin | None, form: str, *, is_sent: bool) -> Pattern | None:
        """Return the rule that matches with the most octets; of two equally long ones, one that allows.

        A part of an escape that the target does not have, as it is sent, allows nothing.
        """
        lengths = self.prepare() if self._lengths is None else self._lengths
        paths = (form[:length] for length in lengths)
        best = next((Pattern(path, self._plain[path]) for path in paths if path in self._plain), None)
        rank = (-1, False) if best is None else _rank(best)
        for other_rank, part, other in self._special:
            if rank >= other_rank:
                break
            if not is_sent and other.allows and _may_cut(other.path):
                continue
            if part in form and other.origin in (None, origin) and matches(other.path, form):
                return other
        return best


def _may_cut(path: str) -> bool:
    """Return whether a path may match a part of an escape that only one form of a target has."""
    return "%2" not in path or _PART_OF_ESCAPE.search(path) is not None


def _rank(pattern: Pattern) -> tuple[int, bool]:
    return len(pattern.path), pattern.allows


def matches(path: str, target: str) -> bool:
    """Return whether a path is a prefix of a target, where ``*`` and a final ``$`` are special (2.2.3).

    It alone decides; what is done before only leaves out what cannot match. `features/usage` calls it too.
    """
    first, *parts = path.removesuffix("$").split("*")
    if not target.startswith(first):
        return False
    place = len(first)
    last = parts.pop() if parts else None
    for part in parts:
        place = target.find(part, place)
        if place < 0:
            return False
        place += len(part)
    if not path.endswith("$"):
        return last is None or target.find(last, place) >= 0
    return (
        place == len(target) if last is None else target.endswith(last) and len(target) - len(last) >= place
    )


def _last_part(path: str) -> str:
    """Return what a target must contain to match a pattern."""
    return path.removesuffix("$").rpartition("*")[2]


def _octets(path: str) -> str:
    """Return a path in normal form, except for escapes that are cut off at the end of a part of it."""
    if has_normal_octets(path):
        return path
    parts = map(without_cut_off, path.split("*"))
    return "*".join(octets(part) + cut_off for part, cut_off in parts)


def _forms_of(target: str) -> list[tuple[str, ...]]:
    """Return the forms in which a target is compared: as sent, and with dot segments resolved.

    The escapes of ``*`` and ``$`` in a rule stand for these characters (2.2.3), so each form has another one.
    """
    if has_one_form(target):
        return [(target,)]
    forms = dict.fromkeys((octets(target), normal(target)))
    return [tuple(dict.fromkeys((form, form.replace("*", "%2A").replace("$", "%24")))) for form in forms]
