"""Render a report as text for the log, as JSON, or as one HTML page that loads nothing from the network.

The summary for the log has at most 14 lines. The script of the page only sorts, filters and shows. Text from
sites can never become markup or code in the page: it is escaped for HTML; the rows of the table are in a JSON
block without a ``<``, and the script inserts them as text; a Content-Security-Policy allows only the page's
own script and style, by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, TypeAlias
from urllib.parse import urlencode

from scrapy_norobots.features.report.counters import DOCS, counted
from scrapy_norobots.standard.decision import quoted

_CAUSES_IN_LOG = 3

# The columns of the table, each with its header and its class. The details are shown below the outcome and
# below the number of lines.
_COLUMNS = {
    "origin": ("Site", ""),
    "outcome": ("Outcome", ""),
    "seconds": ("Slowest load", "number"),
    "requests": ("Checked", "number"),
    "dropped": ("Dropped", "number"),
    "ignored_lines": ("Lines without effect", ""),
}
_DETAILS = ("detail", "findings")


def log_text(facts: dict[str, Any]) -> str:
    """Return the summary for the log, several lines of text."""
    requests = facts["requests"]
    dropped = f"{'would have been ' if facts['crawl']['dry_run'] else ''}dropped"
    passed = f"{requests['passed']} passed, {requests['dropped']} {dropped}"
    lines = [f"requests: {passed}, {requests['overridden']} not checked (dont_obey_robotstxt)"]
    causes = facts["rules"][:_CAUSES_IN_LOG]
    for cause in causes:
        where = cause["origins"][0] if len(cause["origins"]) == 1 else counted(len(cause["origins"]), "site")
        line = f"line {cause['line']}, " if cause["line"] else ""
        what = quoted(cause["text"]) if cause["is_line"] else cause["text"]
        count = f"{cause['requests']} {dropped} at {where or 'no origin'}"
        lines.append(f"{count}: {line}{what}")
    if rest := requests["dropped"] - sum(cause["requests"] for cause in causes):
        lines.append(f"{rest} {dropped} for other reasons")
    if requests["waited"]:
        lines.append(_waiting(requests))
    outcomes = ", ".join(f"{outcome['text']}: {outcome['origins']}" for outcome in facts["outcomes"])
    lines.append(f"origins: {facts['origins']}{f' ({outcomes})' if outcomes else ''}")
    to_do = [
        f"to do: {counted(entry['sites'], 'site')} {entry['what']}: {entry['do']}" for entry in facts["to_do"]
    ]
    lines += to_do or ["to do: nothing"]
    if facts["faulty_files"]:
        lines.append(f"files with lines without effect: {facts['faulty_files']}")
    return "\n  ".join([f"robots.txt in this crawl ({facts['crawl']['spider']})", *lines])


def to_json(facts: dict[str, Any]) -> str:
    """Return a report as JSON, in ASCII."""
    return json.dumps(facts, indent=1) + "\n"


def to_html(facts: dict[str, Any]) -> str:
    """Return a report as an HTML page."""
    style, script = _resource("page.css"), _resource("page.js")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    crawl, requests = facts["crawl"], facts["requests"]
    started, finished = (datetime.fromisoformat(crawl[name]) for name in ("started", "finished"))
    about = f"{started:%Y-%m-%d %H:%M:%S} UTC, took {finished - started}, ended: {crawl['reason']}"
    dropped = "would be dropped" if crawl["dry_run"] else "dropped"
    figures = {
        "sites": facts["origins"],
        "requests passed": requests["passed"],
        f"requests {dropped}": requests["dropped"],
        **({"requests not checked": requests["overridden"]} if requests["overridden"] else {}),
    }
    groups = _groups(facts)
    entries = [
        f"<li>{_link(one['kind'], counted(one['sites'], 'site'))} {escape(one['what'])}: "
        f'<a href="{escape(one["docs"])}">{escape(one["do"])}</a>.</li>'
        for one in facts["to_do"]
    ]
    data = {
        "columns": [*_COLUMNS, *_DETAILS],
        "rows": [[row[name] for name in (*_COLUMNS, *_DETAILS)] for row in facts["rows"]],
        "groups": {key: places for key, _, places in groups},
        "files": facts["files"],
        "dropped": dropped,
        "docs": DOCS,
    }
    return Template(_resource("page.html")).substitute(
        policy=escape(policy),
        style=style,
        script=script,
        data=_json_block(data),
        spider=escape(crawl["spider"]),
        generator=escape(crawl["generator"]),
        about=escape(about),
        dry_run='<p class="note">A dry run: nothing was dropped.</p>' if crawl["dry_run"] else "",
        waiting=f'<p class="muted">{_waiting(requests).capitalize()}.</p>' if requests["waited"] else "",
        outcomes=" ".join(
            f'<span class="outcome {"stale" if one["stale"] else one["kind"]}">'
            f"{_link(one['text'], '{text}: {origins:,}'.format(**one))}</span>"
            for one in facts["outcomes"]
        ),
        figures="".join(f"<div><dt>{name}</dt><dd>{count:,}</dd></div>" for name, count in figures.items()),
        to_do=_folded("ul", entries or ["<li>Nothing.</li>"], 2, " open"),
        causes_heading=f"Why requests {'would be' if crawl['dry_run'] else 'were'} dropped",
        causes=_causes(facts),
        setup=_setup(facts),
        options="".join(
            f'<option value="{escape(key)}">{escape(label[:50])} ({len(places):,})</option>'
            for key, label, places in groups
        ),
        left_out=f"<p>{facts['rows_left_out']:,} more sites are only counted.</p>"
        if facts["rows_left_out"]
        else "",
        headers="".join(
            f'<th scope="col" data-column="{name}" class="{kind}"><button type="button">'
            f"{dropped.capitalize() if name == 'dropped' else header}</button></th>"
            for name, (header, kind) in _COLUMNS.items()
        ),
        drops_header=dropped.capitalize(),
    )


# The renderers, by the extension of the file name.
Renderer: TypeAlias = Callable[[dict[str, Any]], str]
RENDERERS: dict[str, Renderer] = {".html": to_html, ".htm": to_html, ".json": to_json}


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _json_block(data: Any) -> str:
    """Return JSON that is safe inside a script element: ASCII without markup characters."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _groups(facts: dict[str, Any]) -> list[tuple[str, str, list[int]]]:
    """Return the groups of rows that the page can show: key for links, label, and numbers of the rows."""
    places: dict[str, int] = {}
    outcomes: dict[str, list[str]] = {}
    for number, row in enumerate(facts["rows"]):
        places[row["origin"]] = number
        outcomes.setdefault(row["outcome"], []).append(row["origin"])
    groups = [(text, text, origins) for text, origins in outcomes.items()]
    groups += [(one["kind"], f"to do: {one['what']}", one["origins"]) for one in facts["to_do"]]
    groups += [(f"cause-{number}", one["text"], one["origins"]) for number, one in enumerate(facts["rules"])]
    return [
        (key, label, [places[each] for each in origins if each in places]) for key, label, origins in groups
    ]


