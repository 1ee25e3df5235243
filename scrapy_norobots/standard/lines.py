"""The text of a robots.txt file: bytes in, lines out, and patterns for the lines that count.

Clauses F1 to F8. Any bytes are taken and none raise: bytes that are not UTF-8 come through as lone
surrogates (PEP 383) and end up as the same bytes again, as ``%XX``, in a path. The patterns match in a text
in which a line feed stands before each line, also before the first.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

# F3, F5, F6: what is dropped around fields, values and comments; no other white space is.
BLANKS = " \t"

# F6, F3: "<field>:<optionalspace><value><optionalspace>", the field in any case, the value up to a comment.
# Only the two fields of the standard are looked for (F7); group 1 is the value.
_VALUE = r"[ \t]*:[ \t]*([^#\n]*[^# \t\n]|)"
USER_AGENT = re.compile(r"\n[ \t]*user-agent" + _VALUE, re.IGNORECASE | re.ASCII)
DISALLOW = re.compile(r"\n[ \t]*disallow" + _VALUE, re.IGNORECASE | re.ASCII)

# F5, F4: a line of spaces and tabs at most; one with a comment is not blank.
BLANK_LINE = re.compile(r"\n[ \t]*(?:\n|\Z)")

_UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

# F8: what may stand before a page's own markup, declarations and comments; and the tags a page opens with.
_PREAMBLE = re.compile(r"\s*(?:<\?.*?\?>|<!--.*?-->)", re.DOTALL)
_PAGE = re.compile(r"\s*<(?:!doctype\s+html|html|head|body)(?![^\s/>])", re.IGNORECASE)


def to_text(body: bytes | str) -> str:
    """Decode the bytes of a file (F1), its byte order mark dropped; a `str` is taken as already decoded."""
    if isinstance(body, str):
        return body.removeprefix("\ufeff")
    if body.startswith(_UTF16_BOMS):
        # Half a character at the end is dropped: a rule that it ends then forbids no less.
        return body[: len(body) & ~1].decode("utf-16", "replace")
    return body.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")


def to_lines(text: str) -> list[str]:
    """Cut a text into its lines (F2); the first has number 1."""
    return with_line_feeds(text).split("\n")


def with_line_feeds(text: str) -> str:
    """End lines that end at CR LF, CR or LF (F2) at LF; no other character ends one."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def numbered(pattern: re.Pattern[str], text: str, line: int) -> Iterator[tuple[int, str]]:
    """Yield the number and the value of each line that a field's pattern matches; `text` begins in `line`."""
    end = 0
    for match in pattern.finditer(text):
        start, end = end, match.start() + 1
        line += text.count("\n", start, end)
        yield line, match[1]


def is_user_agent(line: str) -> bool:
    """Whether a line is a ``User-agent`` line."""
    return USER_AGENT.match("\n" + line) is not None


def is_disallow(line: str) -> bool:
    """Whether a line is a ``Disallow`` line."""
    return DISALLOW.match("\n" + line) is not None


def to_values(value: str) -> list[str]:
    """Return the values of a line of the multi-value dialect, which blanks or tabs separate (D1).

    A comma or semicolon before a blank is no part of a value.
    """
    parts = (part.rstrip(",;") for part in value.replace("\t", " ").split(" "))
    return [part for part in parts if part] or [""]


def is_html(text: str) -> bool:
    """Whether the text is plainly an HTML page, which has no records (F8).

    It is if the first markup after XML declarations and comments is a page's, and nothing stands before.
    """
    end = 0
    while preamble := _PREAMBLE.match(text, end):
        end = preamble.end()
    return _PAGE.match(text, end) is not None
