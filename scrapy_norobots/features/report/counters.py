"""The counts of a crawl, in bounded memory for any number of origins, and the same as plain data.

Totals are exact. The `rows_max` most interesting origins have a row of their own, and the first 5,000 causes
of drops are counted one by one. `facts_of` makes plain data of the counts: the JSON report has exactly this
data, and the page and the log are made from it. Text from sites is escaped in it with `printable`, so that it
is safe on a terminal. This module reads no clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from scrapy_norobots.features.report.listing import DIFFER, NOTHING, PATTERNS, TYPOS, Examined
from scrapy_norobots.rules.access import NOT_NOW
from scrapy_norobots.standard import Decision, Origin, Reason
from scrapy_norobots.standard.decision import printable

if TYPE_CHECKING:
    from scrapy_norobots.events import Load
    from scrapy_norobots.features.report.listing import Listing
    from scrapy_norobots.rules.access import Access

# A report, as `facts_of` makes it; its `crawl` describes the crawl: generator, spider, times, and so on.
Facts: TypeAlias = dict[str, Any]

# How many causes of drops are counted separately, and how many rules are in the data.
_CAUSES_MAX = 5_000
_RULES_MAX = 100

# How many characters of a text from a site are kept.
_TEXT_MAX = 200

# The start of a statement that says no to a purpose.
_REFUSAL = "no to "

# Marks of origins, beside those of `Examined`: the robots.txt is refused, fails or is not answered; it has
# statements that are not obeyed.
REFUSED, FAILED, UNANSWERED, REFUSALS = "refused", "failed", "unanswered", "refusals"

DOCS = "https://scrapy-norobots.readthedocs.io/en/latest/"

# What sites with a mark have in common, what to do about it, and the page of the docs.
_ADVICE = {
    REFUSED: (
        "answered with a refusal such as 403, so nothing was fetched",
        "ask their owners, or set NOROBOTS_STATUS_POLICY",
        "download-failures.html#example-allow-one-status",
    ),
    FAILED: (
        "answered with an error such as 503 to the end",
        "crawl them later, or raise NOROBOTS_RETRY_CLOSED",
        "download-failures.html#requests-to-temporarily-closed-sites",
    ),
    UNANSWERED: (
        "never gave a usable answer",
        "check hosts and network, or raise NOROBOTS_TIMEOUT",
        "download-failures.html#temporary-failures",
    ),
    TYPOS: (
        "meant to forbid more to this robot, but made a mistake",
        "leave out what the marked lines name",
        "report.html#the-warning-about-lines-without-effect",
    ),
    REFUSALS: (
        "said no to a use of their pages that the crawl did not obey",
        "set NOROBOTS_PURPOSES",
        "usage.html#obey-on-request",
    ),
    PATTERNS: (
        "had * or $ in rules for this robot, read literally",
        'set NOROBOTS_ALSO_OBEY = ["rfc9309"]',
        "readings.html#which-should-i-choose",
    ),
    DIFFER: (
        "had rules that the readings see differently, and all were obeyed",
        "compare the marked lines",
        "readings.html#what-differs",
    ),
}


class Cause(NamedTuple):
    """The cause of a drop: a line of a robots.txt with its value, or line 0 and a reason in words.

    `origin` is empty if the URL has none, `text` is the rule or the reason, and `robot` the one of
    ``NOROBOTS_ALSO_ROBOTS`` that it applies to, if any.
    """

    origin: str
    line: int
    value: str
    text: str
    robot: str = ""

    @classmethod
    def of(cls, decision: Decision, access: Access | None) -> Cause:
        origin = "" if access is None else str(access.snapshot.origin)
        line, value = decision.rule or (
            0,
            f"as read by {decision.parser}" if decision.parser else decision.why,
        )
        if access is not None and access.rules is None:
            value = str(Outcome.of(access))
        text = f"Disallow: {value}" if decision.reason is Reason.RULE else value
        return cls(origin, line, value[:_TEXT_MAX], text[:_TEXT_MAX], decision.decided_for)


class Outcome(NamedTuple):
    """The outcome for an origin: the kind of its access, `Access.outcome`, and whether it is stale."""

    kind: str
    key: str
    stale: bool

    @classmethod
    def of(cls, access: Access) -> Outcome:
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
        return not usual or self.ignored_lines > 0 or self.dropped > 0, self.dropped, self.seconds


class Counters:
    """The counts of one crawl.

    An origin that was evicted from memory and has no row is counted again when it is loaded again.
    """

    def __init__(self, rows_max: int) -> None:
        """Keep at most `rows_max` rows, which may be 0."""
        self.requests: Counter[str] = Counter()
        self.outcomes: Counter[Outcome] = Counter()  # of origins
        self.sources: Counter[str] = Counter()
        self.files: Counter[str] = Counter()  # that have lines without effect, or a Crawl-delay
        self.usage: Counter[str] = Counter()
        self.marks: Counter[str] = Counter()
        self.causes: Counter[Cause] = Counter()
        self.dropped: Counter[str] = Counter()  # requests, by the mark of their origin
        self.longest: dict[str, tuple[float, Origin]] = {}
        self.rows: dict[Origin, OriginRow] = {}
        self._rows_max = rows_max

    def load(self, event: Load, examined: Examined = NOTHING) -> None:
        """Count a load of an origin, and what was found in its file."""
        origin, outcome = event.access.snapshot.origin, Outcome.of(event.access)
        row = self.rows.get(origin)
        if row is not None:
            self.outcomes[row.outcome] -= 1
        elif event.previous is not None:
            self.outcomes[Outcome.of(event.previous)] -= 1
        self.outcomes[outcome] += 1
        self.sources[event.source] += 1
        if event.is_new:
            self.marks.update(examined.marks)
            self.files["faulty"] += examined.lines > 0
        self._compare("load", event.seconds, origin)
        row = row or self._new_row(event.access)
        row.outcome, row.detail = outcome, event.access.detail[:_TEXT_MAX]
        row.source, row.seconds = event.source, max(row.seconds, event.seconds)
        row.ignored_lines, row.findings = examined.lines, examined.kinds
        row.marks = examined.marks | (row.marks & {REFUSALS})

    def add_crawl_delay(self, origin: Origin, seconds: float, is_new: bool) -> None:
        """Count the Crawl-delay that is kept for an origin, in seconds; 0 if there is none."""
        if origin in self.rows:
            self.rows[origin].crawl_delay = seconds
        if seconds:
            self.files["crawl_delay"] += is_new
            self._compare("crawl_delay", seconds, origin)

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

    def drops(self) -> dict[str, Counter[tuple[int, str]]]:
        """Return how many requests each line, with its value, has dropped, by origin; line 0 is none."""
        found: dict[str, Counter[tuple[int, str]]] = {}
        for cause, count in self.causes.most_common():
            found.setdefault(cause.origin, Counter())[cause.line, cause.value] += count
        return found

    def of_most_interest(self) -> list[Origin]:
        """Return the origins that have a row, those of most interest first."""
        return sorted(self.rows, key=lambda origin: self.rows[origin].interest, reverse=True)

    def _compare(self, what: str, seconds: float, origin: Origin) -> None:
        self.longest[what] = max(self.longest.get(what, (0.0, origin)), (seconds, origin))

    def _new_row(self, access: Access) -> OriginRow:
        """Return a row, and keep it if there may be rows; the least interesting tenth makes room for it."""
        row = OriginRow(Outcome.of(access), access.detail[:_TEXT_MAX])
        if len(self.rows) >= self._rows_max:
            for origin in self.of_most_interest()[self._rows_max * 9 // 10 :]:
                del self.rows[origin]
        if self._rows_max:
            self.rows[access.snapshot.origin] = row
        return row


def facts_of(counters: Counters, crawl: dict[str, Any], files: Sequence[Listing] = ()) -> Facts:
    """Return the report of a crawl as plain data, with the listings of robots.txt files."""
    rows = list(starmap(_row, counters.rows.items()))
    marks = counters.marks.copy()
    for outcome, count in counters.outcomes.items():
        marks[outcome.mark] += count
    longest = {
        what: {"origin": printable(str(origin)), "seconds": round(seconds, 3)}
        for what, (seconds, origin) in counters.longest.items()
    }
    origins = counters.outcomes.total()
    dropped = "would have been dropped" if crawl.get("dry_run") else "dropped"
    return Facts(
        crawl=crawl,
        to_do=_to_do(rows, marks, counters.dropped, dropped),
        requests={
            name: counters.requests[name]
            for name in ("passed", "dropped", "overridden", "waited", "came_back", "given_up", "left")
        },
        origins=origins,
        outcomes=[
            {**outcome._asdict(), "text": str(outcome), "origins": count}
            for outcome, count in counters.outcomes.most_common()
            if count
        ],
        sources=dict(counters.sources.most_common()),
        slowest=longest.get("load"),
        crawl_delays={"files": counters.files["crawl_delay"], "longest": longest.get("crawl_delay")},
        usage=dict(sorted(counters.usage.items())),
        faulty_files=counters.files["faulty"],
        rules=_rules(counters.causes)[:_RULES_MAX],
        dropped_other=counters.requests["dropped"] - counters.causes.total(),
        rows=sorted(rows, key=lambda row: -row["dropped"]),
        rows_left_out=max(0, origins - len(rows)),
        files=list(files),
    )


def _to_do(
    rows: Sequence[dict[str, Any]], sites: Counter[str], requests: Counter[str], dropped: str
) -> list[dict[str, Any]]:
    """Return what to do after a crawl, with the sites behind each entry, as far as they have a row.

    `sites` and `requests` are the numbers of sites, and of requests that they had dropped, for each mark.
    """
    return [
        {
            "kind": mark,
            "sites": sites[mark],
            "requests": requests[mark] or None,
            "what": f"{what} ({counted(requests[mark], 'request')} {dropped})" if requests[mark] else what,
            "do": do,
            "docs": DOCS + page,
            "origins": [row["origin"] for row in rows if mark in row["marks"]],
        }
        for mark, (what, do, page) in _ADVICE.items()
        if sites[mark]
    ]


def counted(number: int, noun: str) -> str:
    """Return a number of things in words."""
    return f"{number:,} {noun}{'s' if number != 1 else ''}"


def _rules(causes: Counter[Cause]) -> list[dict[str, Any]]:
    """Return the causes by rule, over origins; each with its origins, those with most drops first.

    `line` is the number of the line if the rule dropped requests at one origin only.
    """
    groups: dict[tuple[str, str], Counter[Cause]] = {}
    for cause, count in causes.most_common():
        groups.setdefault((cause.text, cause.robot), Counter())[cause] = count
    rules = []
    for (text, robot), group in groups.items():
        line = next(iter(group)).line
        origins = list(dict.fromkeys(printable(cause.origin) for cause in group))
        rules.append(
            {
                "text": printable(text),
                "robot": printable(robot) or None,
                "is_line": line > 0,
                "line": (line or None) if len(origins) == 1 else None,
                "requests": group.total(),
                "origins": origins,
            }
        )
    return sorted(rules, key=lambda rule: (-rule["requests"], rule["text"]))


def _row(origin: Origin, row: OriginRow) -> dict[str, Any]:
    marks = row.marks | {row.outcome.mark}
    facts = {field: getattr(row, field) for field in OriginRow.__slots__}
    return facts | {
        "origin": printable(str(origin)),
        "outcome": str(row.outcome),
        "seconds": round(row.seconds, 3),
        "crawl_delay": round(row.crawl_delay, 3),
        "marks": sorted(marks - {""}),
        "detail": printable(row.detail),
    }
