"""The report as plain data, and as a few lines of text for the log.

The JSON report has exactly this data; the page and the log are made from it. Text from sites is escaped here
with `printable`, so that it is safe on a terminal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from scrapy_norobots.features.report.counters import Cause, Counters, OriginRow
from scrapy_norobots.features.report.listing import Listing
from scrapy_norobots.standard import Origin
from scrapy_norobots.standard.decision import printable, quoted

_IN_LOG = 10
_IN_REPORT = 100


# A report, as `facts_of` makes it; its `crawl` describes the crawl: generator, spider, times, and so on.
Facts: TypeAlias = dict[str, Any]


def facts_of(counters: Counters, crawl: dict[str, Any], files: Sequence[Listing] = ()) -> Facts:
    """Return the report of a crawl as plain data, with the listings of robots.txt files."""
    return Facts(
        crawl=crawl,
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
        patterns={"files": counters.patterns, "first": printable(counters.first_pattern) or None},
        causes=len(counters.causes),
        dropped_most=[_cause(*item) for item in counters.most_common_causes()[:_IN_REPORT]],
        dropped_most_short_by=counters.short_by,
        rows=[_row(*item) for item in sorted(counters.rows.items(), key=lambda item: -item[1].dropped)],
        rows_left_out=counters.left_out,
        files=list(files),
    )


def log_text(facts: Facts) -> str:
    """Return the summary for the log, several lines of text."""
    outcomes = ", ".join(f"{outcome['text']}: {outcome['origins']}" for outcome in facts["outcomes"])
    sources = ", ".join(f"{count} from {source}" for source, count in facts["sources"].items())
    requests = facts["requests"]
    would_be = "would have been " if facts["crawl"]["dry_run"] else ""
    lines = [
        f"robots.txt in this crawl ({facts['crawl']['spider']})",
        f"  origins: {facts['origins']}{f' ({outcomes})' if outcomes else ''}",
    ]
    if facts["slowest"]:
        slowest = facts["slowest"]
        lines.append(
            f"  robots.txt loaded: {sources}; slowest: {slowest['origin']} in {slowest['seconds']:.2f} s"
        )
    if facts["patterns"]["files"]:
        lines.append(
            f"  files with * or $ in rules, which the 1994 standard reads literally: "
            f"{facts['patterns']['files']}, first: {facts['patterns']['first']}"
        )
    if facts["crawl_delays"]["longest"]:
        longest = facts["crawl_delays"]["longest"]
        lines.append(
            f"  origins with a Crawl-delay: {facts['crawl_delays']['files']}; "
            f"longest: {longest['seconds']:g} s at {longest['origin']}"
        )
    if facts["usage"]:
        lines.append(f"  {usage_text(facts['usage'])}")
    lines.append(
        f"  requests: {requests['passed']} passed, {requests['dropped']} {would_be}dropped, "
        f"{requests['overridden']} not checked (dont_obey_robotstxt)"
    )
    if requests["waited"]:
        lines.append(f"  {waiting_text(requests)}")
    for cause in facts["dropped_most"][:_IN_LOG]:
        what = (
            f"line {cause['line']}, {quoted('Disallow: ' + cause['text'])}{for_robot(cause)}"
            if cause["line"]
            else cause["text"]
        )
        lines.append(f"  {cause['count']} {would_be}dropped at {cause['origin'] or 'no origin'}: {what}")
    return "\n".join(lines)


def _longest(found: tuple[Origin, float] | None) -> dict[str, Any] | None:
    return {"origin": printable(str(found[0])), "seconds": round(found[1], 3)} if found else None


def usage_text(usage: dict[str, int]) -> str:
    """Return the numbers of the sites that state something about the use of their pages, in words."""
    return f"sites that state the use of their pages: {', '.join(f'{n} {said}' for said, n in usage.items())}"


def waiting_text(requests: dict[str, int]) -> str:
    """Return the numbers of the requests that waited, in words."""
    return (
        f"requests that waited for closed sites: {requests['waited']}; came back: {requests['came_back']}, "
        f"given up: {requests['given_up']}, left at the end: {requests['left']}"
    )


def for_robot(cause: dict[str, Any]) -> str:
    """Return the robot of a cause in words; empty if it is the crawl's own."""
    return f", for {quoted(cause['robot'])}" if cause["robot"] else ""


def _cause(cause: Cause, count: int) -> dict[str, Any]:
    return {
        "origin": printable(cause.origin),
        "line": cause.line or None,
        "text": printable(cause.text),
        "robot": printable(cause.robot) or None,
        "count": count,
    }


def _row(origin: Origin, row: OriginRow) -> dict[str, Any]:
    return {
        "origin": printable(str(origin)),
        "outcome": str(row.outcome),
        "source": row.source,
        "seconds": round(row.seconds, 3),
        "requests": row.requests,
        "dropped": row.dropped,
        "crawl_delay": round(row.crawl_delay, 3),
        "ignored_lines": row.ignored_lines,
        "findings": row.findings,
        "detail": printable(row.detail),
    }
