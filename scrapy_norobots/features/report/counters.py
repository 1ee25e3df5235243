"""The counts of a crawl, in bounded memory for any number of origins, and the same as plain data.

Totals are exact. The `rows_max` most interesting origins have a row of their own, and the first 5,000 causes
of drops are counted one by one. `facts_of` makes plain data of the counts: the JSON report has exactly this
data, and the page and the log are made from it. It escapes text from sites with `printable`, so that it is
safe on a terminal. This module reads no clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from scrapy_norobots.features.report.listing import NOTHING, PATTERNS, Examined
from scrapy_norobots.features.report.summary import DIFFER, FAILED, REFUSALS, REFUSED, UNANSWERED, to_do
from scrapy_norobots.rules.access import NOT_NOW
from scrapy_norobots.standard import Decision, Origin, Reason
from scrapy_norobots.standard.decision import printable

if TYPE_CHECKING:
    from scrapy_norobots.events import Load
    from scrapy_norobots.features.report.listing import Listing
    from scrapy_norobots.rules.access import Access

# A report, as `facts_of` makes it; its `crawl` describes the crawl: generator, spider, times, and so on.
Facts: TypeAlias = dict[str, Any]

# How many causes of drops are counted separately, and how many are in the data.
_CAUSES_MAX = 5_000
_IN_REPORT = 100

# How many characters of a text from a site are kept.
_TEXT_MAX = 200

# The start of a statement that says no to a purpose.
_REFUSAL = "no to "


class Cause(NamedTuple):
    """The cause of a drop: a line of a robots.txt with its value, or line 0 and a reason in words.

    `reason` is the name of the `Reason`. `robot` is the one of ``NOROBOTS_ALSO_ROBOTS`` that the line applies
    to, if any.
    """

    origin: str
    reason: str
    line: int
    text: str
    robot: str = ""

    @classmethod
    def of(cls, decision: Decision, access: Access | None) -> Cause:
        """Return the cause of a decision to drop; `access` is None for a URL without an origin."""
        line, text = decision.rule or (
            0,
            f"as read by {decision.parser}" if decision.parser else decision.why,
        )
        if access is not None and access.rules is None:
            line, text = 0, str(Outcome.of(access))
        origin = str(access.snapshot.origin) if access is not None else ""
        return cls(origin, decision.reason.name.lower(), line, text[:_TEXT_MAX], decision.decided_for)

    @property
    def shown(self) -> str:
        """The line, or the reason in words."""
        return f"Disallow: {self.text}" if self.reason == Reason.RULE.name.lower() else self.text


class Outcome(NamedTuple):
    """The outcome for an origin: the kind of its access, `Access.outcome`, and whether it is stale."""

    kind: str
    key: str
    stale: bool

    @classmethod
    def of(cls, access: Access) -> Outcome:
        """Return the outcome of an access."""
        return cls(access.kind.value, access.outcome, access.stale)

    @property
    def mark(self) -> str:
        """What the origin is marked with; empty if nothing is to be done."""
        if self.key == "error":
            return UNANSWERED
        if self.kind != "closed":
            return ""
        return REFUSED if self.key.startswith("4") and self.key not in NOT_NOW else FAILED

    def __str__(self) -> str:
        if self.stale:
            return "rules (stale)"
        return self.kind if self.kind == self.key else f"{self.kind} ({self.key})"


@dataclass(slots=True)
class OriginRow:
    """The row of one origin: its last outcome, and counts of requests.

    `seconds` is the time of its slowest load, `source` the source of its last load (empty if the origin had
    no row then), `requests` the number of requests that were checked, and `dropped` how many of these were
    dropped. `crawl_delay` is the Crawl-delay that the crawl keeps, in seconds, or 0. `ignored_lines`,
    `findings` and `marks` are those of `Examined`; `marks` may have `REFUSALS` too.
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
    marks: frozenset[str] = frozenset()

    @property
    def interest(self) -> tuple[bool, int, float]:
        """The key by which rows are ranked when there are too many: problems, then drops, then seconds."""
        usual = self.outcome.key in ("rules", "4xx") and not self.outcome.stale
        odd = not usual or self.ignored_lines > 0 or self.dropped > 0
        return odd, self.dropped, self.seconds


