"""A report in words: how the crawl was set, what to do, and the summary in the log.

`to_do` makes a short list: each entry says how many sites there are of a kind, what that meant for the crawl,
which setting changes it, and where the docs explain it. `log_text` says first what was dropped, what waited
or failed, and what to do, in at most 15 lines.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import scrapy
import twisted

from scrapy_norobots.features.report.listing import PATTERNS, TYPOS
from scrapy_norobots.rules.parser import StrictRobotParser
from scrapy_norobots.settings import DEFAULTS
from scrapy_norobots.standard.decision import printable, quoted
from scrapy_norobots.standard.names import to_name

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from scrapy_norobots.settings import Config

DOCS = "https://scrapy-norobots.readthedocs.io/en/latest/"

# Marks of origins, beside those of `Examined`: the robots.txt is refused, fails or is not answered; it has
# statements that are not obeyed, or lines that the readings see differently.
REFUSED, FAILED, UNANSWERED, REFUSALS, DIFFER = "refused", "failed", "unanswered", "refusals", "differ"

# The user and password of a URL, which may contain anything, and its query, which may have a password too.
_SECRETS = ((re.compile("(?<=//).*@", re.DOTALL), "***@"), (re.compile(r"(?<=\?).*", re.DOTALL), "***"))

_LINES_MAX = 15
_CAUSES_IN_LOG = 3


class _Advice(NamedTuple):
    """What "3 sites" have in common, what to do about it, and the page of the docs."""

    what: str
    do: str
    page: str


_ADVICE = {
    REFUSED: _Advice(
        "answered with a refusal such as 403, so nothing was fetched",
        "ask their owners, or set NOROBOTS_STATUS_POLICY",
        "download-failures.html#example-allow-one-status",
    ),
    FAILED: _Advice(
        "answered with an error such as 503 to the end",
        "crawl them later, or raise NOROBOTS_RETRY_CLOSED",
        "download-failures.html#requests-to-temporarily-closed-sites",
    ),
    UNANSWERED: _Advice(
        "never gave a usable answer",
        "check hosts and network, or raise NOROBOTS_TIMEOUT",
        "download-failures.html#temporary-failures",
    ),
    TYPOS: _Advice(
        "meant to forbid more to this robot, but made a mistake",
        "leave out what the marked lines name",
        "report.html#the-warning-about-lines-without-effect",
    ),
    REFUSALS: _Advice(
        "said no to a use of their pages that the crawl did not obey",
        "set NOROBOTS_PURPOSES",
        "usage.html#obey-on-request",
    ),
    PATTERNS: _Advice(
        "had * or $ in rules for this robot, read literally",
        'set NOROBOTS_ALSO_OBEY = ["rfc9309"]',
        "readings.html#which-should-i-choose",
    ),
    DIFFER: _Advice(
        "had rules that the readings see differently, and all were obeyed",
        "compare the marked lines",
        "readings.html#what-differs",
    ),
}


def setup_of(settings: BaseSettings, config: Config, robot: str | bytes) -> dict[str, Any]:
    """Return how a crawl was set, without secrets; `robot` is that of requests without one of their own."""
    given = {name: settings.get(name, DEFAULTS[name]) for name in DEFAULTS}
    changed = {name: value for name, value in given.items() if value not in (DEFAULTS[name], None, "")}
    parsers = (config.parser or StrictRobotParser, *config.also_obey)
    return {
        "robot": printable(robot.decode("utf-8", "replace") if isinstance(robot, bytes) else robot),
        "token": printable(to_name(robot)),
        "readings": [parser.__name__ for parser in parsers],
        "status_policy": _shown(given["NOROBOTS_STATUS_POLICY"]),
        "settings": {name: _shown(value) for name, value in changed.items()},
        "versions": {
            "Scrapy": scrapy.__version__,
            "Twisted": twisted.__version__,
            "Python": platform.python_version(),
        },
    }


def _shown(value: object) -> str:
    """Return a value as text, with what may be a secret in a URL replaced."""
    text = str(value)
    for secret, instead in _SECRETS if "://" in text else ():
        text = secret.sub(instead, text)
    return printable(text)


def to_do(
    rows: Sequence[dict[str, Any]], sites: Mapping[str, int], dropped: Mapping[str, int]
) -> list[dict[str, Any]]:
    """Return what to do after a crawl, with the sites behind each entry, as far as they have a row.

    `sites` and `dropped` are the numbers of sites, and of requests that they had dropped, for each mark.
    """
    return [
        {
            "kind": mark,
            "sites": sites[mark],
            "requests": dropped.get(mark),
            "what": advice.what,
            "do": advice.do,
            "docs": DOCS + advice.page,
            "origins": [row["origin"] for row in rows if mark in row["marks"]],
        }
        for mark, advice in _ADVICE.items()
        if sites.get(mark)
    ]


def log_text(facts: dict[str, Any]) -> str:
    """Return the summary for the log, several lines of text."""
    requests = facts["requests"]
    dropped = f"{'would have been ' if facts['crawl']['dry_run'] else ''}dropped"
    passed = f"{requests['passed']} passed, {requests['dropped']} {dropped}"
    lines = [f"requests: {passed}, {requests['overridden']} not checked (dont_obey_robotstxt)"]
    causes = facts["rules"][:_CAUSES_IN_LOG]
    for cause in causes:
        where = cause["origins"][0] if len(cause["origins"]) == 1 else sites_text(len(cause["origins"]))
        line = f"line {cause['line']}, " if cause["line"] else ""
        what = quoted(cause["text"]) if cause["is_line"] else cause["text"]
        count = f"{cause['requests']} {dropped} at {where or 'no origin'}"
        lines.append(f"{count}: {line}{what}{for_robot(cause)}")
    if rest := requests["dropped"] - sum(cause["requests"] for cause in causes):
        lines.append(f"{rest} {dropped} for other reasons")
    if requests["waited"]:
        lines.append(waiting_text(requests))
    outcomes = ", ".join(f"{outcome['text']}: {outcome['origins']}" for outcome in facts["outcomes"])
    lines.append(f"origins: {facts['origins']}{f' ({outcomes})' if outcomes else ''}")
    for entry in facts["to_do"]:
        lines.append(f"to do: {sites_text(entry['sites'])} {what_text(entry, dropped)}: {entry['do']}")
    lines += [] if facts["to_do"] else ["to do: nothing"]
    lines += details(facts)
    return "\n  ".join([f"robots.txt in this crawl ({facts['crawl']['spider']})", *lines][:_LINES_MAX])


def details(facts: dict[str, Any]) -> list[str]:
    """Return what else is known of the robots.txt files, in lines."""
    lines = []
    if slowest := facts["slowest"]:
        sources = ", ".join(f"{count} from {source}" for source, count in facts["sources"].items())
        seconds = f"{slowest['seconds']:.2f} s"
        lines.append(f"robots.txt loaded: {sources}; slowest: {slowest['origin']} in {seconds}")
    if facts["faulty_files"]:
        lines.append(f"files with lines without effect: {facts['faulty_files']}")
    if longest := facts["crawl_delays"]["longest"]:
        files, seconds = facts["crawl_delays"]["files"], f"{longest['seconds']:g} s"
        lines.append(f"origins with a Crawl-delay: {files}; longest: {seconds} at {longest['origin']}")
    if facts["usage"]:
        said = ", ".join(f"{count} {said}" for said, count in facts["usage"].items())
        lines.append(f"sites that state the use of their pages: {said}")
    return lines


def sites_text(count: int) -> str:
    """Return a number of sites in words."""
    return f"{count:,} site{'s' if count != 1 else ''}"


def what_text(entry: dict[str, Any], dropped: str) -> str:
    """Return what an entry says of its sites, with the number of requests."""
    if not entry["requests"]:
        return str(entry["what"])
    requests = f"{entry['requests']:,} request{'s' if entry['requests'] != 1 else ''}"
    return f"{entry['what']} ({requests} {dropped})"


def waiting_text(requests: dict[str, int]) -> str:
    """Return the numbers of the requests that waited, in words."""
    return (
        f"requests that waited for closed sites: {requests['waited']}; came back: {requests['came_back']}, "
        f"given up: {requests['given_up']}, left at the end: {requests['left']}"
    )


def for_robot(cause: dict[str, Any]) -> str:
    """Return the robot of a cause in words; empty if it is the crawl's own."""
    return f", for {quoted(cause['robot'])}" if cause["robot"] else ""
