"""Decode a robots.txt, split it into lines, and match the lines of the two fields (clauses F1 to F8).

Any bytes are accepted, and none raise an exception. Bytes that are not UTF-8 become lone surrogates (PEP
383), and in a path ``%XX`` of the same bytes. The patterns need a text with a line feed before each line,
including the first.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from itertools import accumulate

# F3, F5, F6: the only white space that is removed around fields, values and comments.
BLANKS = " \t"

# F6, F3: "<field>:<optionalspace><value><optionalspace>", the field in any case, the value up to a comment.
# There are patterns for the two fields of the standard only (F7); group 1 is the value.
_VALUE = r"[ \t]*:[ \t]*([^#\n]*[^# \t\n]|)"
USER_AGENT = re.compile(r"\n[ \t]*user-agent" + _VALUE, re.IGNORECASE | re.ASCII)
DISALLOW = re.compile(r"\n[ \t]*disallow" + _VALUE, re.IGNORECASE | re.ASCII)

# F5, F4: an empty line, or one of spaces and tabs only; a line with a comment is not blank.
BLANK_LINE = re.compile(r"\n[ \t]*(?:\n|\Z)")

# F1: byte order marks. That of UTF-32 starts with that of UTF-16.
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_MARK = "\ufeff"

# F1: which of the first four bytes are not NUL, if the file starts with ASCII characters.
_WITHOUT_MARK: dict[tuple[bool, ...], str] = {
    (True, False, False, False): "utf-32-le",
    (False, False, False, True): "utf-32-be",
    (True, False, True, False): "utf-16-le",
    (False, True, False, True): "utf-16-be",
}

# F8: declarations and comments that may precede an HTML page, and the tags that start one.
_PREAMBLE = re.compile(r"\s*(?:<\?.*?\?>|<!--.*?-->)", re.DOTALL)
_PAGE = re.compile(r"\s*<(?:!doctype\s+html|html|head|body)(?![^\s/>])", re.IGNORECASE)


def encoding_of(body: bytes) -> tuple[str, bool]:
    """Return the encoding of a file, and whether a byte order mark says so (F1)."""
    for mark, encoding in _MARKS.items():
        if body.startswith(mark):
            return encoding, True
    return _WITHOUT_MARK.get(tuple(map(bool, body[:4])), "utf-8"), False


def to_text(body: bytes | str) -> str:
    """Decode the bytes of a file (F1) and remove byte order marks; a `str` is already decoded."""
    if isinstance(body, str):
        return body.lstrip(_MARK)
    encoding, _ = encoding_of(body)
    if encoding == "utf-8":
        return body.decode(encoding, "surrogateescape").lstrip(_MARK)
    # Drop a part of a character at the end: a rule that ends there then forbids no less.
    unit = 4 if encoding.startswith("utf-32") else 2
    return body[: len(body) // unit * unit].decode(encoding, "replace").lstrip(_MARK)


def to_lines(text: str) -> list[str]:
    """Split a text into its lines (F2)."""
    return with_line_feeds(text).split("\n")


def with_line_feeds(text: str) -> str:
    """Replace the line endings CR LF and CR by LF; no other character ends a line (F2)."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def numbered(pattern: re.Pattern[str], text: str, line: int) -> Iterator[tuple[int, str]]:
    """Return the number and value of each line that matches a field's pattern; `text` starts in `line`."""
    above, *found = pattern.split(text)
    line += above.count("\n") + 1
    return zip(
        accumulate([line, *(below.count("\n") + 1 for below in found[1::2])]), found[::2], strict=False
    )


def is_user_agent(line: str) -> bool:
    """Return whether a line is a ``User-agent`` line."""
    return USER_AGENT.match("\n" + line) is not None


def is_disallow(line: str) -> bool:
    """Return whether a line is a ``Disallow`` line."""
    return DISALLOW.match("\n" + line) is not None


def to_values(value: str) -> list[str]:
    """Split the value of a line in the multi-value dialect at spaces and tabs (D1).

    Commas and semicolons at the end of a value are removed. An empty value gives one empty string.
    """
    parts = (part.rstrip(",;") for part in value.replace("\t", " ").split(" "))
    return [part for part in parts if part] or [""]


def is_html(text: str) -> bool:
    """Return whether a text is clearly an HTML page, which has no records (F8).

    It is if the first text after XML declarations and comments is a tag that starts a page.
    """
    end = 0
    while preamble := _PREAMBLE.match(text, end):
        end = preamble.end()
    return _PAGE.match(text, end) is not None
