"""`RuleSet`: the rules of one robot, prepared for fast matching (clauses U1 to U7).

`RuleSet.match` is the only way to ask. It uses sorted prefixes, none of which is a prefix of another. If one
of them is a prefix of a target, it is the last one that does not sort after the target. So one bisection and
one `str.startswith` are enough for any number of rules.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Sequence

from scrapy_norobots.standard.urls import Origin, is_normal, normal, percent_encode, split

# U4: values that are whole URLs, and values with a scheme that has no host, which forbid nothing.
WHOLE_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")
OTHER_SCHEME = re.compile(
    r"(?:about|blob|data|file|ftp|gopher|javascript|mailto|news|sms|tel|urn):", re.ASCII | re.IGNORECASE
)


def prefix_of(value: str) -> tuple[Origin | None, str] | None:
    """Return the origin to which the value of a rule applies, and the prefix of the targets that it forbids.

    The origin is None if the rule applies to the origin of the file. Returns None for a value that forbids
    nothing: an empty one (U2), or a URL to which no robots.txt applies (U4).
    """
    if WHOLE_URL.match(value):
        try:
            origin, target = split(value)
        except ValueError:
            return None
        return None if origin is None or target is None else (origin, target)
    if not value or OTHER_SCHEME.match(value):
        return None
    return None, value if value.startswith("/") else "/" + value  # U5


class RuleSet:
    """What one robot must not fetch. A rule is identified by its index in the robot's record."""

    __slots__ = ("_is_plain", "_of_origin", "_paths", "_whole_urls")

    def __init__(self, values: Sequence[str]) -> None:
        """Prepare the rules of a record; `values` are in file order."""
        paths = _indexed(values)
        self._whole_urls: dict[str, int] = {}
        for value in [value for value in paths if not value.startswith("/")]:
            index = paths.pop(value)
            if WHOLE_URL.match(value):
                self._whole_urls[value] = index
            elif prefix := prefix_of(value):
                _add(paths, prefix[1], index)
        self._paths = _Prefixes(paths)
        # Without "%" and "/.", both forms of a target differ from it only in "%XX". So if no prefix has an
        # escape, a prefix of one of the forms is a prefix of the target itself.
        self._is_plain = not self._whole_urls and not self._paths.has_escapes
        # The whole URLs of the origin of the last question; a crawl asks a file about one origin only.
        self._of_origin: tuple[Origin, _Prefixes] | None = None

    @property
    def size(self) -> int:
        """Approximate memory use, in bytes."""
        texts = (*self._paths.texts, *self._whole_urls)
        return 65 * len(texts) + 150 * len(self._whole_urls) + sum(map(len, texts))

    def match(self, origin: Origin | None, target: str) -> int | None:
        """Return the index of a rule that forbids `target` at `origin`; None if no rule does.

        The target as sent and its normal form are compared with both forms of each rule (U6). robots.txt
        itself may always be fetched (U7).
        """
        if self._is_plain and "%" not in target and "/." not in target:
            index = self._paths.find(target)
        else:
            index = self._find(origin, percent_encode(target))
            target = normal(target)
            if index is None:
                index = self._find(origin, target)
        return None if index is None or target == "/robots.txt" else index

    def _find(self, origin: Origin | None, target: str) -> int | None:
        index = self._paths.find(target)
        if index is None and self._whole_urls and origin is not None:
            own = self._of_origin
            if own is None or own[0] != origin:
                own = self._of_origin = origin, _Prefixes(self._targets(origin))
            index = own[1].find(target)
        return index

    def _targets(self, origin: Origin) -> dict[str, int]:
        """Return the targets of the whole URLs of an origin, with the index of each rule (U4)."""
        targets: dict[str, int] = {}
        for url, index in self._whole_urls.items():
            prefix = prefix_of(url)
            if prefix and prefix[0] == origin:
                _add(targets, prefix[1], index)
        return targets

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RuleSet):
            return NotImplemented
        return (self._paths, self._whole_urls) == (other._paths, other._whole_urls)

    __hash__ = None  # type: ignore[assignment]


class _Prefixes:
    """Sorted prefixes, none a prefix of another, with the index of the rule of each."""

    __slots__ = ("has_escapes", "indices", "texts")

    def __init__(self, paths: dict[str, int]) -> None:
        text = "".join(paths)
        if not is_normal(text):  # each starts with "/", so if the joined text is normal, each of them is
            for path in [path for path in paths if not is_normal(path)]:
                index = paths.pop(path)
                _add(paths, percent_encode(path), index)
                _add(paths, normal(path, is_prefix=True), index)
            text = "".join(paths)
        self.has_escapes = "%" in text
        texts: list[str] = []
        last = "\n"  # a prefix of no path
        for path in sorted(paths):
            if not path.startswith(last):
                texts.append(path)
                last = path
        self.texts = texts
        self.indices = array("q", [paths[text] for text in texts])

    def find(self, target: str) -> int | None:
        """Return the index of the rule with a prefix of `target` as given; None if there is none."""
        place = bisect_right(self.texts, target) - 1
        return self.indices[place] if place >= 0 and target.startswith(self.texts[place]) else None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Prefixes):
            return NotImplemented
        return (self.texts, self.indices) == (other.texts, other.indices)

    __hash__ = None  # type: ignore[assignment]


def _indexed(values: Sequence[str]) -> dict[str, int]:
    """Return the index of each value; for equal values, the first index."""
    last = len(values) - 1
    return dict(zip(reversed(values), range(last, -1, -1), strict=True))


def _add(paths: dict[str, int], path: str, index: int) -> None:
    paths[path] = min(index, paths.get(path, index))