def _link(key: str, text: str) -> str:
    return f'<a href="#{escape(urlencode({"show": key}))}">{escape(text)}</a>'


def _causes(facts: dict[str, Any]) -> str:
    if not facts["rules"]:
        return "<p>None were.</p>"
    rows = [
        f'<tr><td class="number">{rule["requests"]:,}</td>'
        f'<td class="site">{"<code>" if rule["is_line"] else ""}{escape(rule["text"])}'
        f"{'</code>' if rule['is_line'] else ''}</td>"
        f"<td>{_link(f'cause-{number}', counted(len(rule['origins']), 'site'))}</td></tr>"
        for number, rule in enumerate(facts["rules"])
    ]
    if rest := facts["requests"]["dropped"] - sum(rule["requests"] for rule in facts["rules"]):
        rows.append(f'<tr><td class="number">{rest:,}</td><td colspan="2">for other reasons</td></tr>')
    return _folded("table", rows, 5)


def _folded(tag: str, parts: Sequence[str], count: int, is_open: str = "") -> str:
    """Return an element with some parts, and one that is opened with the rest."""
    first, more = ("".join(some) for some in (parts[:count], parts[count:]))
    if not more:
        return f"<{tag}>{first}</{tag}>"
    rest = f"<details{is_open}><summary>{len(parts) - count:,} more</summary><{tag}>{more}</{tag}></details>"
    return f"<{tag}>{first}</{tag}>{rest}"


def _setup(facts: dict[str, Any]) -> str:
    crawl = facts["crawl"]
    lines = {
        "Robot": f"{crawl['robot']}; rules are chosen for {crawl['token'] or 'a robot without a name'}",
        "Readings": " and ".join(crawl["readings"]),
        "Status policy": crawl["status_policy"],
        **crawl["settings"],
        "Versions": ", ".join([crawl["generator"], *map(" ".join, crawl["versions"].items())]),
    }
    return "".join(
        f'<tr><th scope="row">{name}</th><td class="site">{escape(text)}</td></tr>'
        for name, text in lines.items()
    )


def _waiting(requests: dict[str, int]) -> str:
    return (
        f"requests that waited for closed sites: {requests['waited']}; came back: {requests['came_back']}, "
        f"given up: {requests['given_up']}, left at the end: {requests['left']}"
    )
