"""The counts of a crawl, in bounded memory for any number of origins.

Totals are exact. The `rows_max` most interesting origins have a row of their own, and only the most common
causes of drops are kept; the counters also hold how much was left out. This module uses no Scrapy, reads no
clock and formats nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from scrapy_norobots.features.report.ineffective import IneffectiveRules
from scrapy_norobots.rules.access import Access
from scrapy_norobots.standard import Decision, Origin, Reason

# How many causes of drops are kept. A count is too low by at most 2 / 5,000 of all drops.
_CAUSES_MAX = 5_000

# How many characters of a text from a site are kept.
_TEXT_MAX = 200


class Cause(NamedTuple):
    """The cause of a drop: line number and value of a ``Disallow`` line, or line 0 and a reason in words.

    `robot` is the one of ``NOROBOTS_ALSO_ROBOTS`` that the line applies to, if any.
    """

    origin: str
    line: int
    text: str
    robot: str = ""

    @classmethod
    def of(cls, decision: Decision, access: Access | None) -> Cause:
        """Return the cause of a decision to drop; `access` is None for a URL without an origin."""
        line, text = (decision.reason is Reason.RULE and decision.rule) or (0, decision.why)
        if access is not None and access.rules is None:
            text = str(Outcome.of(access))
        origin = str(access.snapshot.origin) if access is not None else ""
        return cls(origin, line, text[:_TEXT_MAX], decision.decided_for if line else "")


class Outcome(NamedTuple):
    """The outcome for an origin: the kind of its access, `Access.outcome`, and whether it is stale."""

    kind: str
    key: str
    stale: bool

    @classmethod
    def of(cls, access: Access) -> Outcome:
        """Return the outcome of an access."""
        return cls(access.kind.value, access.outcome, access.stale)

    def __str__(self) -> str:
        if self.stale:
            return "rules (stale)"
        return self.kind if self.kind == self.key else f"{self.kind} ({self.key})"


@dataclass(slots=True)
class OriginRow:
    """The row of one origin: its last outcome, and counts of requests.

    `seconds` is the time of its slowest load, `source` the source of its last load (empty if the origin had
    no row then), `requests` the number of requests that were checked, and `dropped` how many of these were
    dropped. `crawl_delay` is the Crawl-delay that the crawl keeps, in seconds, or 0. `ignored_lines` counts
    its lines without effect, and `findings` says of which kinds they are.
    """

    outcome: Outcome
    detail: str
    source: str = ""
    seconds: float = 0.0
    requests: int = 0
    dropped: int = 0
    crawl_delay: float = 0.0
    ignored_lines: int = 0
    findings: str = ""

    @property
    def interest(self) -> tuple[bool, int, float]:
        """The key by which rows are ranked when there are too many: problems, then drops, then seconds."""
        usual = self.outcome.key in ("rules", "4xx") and not self.outcome.stale
        odd = not usual or self.ignored_lines > 0 or self.dropped > 0
        return odd, self.dropped, self.seconds


class Counters:
    """The counts of one crawl.

    An origin that was evicted from memory and has no row is counted again when it is loaded again. The count
    of a cause may be too low, by at most `short_by`: 2 / `causes_max` of all drops, and 0 if all had room.
    """

    def __init__(self, rows_max: int, causes_max: int = _CAUSES_MAX) -> None:
        """Take the limits: at most `rows_max` rows, which may be 0, and `causes_max` causes."""
        self.requests: Counter[str] = Counter()
        self.origins = 0
        self.outcomes: Counter[Outcome] = Counter()
        self.sources: Counter[str] = Counter()
        self.slowest: tuple[Origin, float] | None = None
        self.patterns = 0
        self.first_pattern = ""
        self.crawl_delays = 0
        self.longest_crawl_delay: tuple[Origin, float] | None = None
        self.usage: Counter[str] = Counter()
        self.causes: Counter[Cause] = Counter()
        self.short_by = 0
        self.rows: dict[Origin, OriginRow] = {}
        self._rows_max = rows_max
        self._causes_max = causes_max

    @property
    def left_out(self) -> int:
        """The number of origins without a row."""
        return max(0, self.origins - len(self.rows))

    def load(
        self,
        access: Access,
        previous: Access | None,
        source: str,
        seconds: float,
        ineffective: IneffectiveRules | None,
    ) -> None:
        """Count a load of an origin; `previous` is the access that it replaces, if any."""
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
        row.ignored_lines, row.findings = (ineffective.lines, ineffective.kinds) if ineffective else (0, "")
        self.outcomes[row.outcome] += 1
        self.sources[source] += 1
        if self.slowest is None or seconds > self.slowest[1]:
            self.slowest = origin, seconds

    def add_pattern(self, url: str) -> None:
        """Count a robots.txt with patterns in its rules, which the strict reading takes literally."""
        self.patterns += 1
        self.first_pattern = self.first_pattern or url[:_TEXT_MAX]

    def add_crawl_delay(self, origin: Origin, seconds: float, is_new: bool) -> None:
        """Count the Crawl-delay that is kept for an origin, in seconds; 0 if there is none."""
        if origin in self.rows:
            self.rows[origin].crawl_delay = seconds
        if not seconds:
            return
        self.crawl_delays += is_new
        if self.longest_crawl_delay is None or seconds > self.longest_crawl_delay[1]:
            self.longest_crawl_delay = origin, seconds

    def add_pass(self, origin: Origin) -> None:
        """Count a request that passed."""
        self.requests["passed"] += 1
        if origin in self.rows:
            self.rows[origin].requests += 1

    def drop(self, decision: Decision, access: Access | None) -> None:
        """Count a dropped request; `access` is None for a URL without an origin."""
        self.requests["dropped"] += 1
        self.add_cause(Cause.of(decision, access))
        if access is not None:
            row = self.rows.get(access.snapshot.origin) or self._new_row(access)
            row.dropped += 1
            row.requests += 1

    def add_cause(self, cause: Cause) -> None:
        """Count a cause.

        When there is no room, the median count is subtracted from each count, and causes with no count left
        are forgotten (Misra and Gries, 1982, in the fast form of Anderson et al., 2017).
        """
        if cause not in self.causes and len(self.causes) >= self._causes_max:
            median = sorted(self.causes.values())[len(self.causes) // 2]
            self.causes = Counter({each: n - median for each, n in self.causes.items() if n > median})
            self.short_by += median
        self.causes[cause] += 1

    def most_common_causes(self) -> list[tuple[Cause, int]]:
        """Return the causes with their counts, the most common first; equally common ones are sorted."""
        return sorted(self.causes.items(), key=lambda item: (-item[1], item[0]))

    def drops(self) -> dict[str, Counter[tuple[int, str]]]:
        """Return how many requests each line, with its value, has dropped, by origin; line 0 is none."""
        found: dict[str, Counter[tuple[int, str]]] = {}
        for cause, count in self.most_common_causes():
            found.setdefault(cause.origin, Counter())[cause.line, cause.text] += count
        return found

    def of_most_interest(self) -> list[Origin]:
        """Return the origins that have a row, those of most interest first."""
        return sorted(self.rows, key=lambda origin: self.rows[origin].interest, reverse=True)

    def _new_row(self, access: Access) -> OriginRow:
        row = OriginRow(Outcome.of(access), access.detail[:_TEXT_MAX])
        if self._rows_max:
            if len(self.rows) >= self._rows_max:
                self._make_room()
            self.rows[access.snapshot.origin] = row
        return row

    def _make_room(self) -> None:
        """Evict the least interesting tenth of the rows; to evict one by one would need a sort for each."""
        for origin in self.of_most_interest()[self._rows_max * 9 // 10 :]:
            del self.rows[origin]
