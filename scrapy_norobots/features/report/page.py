"""Render a report as JSON, or as one HTML page that loads nothing from the network.

Text from sites can never become markup or code in the page: it is escaped for HTML; the rows of the table
are in a JSON block without a ``<``, and the script inserts them as text; a Content-Security-Policy allows
only the page's own script and style, by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from scrapy_norobots.features.report.facts import Facts, for_robot, usage_text, waiting_text
from scrapy_norobots.features.report.ineffective import MISPLACED

_COLUMNS = (
    "origin", "outcome", "source", "seconds", "requests", "dropped", "crawl_delay", "ignored_lines",
    "findings", "detail",
)  # fmt: skip
_RULES_SHOWN = 12
# Findings in the table: what is wrong with a line, in few words; the file behind the row says more.
_FINDINGS = {
    "misspelt-field": "misspelt field",
    "nul": "NUL characters",
    "no-colon": "neither a field nor a comment",
    "html-page": "HTML page",
    "stray-disallow": "Disallow outside of a record",
    "name-taken": "second record for a robot",
    "empty-name": "User-agent without a name",
    "star-in-name": "'*' within a name",
    "foreign-url": "URL that no robots.txt applies to",
    "several-paths": "several paths in a line",
    MISPLACED: "rule below such a line",
}
_FINDING = re.compile(r"[a-z-]+(?= \()")
_DELAY_HEADER = (
    '<th scope="col" data-column="crawl_delay" class="number"><button type="button">Crawl-delay</button></th>'
)


def to_json(facts: Facts) -> str:
    """Return a report as JSON, in ASCII."""
    return json.dumps(facts, indent=1) + "\n"


def to_html(facts: Facts) -> str:
    """Return a report as an HTML page."""
    style, script = _resource("page.css"), _resource("page.js")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    crawl, requests = facts["crawl"], facts["requests"]
    dry_run = crawl["dry_run"]
    dropped = "would be dropped" if dry_run else "dropped"
    return Template(_resource("page.html")).substitute(
        policy=escape(policy),
        style=style,
        script=script,
        rows=_json_block({"columns": _COLUMNS, "rows": [_row(row) for row in facts["rows"]]}),
        spider=escape(crawl["spider"]),
        generator=escape(crawl["generator"]),
        times=f"{_time(crawl['started'])} to {_time(crawl['finished'])}",
        reason=escape(crawl["reason"]),
        dry_run='<p class="note">A dry run: nothing was dropped.</p>' if dry_run else "",
        dropped_label=dropped,
        dropped_header=dropped.capitalize(),
        drops_header="Would drop" if dry_run else "Drops",
        causes_heading=f"Most frequent causes of {'would-be ' if dry_run else ''}drops",
        origins=f"{facts['origins']:,}",
        passed=f"{requests['passed']:,}",
        dropped=f"{requests['dropped']:,}",
        overridden=f"{requests['overridden']:,}",
        waiting=_waiting(requests),
        outcomes=_outcomes(facts),
        sources=_sources(facts),
        rules=_rules(facts),
        listed=_listed(facts),
        hint="To see the robots.txt of an origin, click the origin." if facts["files"] else "",
        delay_header=_DELAY_HEADER if any(row["crawl_delay"] for row in facts["rows"]) else "",
        files=_json_block(facts["files"]),
    )


# The renderers, by the extension of the file name.
RENDERERS = {".html": to_html, ".htm": to_html, ".json": to_json}


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _json_block(data: Any) -> str:
    """Return JSON that is safe inside a script element: ASCII without markup characters."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _row(row: dict[str, Any]) -> list[Any]:
    """Return the cells of an origin, with its findings in words."""
    findings = _FINDING.sub(lambda kind: _FINDINGS[kind[0]], row["findings"])
    return [{**row, "findings": findings}[name] for name in _COLUMNS]


def _time(iso: str) -> str:
    return f'<time datetime="{escape(iso)}">{escape(iso[:19].replace("T", " "))}</time>'


def _bars(rows: Sequence[tuple[str, str, int]], if_empty: str) -> str:
    """Return HTML table rows from tuples of a label (HTML), the CSS class of the bar, and a count."""
    if not rows:
        return _empty(if_empty)
    most = max(count for *_, count in rows)
    return "\n".join(
        f'<tr><th scope="row">{label}</th><td class="bar"><svg aria-hidden="true">'
        f'<rect class="{kind}" width="{100 * count / most:.2f}%" height="100%" rx="3"/></svg></td>'
        f'<td class="number">{count:,}</td></tr>'
        for label, kind, count in rows
    )


def _waiting(requests: dict[str, int]) -> str:
    if not requests["waited"]:
        return ""
    return f'<p class="muted waiting">{waiting_text(requests).capitalize()}.</p>'


def _outcomes(facts: Facts) -> str:
    bars = [
        (escape(outcome["text"]), "stale" if outcome["stale"] else outcome["kind"], outcome["origins"])
        for outcome in facts["outcomes"]
    ]
    return _bars(bars, "No robots.txt was loaded.")


def _sources(facts: Facts) -> str:
    if facts["slowest"] is None:
        return ""
    loaded = ", ".join(f"{count:,} from {escape(name)}" for name, count in facts["sources"].items())
    slowest = facts["slowest"]
    text = (
        f'robots.txt loaded: {loaded}. Slowest: <span class="site">{escape(slowest["origin"])}</span> '
        f"in {slowest['seconds']:.2f} s."
    )
    longest = facts["crawl_delays"]["longest"]
    if longest is not None:
        text += (
            f"<br>Origins with a Crawl-delay: {facts['crawl_delays']['files']:,}. Longest: "
            f'{longest["seconds"]:g} s at <span class="site">{escape(longest["origin"])}</span>.'
        )
    if facts["usage"]:
        text += f"<br>{usage_text(facts['usage']).capitalize()}."
    return text


def _rules(facts: Facts) -> str:
    causes = facts["dropped_most"][:_RULES_SHOWN]
    bars = [(_cause(cause), "rule" if cause["line"] else "closed", cause["count"]) for cause in causes]
    rows = _bars(bars, "None.")
    if others := facts["causes"] - len(causes):
        rest = facts["requests"]["dropped"] - sum(cause["count"] for cause in causes)
        what = "other cause" if others == 1 else "other causes"
        rows += "\n" + _empty(f"and {others:,} {what}: {rest:,} requests")
    short_by = facts["dropped_most_short_by"]
    if short_by:
        rows += "\n" + _empty(
            "There were too many different rules to count each from the start of the crawl: a count may be "
            f"too low by up to {short_by:,}, and rules with lower counts than that may be missing."
        )
    return rows


def _cause(cause: dict[str, Any]) -> str:
    line = f", line {cause['line']}{for_robot(cause)}" if cause["line"] else ""
    where = f'<span class="where site">{escape(cause["origin"] or "no origin")}{escape(line)}</span>'
    if cause["line"]:
        return f'<code class="site">Disallow: {escape(cause["text"])}</code>{where}'
    return f'<span class="site">{escape(cause["text"])}</span>{where}'


def _empty(text: str) -> str:
    return f'<tr><td colspan="3" class="empty">{text}</td></tr>'


def _listed(facts: Facts) -> str:
    if not facts["rows_left_out"]:
        return ""
    return (
        f"Origins in the table: {len(facts['rows']):,}. First those with errors, lines without "
        f"effect or forbidden requests, then the slowest. {facts['rows_left_out']:,} more are counted above, "
        "but not listed."
    )
