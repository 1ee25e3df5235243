"""`RuleSet`: the rules of one robot, prepared for fast matching (clauses U1 to U7).

`RuleSet.match` answers, unless a `PatternSet` does for both standards. It uses sorted prefixes, none of which
is a prefix of another. If one of them is a prefix of a target, it is the last one that does not sort after
the target. So one bisection and one `str.startswith` are enough for any number of rules.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import repeat

from scrapy_norobots.standard.urls import (
    Origin,
    is_normal,
    normal,
    octets,
    percent_encode,
    split,
    without_cut_off,
)

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


def first_of_prefixes(values: Sequence[str], origin: Origin | None) -> dict[str, int]:
    """Return the index of the first value for each prefix that values forbid at an origin (U4, U5).

    The keys are the prefixes that `RuleSet.match` returns.
    """
    if all(map(str.startswith, values, repeat("/"))) and is_normal("".join(values)):
        # The usual case: the only form of each value is the value itself.
        return dict(zip(reversed(values), reversed(range(len(values))), strict=True))
    first: dict[str, int] = {}
    for index, value in enumerate(values):
        prefix = prefix_of(value)
        if prefix and prefix[0] in (None, origin):
            for form in _forms(prefix[1]):
                first.setdefault(form, index)
    return first


class RuleSet:
    """What one robot must not fetch, as prefixes of targets."""

    __slots__ = ("_is_plain", "_of_origin", "_whole_urls", "has_one_form", "paths")

    def __init__(self, values: Iterable[str]) -> None:
        """Prepare the rules with these values."""
        paths = sorted(values)
        self._whole_urls: tuple[str, ...] = ()
        are_paths = True
        if paths and not (paths[0].startswith("/") and paths[-1].startswith("/")):  # sorted, so not all do
            odd = [value for value in paths if not value.startswith("/")]
            are_paths = ":" not in "".join(odd)
            self._whole_urls = tuple(filter(WHOLE_URL.match, odd))
            paths = [value for value in paths if value.startswith("/")]
            paths += [prefix[1] for value in odd if (prefix := prefix_of(value)) and prefix[0] is None]
            paths.sort()
        are_normal = is_normal("".join(paths))  # each starts with "/": if the joined text is, each of them is
        self.paths = without_longer(paths if are_normal else _forms_of_all(paths))
        # Without "%" and "/.", both forms of a target differ from it only in "%XX". So if no prefix has an
        # escape, a prefix of one of the forms is a prefix of the target itself.
        self._is_plain = not self._whole_urls and "%" not in "".join(self.paths)
        # Whether each value has no scheme and no escapes, and is compared as it is.
        self.has_one_form = are_paths and are_normal and self._is_plain
        # The whole URLs of the origin of the last question; a crawl asks a file about one origin only.
        self._of_origin: tuple[Origin, list[str]] | None = None

    @property
    def size(self) -> int:
        """Approximate memory use, in bytes."""
        texts = (*self.paths, *self._whole_urls)
        return 65 * len(texts) + 90 * len(self._whole_urls) + sum(map(len, texts))

    def match(self, origin: Origin | None, target: str) -> str | None:
        """Return the prefix by which a rule forbids `target` at `origin`; None if no rule forbids it.

        The target as sent and its normal form, also with its dot segments, are compared with both forms of
        each rule (U6). robots.txt itself may always be fetched (U7).
        """
        # To look for "." first takes less time, because most targets have none.
        if self._is_plain and "%" not in target and ("." not in target or "/." not in target):
            paths = self.paths  # the usual case, as in `find`, but without a call
            place = bisect_right(paths, target)
            prefix = paths[place - 1] if place and target.startswith(paths[place - 1]) else None
        elif is_normal(target):
            prefix = self._match_form(origin, target)
        else:
            written = target
            target = normal(target)
            forms = dict.fromkeys((percent_encode(written), octets(written), target))
            prefix = next(filter(None, (self._match_form(origin, form) for form in forms)), None)
        return None if prefix is None or target == "/robots.txt" else prefix

    def _match_form(self, origin: Origin | None, target: str) -> str | None:
        prefix = find(self.paths, target)
        if prefix is None and self._whole_urls and origin is not None:
            own = self._of_origin
            if own is None or own[0] != origin:
                own = self._of_origin = origin, self._whole_urls_of(origin)
            prefix = find(own[1], target)
        return prefix

    def _whole_urls_of(self, origin: Origin) -> list[str]:
        """Return the prefixes of the whole URLs of an origin (U4)."""
        prefixes = map(prefix_of, self._whole_urls)
        return without_longer(_forms_of_all(each[1] for each in prefixes if each and each[0] == origin))


def _forms(path: str) -> tuple[str, str]:
    """Return the path of a rule as it would be sent, and in normal form (U6)."""
    whole, cut_off = without_cut_off(path)
    return percent_encode(path), normal(whole, is_prefix=True) + cut_off


def _forms_of_all(paths: Iterable[str]) -> list[str]:
    return sorted(form for path in paths for form in _forms(path))


def without_longer(paths: Iterable[str]) -> list[str]:
    """Return sorted paths without those that begin with another one."""
    last = "\n"  # a prefix of no path
    return [last := path for path in paths if not path.startswith(last)]


def find(prefixes: Sequence[str], target: str) -> str | None:
    """Return the prefix with which `target` begins, or None. The prefixes are sorted."""
    place = bisect_right(prefixes, target)
    return prefixes[place - 1] if place and target.startswith(prefixes[place - 1]) else None
