"""Hints: suggest what to write instead of a line that has a finding.

The table `HINTS` has a sentence or a function for most kinds of findings. The function makes a sentence from
the line and the values of the finding, or returns an empty string if the intention is not clear.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import lru_cache

from scrapy_norobots.standard.decision import printable, quoted
from scrapy_norobots.standard.lines import BLANKS, is_disallow, is_user_agent
from scrapy_norobots.standard.names import robot_name
from scrapy_norobots.standard.urls import percent_encode

USER_AGENT, DISALLOW = "User-agent", "Disallow"
_FIELDS = {"useragent": USER_AGENT, "disallow": DISALLOW}

# The largest number of lines in a hint, and the longest line, in characters, that gets a hint.
_MOST_LINES = 5
_LONGEST = 500

BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_BETWEEN_NAMES = re.compile(r"[ \t,;]+")
_STAR_OR_BLANK = re.compile(r"[* \t,;]")
_BETWEEN_PATHS = re.compile(r"[ \t,;]+(?=/)")
_WITH_PATH = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://[^/]*(/.*)")
_WITHOUT_COLON = re.compile(r"[ \t]*(\S+)[ \t=]*(.*)", re.DOTALL)


def meant_field(name: str) -> str:
    """Return the field that a misspelt name resembles; empty if it resembles none (F7)."""
    return _resembled(name[:40])


@lru_cache(maxsize=256)  # a file has few different fields, and many lines
def _resembled(name: str) -> str:
    plain = re.sub(r"[-_ \t]", "", name).lower()
    resembled = get_close_matches(plain, _FIELDS, n=1, cutoff=0.75)
    # "allow" means the opposite of what it resembles.
    return _FIELDS[resembled[0]] if resembled and plain != "allow" else ""


def meant_rule(line: str) -> bool:
    """Return whether a line is a ``Disallow`` line with a value, or is probably meant as one."""
    text = line.partition("#")[0]
    if is_disallow(line):
        return _value(text) != ""
    return _respelt(text).startswith(DISALLOW) or _with_colon(text).startswith(DISALLOW)


def meant_name(line: str) -> bool:
    """Return whether a line is not a ``User-agent`` line, but is probably meant as one."""
    text = line.partition("#")[0]
    return not is_user_agent(line) and (
        _respelt(text).startswith(USER_AGENT) or _with_colon(text).startswith(USER_AGENT)
    )


def hint_for(kind: str, line: str, found: tuple[object, ...]) -> str:
    """Return a sentence on what to write instead of a line; empty if there is no hint.

    `found` has the values of the finding: those for its message, and others for the hint only.
    """
    hint = HINTS.get(kind, "")
    text = line.partition("#")[0].strip(BLANKS)
    if len(text) > _LONGEST:
        return ""
    return hint if isinstance(hint, str) else hint(text, *found)


def _value(text: str) -> str:
    return text.partition(":")[2].strip(BLANKS)


def _write(lines: str | Iterable[str]) -> str:
    if isinstance(lines, str):
        return f"Write {quoted(lines)}." if lines else ""
    texts = list(map(quoted, lines))
    more = ["…"] if len(texts) > _MOST_LINES else []
    return printable(f"Write one line for each: {', '.join(texts[:_MOST_LINES] + more)}.")


def _respelt(text: str) -> str:
    name, colon, value = text.partition(":")
    field = meant_field(name) if colon else ""
    return f"{field}: {value.strip()}" if field else ""


def _with_colon(text: str) -> str:
    """Return a line with the colon that it lacks; empty for a sentence that starts with a field's name."""
    match = _WITHOUT_COLON.match(text)
    field = meant_field(match[1]) if match else ""
    if match is None or (field == DISALLOW and match[2][:1] not in ("", "/")):
        return ""
    return f"{field}: {match[2].rstrip()}" if field else ""


def _without_star(text: str) -> str:
    name = _value(text).strip("*")
    return _write(f"{USER_AGENT}: {name}") if name and not _STAR_OR_BLANK.search(name) else ""


def _path_only(text: str) -> str:
    match = _WITH_PATH.match(_value(text))
    return _write(f"{DISALLOW}: {match[1]}") if match else ""


def _without_wildcard(text: str) -> str:
    path = _value(text)
    plain = path.rstrip("*")
    if plain == path or not plain or "*" in plain:
        return ""  # no line without a pattern can express it
    return f"Write {quoted(f'{DISALLOW}: {plain}')}: a rule applies to every path that starts with it."


def _into_record(_text: str, record: int) -> str:
    if not record:
        return f"Write {quoted(f'{USER_AGENT}: *')} above this line if it is meant for all robots."
    return f"Remove the blank line above if this line belongs to the record of line {record}."


def _before(_text: str, record: int, is_same_name: bool) -> str:
    if is_same_name:
        return f"Move its rules into the record of line {record}."
    return f"Move this record above the record of line {record}."


HINTS: dict[str, str | Callable[..., str]] = {
    "byte-order-mark": "Save the file as UTF-8 without a byte order mark.",
    "byte-order-marks": "Save the file as UTF-8 without a byte order mark.",
    "utf-16": "Save the file as UTF-8.",
    "utf-32": "Save the file as UTF-8.",
    "no-mark": "Save the file as UTF-8.",
    "not-utf-8": "Save the file as UTF-8.",
    "misspelt-field": lambda text, _field: _write(_respelt(text)),
    "no-colon": lambda text: _write(_with_colon(text)),
    "html-page": "Serve /robots.txt as plain text, or respond with 404 if there are no rules.",
    "no-blank-line": "Add a blank line above this line.",
    "no-disallow": f"Write {quoted(f'{DISALLOW}:')} below it if the robots may fetch everything.",
    "stray-disallow": _into_record,
    "second-default": lambda _text, line: f"Move its rules into the record of line {line}.",
    "version-in-name": lambda text, _name: _write(f"{USER_AGENT}: {robot_name(_value(text))}"),
    "name-taken": _before,
    "empty-name": f"Write {quoted(f'{USER_AGENT}: *')} if the record is meant for all robots.",
    "star-in-name": _without_star,
    "several-names": lambda text: _write(
        f"{USER_AGENT}: {name}" for name in _BETWEEN_NAMES.split(_value(text)) if name
    ),
    "wildcard": _without_wildcard,
    "whole-url": _path_only,
    "foreign-url": _path_only,
    "relative-path": lambda text: _write(f"{DISALLOW}: /{_value(text)}"),
    "unescaped": lambda text: _write(f"{DISALLOW}: {percent_encode(_value(text))}"),
    "bad-escape": lambda text: _write(f"{DISALLOW}: {BAD_ESCAPE.sub('%25', _value(text))}"),
    "several-paths": lambda text: _write(
        f"{DISALLOW}: {path}" for path in _BETWEEN_PATHS.split(_value(text))
    ),
}