class Counters:
    """The counts of one crawl.

    An origin that was evicted from memory and has no row is counted again when it is loaded again.
    """

    def __init__(self, rows_max: int) -> None:
        """Keep at most `rows_max` rows, which may be 0."""
        self.requests: Counter[str] = Counter()
        self.origins = 0
        self.outcomes: Counter[Outcome] = Counter()
        self.sources: Counter[str] = Counter()
        self.slowest: tuple[Origin, float] | None = None
        self.marks: Counter[str] = Counter()
        self.first_pattern = ""
        self.faulty_files = 0
        self.crawl_delays = 0
        self.longest_crawl_delay: tuple[Origin, float] | None = None
        self.usage: Counter[str] = Counter()
        self.causes: Counter[Cause] = Counter()
        self.dropped: Counter[str] = Counter()
        self.rows: dict[Origin, OriginRow] = {}
        self._rows_max = rows_max

    def load(self, event: Load, examined: Examined = NOTHING) -> None:
        """Count a load of an origin, and what was found in its file."""
        access, previous = event.access, event.previous
        origin = access.snapshot.origin
        row = self.rows.get(origin)
        before = row.outcome if row else Outcome.of(previous) if previous else None
        if before is None:
            self.origins += 1
        else:
            self.outcomes[before] -= 1
        if event.is_new:
            self.marks.update(examined.marks)
            self.faulty_files += examined.lines > 0
            if PATTERNS in examined.marks:
                self.first_pattern = self.first_pattern or access.snapshot.url[:_TEXT_MAX]
        row = row or self._new_row(access)
        row.outcome, row.detail = Outcome.of(access), access.detail[:_TEXT_MAX]
        row.source, row.seconds = event.source, max(row.seconds, event.seconds)
        row.ignored_lines, row.findings = examined.lines, examined.kinds
        row.marks = examined.marks | (row.marks & {REFUSALS})
        self.outcomes[row.outcome] += 1
        self.sources[event.source] += 1
        if self.slowest is None or event.seconds > self.slowest[1]:
            self.slowest = origin, event.seconds

    def add_crawl_delay(self, origin: Origin, seconds: float, is_new: bool) -> None:
        """Count the Crawl-delay that is kept for an origin, in seconds; 0 if there is none."""
        if origin in self.rows:
            self.rows[origin].crawl_delay = seconds
        if not seconds:
            return
        self.crawl_delays += is_new
        if self.longest_crawl_delay is None or seconds > self.longest_crawl_delay[1]:
            self.longest_crawl_delay = origin, seconds

    def add_usage(self, origin: Origin, stated: Iterable[str], obeyed: Sequence[str]) -> None:
        """Count what an origin states about the use of its pages; purposes that are `obeyed` are known."""
        self.usage.update(stated)
        if {said for said in stated if said.startswith(_REFUSAL)} - {_REFUSAL + each for each in obeyed}:
            self.marks[REFUSALS] += 1
            if origin in self.rows:
                self.rows[origin].marks |= {REFUSALS}

    def add_pass(self, origin: Origin) -> None:
        """Count a request that passed."""
        self.requests["passed"] += 1
        if origin in self.rows:
            self.rows[origin].requests += 1

    def drop(self, decision: Decision, access: Access | None) -> None:
        """Count a dropped request; `access` is None for a URL without an origin."""
        self.requests["dropped"] += 1
        cause = Cause.of(decision, access)
        if cause in self.causes or len(self.causes) < _CAUSES_MAX:
            self.causes[cause] += 1
        if access is None:
            return
        if access.rules is None:
            self.dropped[Outcome.of(access).mark] += 1
        row = self.rows.get(access.snapshot.origin) or self._new_row(access)
        row.dropped += 1
        row.requests += 1

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


