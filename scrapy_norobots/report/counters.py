"""What is counted while a crawl runs, in bounded memory however many origins it meets.

Totals are exact. Of the origins, the `rows_max` of most interest have a row of their own; of the causes of
drops, the commonest are kept. What had to be left out is known. Nothing here knows Scrapy, reads a clock or
formats anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

from scrapy_norobots.access import Access
from scrapy_norobots.report.ineffective import IneffectiveRules
from scrapy_norobots.standard import Decision, Origin

# How many causes of drops are told apart. A count is short by at most 2 / 5,000 of all drops.
_CAUSES_MAX = 5_000

# Characters that are kept of a text that came from a site.
_TEXT_MAX = 200

_Thing = TypeVar("_Thing", bound=Hashable)


class TopCounts(Generic[_Thing]):
    """Counts of the commonest of any number of things, of which at most `size` are remembered.

    When they are too many, the median count is taken off each, and those with nothing left are forgotten
    (Misra and Gries, 1982, as made cheap by Anderson et al., 2017). `short_by` says by how much a count can
    fall short for that; it is no more than 2 / `size` of everything counted, and 0 if all found room.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._counts: dict[_Thing, int] = {}
        self.short_by = 0

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, thing: _Thing) -> None:
        """Count a thing once."""
        if thing not in self._counts and len(self._counts) >= self._size:
            self._make_room()
        self._counts[thing] = self._counts.get(thing, 0) + 1

    def most_common(self, count: int) -> list[tuple[_Thing, int]]:
        """Return the commonest things and their counts; those as common as each other are in order."""
        by_name = sorted(self._counts.items())
        return sorted(by_name, key=lambda item: -item[1])[:count]

    def _make_room(self) -> None:
        median = sorted(self._counts.values())[len(self._counts) // 2]
        self._counts = {thing: n - median for thing, n in self._counts.items() if n > median}
        self.short_by += median


class Cause(NamedTuple):
    """Why requests were dropped: a ``Disallow`` line and its value, or, as line 0, a reason in words."""

    origin: str
    line: int
    text: str

    @classmethod
    def of(cls, decision: Decision, access: Access | None) -> Cause:
        """Return the cause of a decision to drop; there is no access for a URL without an origin."""
        line, text = decision.rule or (0, decision.why)
        if access is None:
            return cls("", line, text[:_TEXT_MAX])
        if access.rules is None:
            text = str(Outcome.of(access))
        return cls(str(access.snapshot.origin), line, text[:_TEXT_MAX])


class Outcome(NamedTuple):
    """What an origin came to: a kind of access, `Access.outcome`, and whether it is stale."""

    kind: str
    key: str
    stale: bool

    @classmethod
    def of(cls, access: Access) -> Outcome:
        """Return what an access is counted as."""
        return cls(access.kind.value, access.outcome, access.stale)

    def __str__(self) -> str:
        if self.stale:
            return "rules of a stale copy"
        return self.kind if self.kind == self.key else f"{self.kind} ({self.key})"


@dataclass(slots=True)
class OriginRow:
    """What is kept of one origin: its last outcome, and counts of requests.

    `seconds` is how long its slowest load took, `source` where the last one came from (empty if the origin
    had no row then), `requests` the requests that asked for its rules, and `dropped` those of them that
    were dropped.
    """

    outcome: Outcome
    detail: str
    source: str = ""
    seconds: float = 0.0
    requests: int = 0
    dropped: int = 0
    ineffective: IneffectiveRules | None = None

    @property
    def interest(self) -> tuple[bool, int, float]:
        """What decides which rows stay: what went wrong, what was dropped, what was slow."""
        usual = self.outcome.key in ("rules", "4xx") and not self.outcome.stale
        odd = not usual or self.ineffective is not None or self.dropped > 0
        return odd, self.dropped, self.seconds


class Counters:
    """The counts of one crawl.

    `passed` is public so that counting a request that passes is one addition; so are the other totals.
    An origin that was evicted from memory and has no row is counted again when it is loaded again.
    """

    def __init__(self, rows_max: int, causes_max: int = _CAUSES_MAX) -> None:
        """`rows_max` may be 0."""
        self.passed = 0
        self.dropped = 0
        self.overridden = 0
        self.waited = 0
        self.came_back = 0
        self.given_up = 0
        self.left = 0
        self.origins = 0
        self.outcomes: Counter[Outcome] = Counter()
        self.sources: Counter[str] = Counter()
        self.slowest: tuple[Origin, float] | None = None
        self.patterns = 0
        self.first_pattern = ""
        self.causes: TopCounts[Cause] = TopCounts(causes_max)
        self.rows: dict[Origin, OriginRow] = {}
        self._rows_max = rows_max

    @property
    def left_out(self) -> int:
        """How many origins have no row."""
        return max(0, self.origins - len(self.rows))

    def load(
        self,
        access: Access,
        previous: Access | None,
        source: str,
        seconds: float,
        ineffective: IneffectiveRules | None,
    ) -> None:
        """Count a load of an origin; `previous` is what applied there before."""
        origin = access.snapshot.origin
        row = self.rows.get(origin)
        before = row.outcome if row else Outcome.of(previous) if previous else None
        if before is None:
            self.origins += 1
        else:
            self.outcomes[before] -= 1
        row = row or self._new_row(access)
        row.outcome, row.detail = Outcome.of(access), access.detail[:_TEXT_MAX]
        row.source, row.seconds = source, max(row.seconds, seconds)
        row.ineffective = replace(ineffective, details="") if ineffective else None  # they are in the log
        self.outcomes[row.outcome] += 1
        self.sources[source] += 1
        if self.slowest is None or seconds > self.slowest[1]:
            self.slowest = origin, seconds

    def add_pattern(self, url: str) -> None:
        """Count a robots.txt with patterns in its rules, which the strict reading takes literally."""
        self.patterns += 1
        self.first_pattern = self.first_pattern or url[:_TEXT_MAX]

    def add_requests(self, origin: Origin, requests: int) -> None:
        """Count requests that asked for the rules of an origin."""
        if origin in self.rows:
            self.rows[origin].requests += requests

    def drop(self, decision: Decision, access: Access | None) -> None:
        """Count a request that is dropped; there is no access for a URL without an origin."""
        self.dropped += 1
        self.causes.add(Cause.of(decision, access))
        if access is not None:
            row = self.rows.get(access.snapshot.origin) or self._new_row(access)
            row.dropped += 1

    def _new_row(self, access: Access) -> OriginRow:
        row = OriginRow(Outcome.of(access), access.detail[:_TEXT_MAX])
        if self._rows_max:
            if len(self.rows) >= self._rows_max:
                self._make_room()
            self.rows[access.snapshot.origin] = row
        return row

    def _make_room(self) -> None:
        """Evict the tenth of the rows of least interest: a sort for each new row would be slow."""
        ranked = sorted(self.rows, key=lambda origin: self.rows[origin].interest, reverse=True)
        for origin in ranked[self._rows_max * 9 // 10 :]:
            del self.rows[origin]
