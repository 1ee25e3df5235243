"""`PatternSet`: the rules of one robot by RFC 9309, prepared for fast matching (sections 2.2.2 and 2.2.3).

The rule that matches with the most octets decides, and of two equally long ones the one that allows. Most
URLs match no ``Disallow`` line at all, so `PatternSet.match` looks for one first: by bisection among the
prefixes, as in `RuleSet`, then among the patterns. Only if there is one, and the robot has ``Allow`` lines,
all rules are compared. One pattern takes time proportional to the length of the target, however many ``*``
it has.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable
from typing import NamedTuple

from scrapy_norobots.standard.rules import find, prefix_of, without_longer
from scrapy_norobots.standard.urls import Origin, has_normal_octets, is_normal, is_robots_txt, normal, octets

# RFC 9309, 2.2: a path has no blanks and no control characters.
_NO_PATH = re.compile(r"[\x00-\x20\x7f]")
_IN_ESCAPE = re.compile(r"%|\*[0-9A-F]")
# An escape that is cut off at the end of a part of a pattern: any of the escapes that begin so matches.
_CUT_OFF = re.compile(r"%[0-9A-Fa-f]?\Z")


class Pattern(NamedTuple):
    """The path of a rule in normal form, and whether it allows; `origin` is set for a whole URL (U4)."""

    path: str
    allows: bool
    origin: Origin | None = None


def pattern_of(value: str, *, allows: bool) -> Pattern | None:
    """Return the pattern of a rule with this value; None if it has no effect.

    What the RFC leaves open never allows more: if the value of a ``Disallow`` line starts neither with ``/``
    nor with ``*``, it is read as in the strict reading (U4, U5), and its blanks are percent-encoded. Such an
    ``Allow`` line has no effect.
    """
    if value.startswith(("/", "*")):
        return None if allows and _NO_PATH.search(value) else Pattern(_octets(value), allows)
    found = None if allows else prefix_of(value)
    return None if found is None else Pattern(_octets(found[1]), allows, found[0])


def _split(
    values: list[str], *, allows: bool, forbidden: Collection[str] = ()
) -> tuple[list[str], list[str], list[Pattern]]:
    """Return the paths that are prefixes, those that are patterns, and the rules with a whole URL.

    Prefixes that the strict reading forbids too, however a target is spelt, are left out.
    """
    joined = "".join(values)
    paths = values
    whole_urls: list[Pattern] = []
    if not ({value[0] for value in values} <= {"/", "*"} and has_normal_octets(joined)):
        odd = {value for value in values if value[0] not in "/*" or not has_normal_octets(value)}
        patterns = [pattern for value in odd if (pattern := pattern_of(value, allows=allows))]
        paths = [value for value in values if value not in odd]
        paths += [pattern.path for pattern in patterns if pattern.origin is None]
        whole_urls = [pattern for pattern in patterns if pattern.origin is not None]
    special: list[str] = []
    if "*" in joined or "$" in joined:
        special = [path for path in paths if "*" in path or path[-1] == "$"]
        paths = [path for path in paths if "*" not in path and path[-1] != "$"]
    if forbidden and "%" not in joined and "/." not in joined and joined.isascii():
        known = set(forbidden)
        paths = [path for path in paths if path not in known]
    return paths, special, whole_urls


class PatternSet:
    """What one robot may and must not fetch, as patterns of targets."""

    __slots__ = ("_index", "_is_plain", "_prefixes", "_stars", "_values", "_whole_urls")

    def __init__(
        self, allows: Iterable[str], disallows: Iterable[str], forbidden: Collection[str] = ()
    ) -> None:
        """Prepare the rules with these values, of which empty ones have no effect.

        `match` need not find the prefixes `forbidden`, which the strict reading forbids before it is asked.
        """
        disallows, allows = list(filter(None, disallows)), list(filter(None, allows))
        paths, special, self._whole_urls = _split(disallows, allows=False, forbidden=forbidden)
        self._stars: list[tuple[str, str]] = []  # each with its last part
        for path in special:
            short = path.rstrip("*")  # a final "*" matches the same, unless it follows a "$"
            if short[-1:] == "$" != path[-1]:
                self._stars.append(("", path))
            elif _is_special(short):
                self._stars.append((_last_part(short), short))
            else:
                paths = [*paths, short]
        self._prefixes = without_longer(sorted(paths))
        # Whether a target without escapes and dot segments may be compared as it is: then no path, and no
        # part of one, can match within an escape.
        within = "%" in "".join(self._prefixes) or any(_IN_ESCAPE.search(path) for _, path in self._stars)
        self._is_plain = not self._whole_urls and not within
        # The longest match matters only if something is allowed; most URLs match no rule that forbids.
        self._values = (allows, disallows) if allows else None
        self._index: Index | None = None

    @property
    def size(self) -> int:
        """Approximate memory use, in bytes."""
        texts = [*self._prefixes, *(value for values in self._values or () for value in values)]
        count = len(texts) + 4 * len(self._stars) + (3 * len(texts) if self._index else 0)
        return 65 * count + 200 * len(self._whole_urls) + sum(map(len, texts))

    def match(self, origin: Origin | None, target: str) -> str | None:
        """Return the path of a rule that forbids `target` at `origin`; None if it is allowed.

        robots.txt itself may always be fetched (2.2.2).
        """
        if self._is_plain and "%" not in target and "/." not in target:
            prefixes = self._prefixes  # the usual case, as in `find` and `_starred`, but without calls
            place = bisect_right(prefixes, target)
            path = prefixes[place - 1] if place and target.startswith(prefixes[place - 1]) else None
            if path is None:
                for part, starred in self._stars:
                    if part in target and matches(starred, target):
                        path = starred
                        break
                else:
                    return None
        elif is_normal(target) and "*" not in target and "$" not in target:
            path = self._disallowing(origin, target)
        else:
            forms = (form for same in _forms_of(target) for form in same)
            path = next(
                (found for form in forms if (found := self._disallowing(origin, form)) is not None), None
            )
        if path is None or is_robots_txt(target):
            return None
        if self._values is None:
            return path
        if self._index is None:
            self._index = Index(*self._values)
        decided = self._index.deciding(origin, target)
        return None if decided is None or decided.allows else decided.path

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PatternSet):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__ if name != "_index")

    __hash__ = None  # type: ignore[assignment]

    def _disallowing(self, origin: Origin | None, form: str) -> str | None:
        path = find(self._prefixes, form)
        if path is None:
            path = self._starred(form)
        if path is None and self._whole_urls:
            own = (each.path for each in self._whole_urls if each.origin == origin)
            path = next((path for path in own if matches(path, form)), None)
        return path

    def _starred(self, form: str) -> str | None:
        for part, path in self._stars:
            if part in form and matches(path, form):
                return path
        return None


class Index:
    """All rules of a robot, to find the one that matches with the most octets."""

    def __init__(self, allows: list[str], disallows: list[str]) -> None:
        """Prepare the rules with these values, none of which is empty."""
        forbidden, special, whole_urls = _split(disallows, allows=False)
        allowed, special_allowed, _ = _split(allows, allows=True)
        self._plain = dict.fromkeys(forbidden, False) | dict.fromkeys(allowed, True)  # allowing wins
        self._lengths = sorted(set(map(len, self._plain)), reverse=True)
        patterns = [Pattern(path, False) for path in special] + whole_urls
        patterns += [Pattern(path, True) for path in special_allowed]
        patterns.sort(key=_rank, reverse=True)
        self._special = [(_rank(pattern), _last_part(pattern.path), pattern) for pattern in patterns]

    def deciding(self, origin: Origin | None, target: str) -> Pattern | None:
        """Return the rule that decides about a target: the one that matches with the most octets.

        The target is compared as sent, and with its dot segments resolved; a rule that forbids one of them
        decides.
        """
        decided: Pattern | None = None
        for forms in _forms_of(target):
            sent, *escaped = (self._longest(origin, form) for form in forms)
            # A part of a pattern may match within an escape that only this form has; that allows nothing.
            found = [sent] + [each for each in escaped if each and ("%2" in each.path or not each.allows)]
            longest = max(filter(None, found), key=_rank, default=None)
            if longest is not None and not longest.allows:
                return longest
            decided = decided or longest
        return decided

    def _longest(self, origin: Origin | None, form: str) -> Pattern | None:
        """Return the rule that matches with the most octets; of two equally long ones, one that allows."""
        paths = (form[:length] for length in self._lengths)
        best = next((Pattern(path, self._plain[path]) for path in paths if path in self._plain), None)
        rank = (-1, False) if best is None else _rank(best)
        for other_rank, part, other in self._special:
            if rank >= other_rank:
                break
            if part in form and other.origin in (None, origin) and matches(other.path, form):
                return other
        return best


def _rank(pattern: Pattern) -> tuple[int, bool]:
    return len(pattern.path), pattern.allows


def matches(path: str, target: str) -> bool:
    """Return whether a path is a prefix of a target, where ``*`` and a final ``$`` are special (2.2.3)."""
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


def _is_special(path: str) -> bool:
    return "*" in path or path[-1:] == "$"


def _last_part(path: str) -> str:
    """Return what a target must contain to match a pattern."""
    return path.removesuffix("$").rpartition("*")[2]


def _octets(path: str) -> str:
    """Return a path in normal form, except for escapes that are cut off at the end of a part of it."""
    if has_normal_octets(path):
        return path
    parts = []
    for part in path.split("*"):
        cut = _CUT_OFF.search(part)
        parts.append(octets(part[: cut.start()]) + cut[0] if cut else octets(part))
    return "*".join(parts)


def _forms_of(target: str) -> list[tuple[str, ...]]:
    """Return the forms in which a target is compared: as sent, and with dot segments resolved.

    The escapes of ``*`` and ``$`` in a rule stand for these characters (2.2.3), so each form has another one.
    """
    if "*" not in target and "$" not in target and is_normal(target):  # as most are
        return [(target,)]
    forms = dict.fromkeys((octets(target), normal(target)))
    return [tuple(dict.fromkeys((form, form.replace("*", "%2A").replace("$", "%24")))) for form in forms]