def facts_of(counters: Counters, crawl: dict[str, Any], files: Sequence[Listing] = ()) -> Facts:
    """Return the report of a crawl as plain data, with the listings of robots.txt files."""
    causes = counters.most_common_causes()
    differing = {file["origin"] for file in files if file["differs"]}
    rows = [_row(*item, differing) for item in counters.rows.items()]
    marks = counters.marks + Counter({DIFFER: len(differing)})
    for outcome, count in counters.outcomes.items():
        marks[outcome.mark] += count
    return Facts(
        crawl=crawl,
        to_do=to_do(rows, marks, counters.dropped),
        requests={
            name: counters.requests[name]
            for name in ("passed", "dropped", "overridden", "waited", "came_back", "given_up", "left")
        },
        origins=counters.origins,
        outcomes=[
            {**outcome._asdict(), "text": str(outcome), "origins": count}
            for outcome, count in counters.outcomes.most_common()
            if count
        ],
        sources=dict(counters.sources.most_common()),
        slowest=_longest(counters.slowest),
        crawl_delays={"files": counters.crawl_delays, "longest": _longest(counters.longest_crawl_delay)},
        usage=dict(sorted(counters.usage.items())),
        faulty_files=counters.faulty_files,
        patterns={"files": counters.marks[PATTERNS], "first": printable(counters.first_pattern) or None},
        rules=_rules(causes)[:_IN_REPORT],
        causes=len(causes),
        dropped_most=[_cause(*item) for item in causes[:_IN_REPORT]],
        dropped_other=counters.requests["dropped"] - counters.causes.total(),
        rows=sorted(rows, key=lambda row: -row["dropped"]),
        rows_left_out=max(0, counters.origins - len(rows)),
        files=list(files),
    )


def _rules(causes: Iterable[tuple[Cause, int]]) -> list[dict[str, Any]]:
    """Return the causes by rule, over origins; each with its origins, those with most drops first.

    `line` is the number of the line if the rule dropped requests at one origin only.
    """
    groups: dict[tuple[str, str], Counter[Cause]] = {}
    for cause, count in causes:
        groups.setdefault((cause.shown, cause.robot), Counter())[cause] = count
    rules = []
    for group in groups.values():
        first = next(iter(group))
        origins = list(dict.fromkeys(printable(cause.origin) for cause in group))
        rules.append(
            {
                "text": printable(first.shown),
                "robot": printable(first.robot) or None,
                "is_line": first.line > 0,
                "line": (first.line or None) if len(origins) == 1 else None,
                "requests": group.total(),
                "origins": origins,
            }
        )
    return sorted(rules, key=lambda rule: (-rule["requests"], rule["text"]))


def _longest(found: tuple[Origin, float] | None) -> dict[str, Any] | None:
    return {"origin": printable(str(found[0])), "seconds": round(found[1], 3)} if found else None


def _cause(cause: Cause, count: int) -> dict[str, Any]:
    texts = {name: printable(str(value)) or None for name, value in cause._asdict().items()}
    return {**texts, "origin": printable(cause.origin), "line": cause.line or None, "count": count}


def _row(origin: Origin, row: OriginRow, differing: Container[str]) -> dict[str, Any]:
    name = printable(str(origin))
    marks = row.marks | {row.outcome.mark, DIFFER if name in differing else ""}
    return {
        "origin": name,
        "outcome": str(row.outcome),
        "source": row.source,
        "seconds": round(row.seconds, 3),
        "requests": row.requests,
        "dropped": row.dropped,
        "crawl_delay": round(row.crawl_delay, 3),
        "ignored_lines": row.ignored_lines,
        "findings": row.findings,
        "marks": sorted(marks - {""}),
        "detail": printable(row.detail),
    }
