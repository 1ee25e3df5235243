"""The rules of one robot, ready to be asked (clauses U1 to U6).

A `RuleSet` keeps sorted prefixes of which none begins another. If any of them begins a target, it is
the last that does not sort after the target: one bisection and one `str.startswith` answer for any
number of rules.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable

from scrapy_norobots.standard.records import Rule
from scrapy_norobots.standard.urls import Origin, normal, split, written

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


class RuleSet:
    """What one robot may not fetch; false if that is nothing at all."""

    __slots__ = ("_of_origin", "_prefixes", "_rules")

    def __init__(self, rules: Iterable[Rule]) -> None:
        """Prepare rules given in file order; of two that forbid the same, the first is remembered."""
        general: dict[str, Rule] = {}
        of_origin: dict[Origin, dict[str, Rule]] = {}
        for rule in rules:
            found = prefix_of(rule.value)
            if found is not None:
                origin, prefix = found
                prefixes = general if origin is None else of_origin.setdefault(origin, {})
                prefix = written(prefix)
                prefixes.setdefault(prefix, rule)
                prefixes.setdefault(normal(prefix, is_prefix=True), rule)  # U6
        self._prefixes, self._rules = _minimal(general)
        self._of_origin = {origin: _minimal(prefixes) for origin, prefixes in of_origin.items()}

    def __bool__(self) -> bool:
        return bool(self._prefixes or self._of_origin)

    def match(self, origin: Origin | None, target: str) -> Rule | None:
        """Return a rule that forbids the target, as written or in its normal form (U6), else None."""
        target = written(target)
        rule = self._match(origin, target)
        if rule is None:
            normal_target = normal(target)
            if normal_target != target:
                rule = self._match(origin, normal_target)
        return rule

    def _match(self, origin: Origin | None, target: str) -> Rule | None:
        rule = _find(self._prefixes, self._rules, target)
        if rule is None and origin in self._of_origin:
            rule = _find(*self._of_origin[origin], target)
        return rule


def _minimal(rules: dict[str, Rule]) -> tuple[list[str], list[Rule]]:
    """Sort prefixes and drop those that begin with another: it forbids all that they do."""
    prefixes: list[str] = []
    for prefix in sorted(rules):
        if not prefixes or not prefix.startswith(prefixes[-1]):
            prefixes.append(prefix)
    return prefixes, [rules[prefix] for prefix in prefixes]


def _find(prefixes: list[str], rules: list[Rule], target: str) -> Rule | None:
    index = bisect_right(prefixes, target) - 1
    if index >= 0 and target.startswith(prefixes[index]):
        return rules[index]
    return None
