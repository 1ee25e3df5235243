"""The text of a robots.txt file: bytes in, numbered lines and their fields out.

Clauses F1 to F8. Any bytes are taken and none raise: bytes that are not UTF-8 come through as lone
surrogates (PEP 383) and end up as the same bytes again, as ``%XX``, in a path. A line ends at CR LF,
CR or LF and nowhere else, so `str.splitlines`, which also cuts at form feeds and U+2028, is not used.
"""

from __future__ import annotations

import codecs
import re

_UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

# F3, F6: "<field>:<optionalspace><value><optionalspace>", a comment from the first '#' on. Only the two
# fields of the standard are looked for (F7); group 1 tells them apart, group 2 is the value. What may be
# dropped around both is spaces and tabs, no other character.
FIELD = re.compile(r"[ \t]*(?:(u)ser-agent|disallow)[ \t]*:[ \t]*([^#]*)", re.IGNORECASE | re.ASCII)

_NOT_BLANK = re.compile(r"\S")

# F8: what may stand before a page's own markup: declarations and comments.
_PREAMBLE = re.compile(r"<\?|<!--")

# F8: the tags a page opens with.
_PAGE = re.compile(r"<(?:!doctype\s+html|html|head|body)(?![^\s/>])", re.IGNORECASE)


def to_text(body: bytes | str) -> str:
    """Decode the bytes of a file (F1), its byte order mark dropped.

    A `str` is taken as already decoded. Raises `TypeError` for anything else.
    """
    if isinstance(body, str):
        return body.removeprefix("\ufeff")
    if not isinstance(body, bytes):
        raise TypeError(f"a robots.txt body must be bytes or str, not {type(body).__name__}")
    if body.startswith(_UTF16_BOMS):
        # Half a character at the end is dropped: a rule that it ends then forbids no less.
        return body[: len(body) & ~1].decode("utf-16", "replace")
    return body.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")


def to_lines(text: str) -> list[str]:
    """Cut a text into its lines (F2); the first has number 1."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.split("\n")


def is_blank(line: str) -> bool:
    """Whether a line ends a record (F5): it holds spaces and tabs at most.

    A line with a comment is not blank, whatever stands before the ``#`` (F4).
    """
    return not line.strip(" \t")


def is_html(text: str) -> bool:
    """Whether the text is plainly an HTML page, which has no records (F8).

    It is if the first markup after XML declarations and comments is a page's, and nothing stands before.
    """
    position = _end_of_blanks(text, 0)
    while preamble := _PREAMBLE.match(text, position):
        end = "?>" if preamble[0] == "<?" else "-->"
        found = text.find(end, preamble.end())
        if found < 0:
            return False
        position = _end_of_blanks(text, found + len(end))
    return _PAGE.match(text, position) is not None


def _end_of_blanks(text: str, position: int) -> int:
    found = _NOT_BLANK.search(text, position)
    return found.start() if found else len(text)
