"""The counts of a crawl, in bounded memory for any number of origins, and the same as plain data.

Totals of requests are exact. At most `rows_max` origins have a row of their own; the least interesting lose
theirs. The first 5,000 causes of drops are counted one by one. `facts_of` makes plain data of the counts: the
JSON report has exactly this data, and the page and the log are made from it. Text from sites is escaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scrapy_norobots.events import Load
from scrapy_norobots.features.report.listing import PATTERNS, TYPOS, Examined, Listing
from scrapy_norobots.rules.access import NOT_NOW, Access
from scrapy_norobots.standard import Decision, Origin, Reason
from scrapy_norobots.standard.decision import printable

# How many causes of drops are counted separately, and how many rules are in the data.
_CAUSES_MAX = 5_000
_RULES_MAX = 100

# How many characters of a text from a site are kept.
_TEXT_MAX = 200

# Marks of origins, beside those of `Examined`: the robots.txt is refused, fails or is not answered.
REFUSED, FAILED, UNANSWERED = "refused", "failed", "unanswered"

DOCS = "https://scrapy-norobots.readthedocs.io/en/latest/"

# What sites with a mark have in common, what to do about it, and the page of the docs.
_ADVICE = {
    REFUSED: (
        "answered with a refusal such as 403, so nothing more was fetched",
        "ask their owners, or set NOROBOTS_STATUS_POLICY",
        "download-failures.html#example-allow-one-status",
    ),
    FAILED: (
        "answered with an error such as 503 to the end",
        "crawl them later, or raise NOROBOTS_RETRY_CLOSED",
        "download-failures.html#requests-to-temporarily-closed-sites",
    ),
    UNANSWERED: (
        "gave no usable answer in the end",
        "check hosts and network, or raise NOROBOTS_TIMEOUT",
        "download-failures.html#temporary-failures",
    ),
    TYPOS: (
        "meant to forbid more to this robot, but made a mistake",
        "leave out what the marked lines name",
        "report.html#the-warning-about-lines-without-effect",
    ),
    PATTERNS: (
        "had * or $ in rules for this robot, read literally",
        'set NOROBOTS_ALSO_OBEY = ["rfc9309"]',
        "readings.html#which-should-i-choose",
    ),
}


class Cause(NamedTuple):
    """The cause of a drop: a line of a robots.txt with its value, or line 0 and a reason in words.

    `origin` is empty if the URL has none, and `text` is the rule or the reason.
    """

    origin: str
    line: int
    value: str
    text: str

    @classmethod
    def of(cls, decision: Decision, access: Access | None) -> Cause:
        origin = "" if access is None else str(access.snapshot.origin)
        line, value = decision.rule or (0, f"as read by {decision.parser}")
        if access is None:
            value = decision.why
        elif access.rules is None:
            value = str(Outcome.of(access))
        text = f"Disallow: {value}" if decision.reason is Reason.RULE else value
        return cls(origin, line, value[:_TEXT_MAX], text[:_TEXT_MAX])


class Outcome(NamedTuple):
    """The outcome for an origin: the kind of its access, `Access.outcome`, and whether it is stale."""

    kind: str
    key: str
    stale: bool

    @classmethod
    def of(cls, access: Access) -> Outcome:
        return cls(access.kind, access.outcome, access.stale)

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
    """The row of one origin: its last outcome, the time of its slowest load, and counts of requests.

    `source` is the source of its last load, empty if the origin had no row then.
    """

    outcome: Outcome
    detail: str
    source: str = ""
    seconds: float = 0.0
    requests: int = 0
    dropped: int = 0
    examined: Examined = field(default_factory=Examined)

    @property
    def interest(self) -> tuple[bool, int, float]:
        """The key by which rows are ranked when there are too many: problems, then drops, then seconds."""
        usual = self.outcome.key in ("rules", "4xx") and not self.outcome.stale
        return not usual or self.examined.lines > 0 or self.dropped > 0, self.dropped, self.seconds


class Counters:
    """The counts of one crawl.

    An origin that was evicted from memory and has no row is counted again when it is loaded again.
    """

    def __init__(self, rows_max: int) -> None:
        """Keep at most `rows_max` rows, which may be 0."""
        self.requests: Counter[str] = Counter()
        self.outcomes: Counter[Outcome] = Counter()  # of origins
        self.marks: Counter[str] = Counter()
        self.faulty_files = 0
        self.causes: Counter[Cause] = Counter()
        self.dropped: Counter[str] = Counter()  # requests, by the mark of their origin
        self.rows: dict[Origin, OriginRow] = {}
        self._rows_max = rows_max

    def load(self, event: Load, examined: Examined) -> None:
        origin, outcome = event.access.snapshot.origin, Outcome.of(event.access)
        row = self.rows.get(origin)
        if row is not None:
            self.outcomes[row.outcome] -= 1
            self.marks.subtract(row.examined.marks)
            self.faulty_files -= row.examined.lines > 0
        elif event.previous is not None:
            self.outcomes[Outcome.of(event.previous)] -= 1
        self.outcomes[outcome] += 1
        if row is not None or event.is_new:
            self.marks.update(examined.marks)
            self.faulty_files += examined.lines > 0
        row = row or self._new_row(event.access)
        row.outcome, row.detail = outcome, event.access.detail[:_TEXT_MAX]
        row.source, row.seconds = event.source, max(row.seconds, event.seconds)
        row.examined = examined

    def add_pass(self, origin: Origin) -> None:
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

    def drops(self) -> dict[str, Counter[tuple[int, str]]]:
        """Return how many requests each line, with its value, has dropped, by origin; line 0 is none."""
        found: dict[str, Counter[tuple[int, str]]] = {}
        for cause, count in self.causes.most_common():
            found.setdefault(cause.origin, Counter())[cause.line, cause.value] += count
        return found

    def of_most_interest(self) -> list[Origin]:
        """Return the origins that have a row, those of most interest first."""
        return sorted(self.rows, key=lambda origin: self.rows[origin].interest, reverse=True)

    def _new_row(self, access: Access) -> OriginRow:
        """Return a row, and keep it if there may be rows; the least interesting tenth makes room for it."""
        row = OriginRow(Outcome.of(access), access.detail[:_TEXT_MAX])
        if len(self.rows) >= self._rows_max:
            kept = self.of_most_interest()[: self._rows_max * 9 // 10]
            self.rows = {origin: self.rows[origin] for origin in kept}
        if self._rows_max:
            self.rows[access.snapshot.origin] = row
        return row


def facts_of(counters: Counters, crawl: dict[str, Any], files: Sequence[Listing] = ()) -> dict[str, Any]:
    """Return the report as plain data; `crawl` has the spider, times and so on, `files` the listings."""
    lost = "would have been dropped" if crawl.get("dry_run") else "dropped"
    rows = [_row(origin, row) for origin, row in counters.rows.items()]
    origins = counters.outcomes.total()
    sites, requests = counters.marks.copy(), counters.dropped  # by mark
    for outcome, count in counters.outcomes.items():
        sites[outcome.mark] += count
    return {
        "crawl": crawl,
        "to_do": [
            {
                "kind": mark,
                "sites": sites[mark],
                "requests": requests[mark] or None,
                "what": f"{what} ({counted(requests[mark], 'request')} {lost} for such reasons)"
                if requests[mark]
                else what,
                "do": do,
                "docs": DOCS + page,
                "origins": [row["origin"] for row in rows if mark in row["marks"]],
            }
            for mark, (what, do, page) in _ADVICE.items()
            if sites[mark]
        ],
        "requests": {
            name: counters.requests[name]
            for name in ("passed", "dropped", "overridden", "waited", "came_back", "given_up", "left")
        },
        "origins": origins,
        "outcomes": [
            {**outcome._asdict(), "text": str(outcome), "origins": count}
            for outcome, count in counters.outcomes.most_common()
            if count
        ],
        "faulty_files": counters.faulty_files,
        "rules": _rules(counters.causes)[:_RULES_MAX],
        "dropped_other": counters.requests["dropped"] - counters.causes.total(),
        "rows": sorted(rows, key=lambda row: -row["dropped"]),
        "rows_left_out": max(0, origins - len(rows)),
        "files": list(files),
    }


def counted(number: int, noun: str) -> str:
    """Return a number of things in words."""
    return f"{number:,} {noun}{'s' if number != 1 else ''}"


def _rules(causes: Counter[Cause]) -> list[dict[str, Any]]:
    """Return the causes by rule, over origins; each with its origins, those with most drops first."""
    groups: dict[str, Counter[Cause]] = {}
    for cause, count in causes.most_common():
        groups.setdefault(cause.text, Counter())[cause] = count
    rules = []
    for text, group in groups.items():
        line = next(iter(group)).line  # of the origin with most drops
        origins = list(dict.fromkeys(printable(cause.origin) for cause in group))
        rules.append(
            {
                "text": printable(text),
                "is_line": line > 0,
                "line": (line or None) if len(origins) == 1 else None,
                "requests": group.total(),
                "origins": origins,
            }
        )
    return sorted(rules, key=lambda rule: (-rule["requests"], rule["text"]))


def _row(origin: Origin, row: OriginRow) -> dict[str, Any]:
    return {
        "outcome": str(row.outcome),
        "detail": printable(row.detail),
        "source": row.source,
        "seconds": round(row.seconds, 3),
        "requests": row.requests,
        "dropped": row.dropped,
        "ignored_lines": row.examined.lines,
        "findings": row.examined.kinds,
        "marks": sorted((row.examined.marks | {row.outcome.mark}) - {""}),
        "origin": printable(str(origin)),
    }
