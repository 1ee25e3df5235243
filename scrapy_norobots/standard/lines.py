"""Decode a robots.txt, split it into lines, and match the lines of fields, for all readings.

Any bytes are accepted, and none raise an exception (F1). UTF-16 and UTF-32 are recognized. Else bytes that
are not UTF-8 become lone surrogates (PEP 383), and in a path ``%XX`` of the same bytes. The patterns need a
text with a line feed before each line, including the first. `sections_of` splits a file at its ``User-agent``
lines: records (1994) and groups (RFC 9309) are both made of its result, so a file is read once.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from io import IncrementalNewlineDecoder
from itertools import accumulate

# F3, F5, F6: the only white space that is removed around fields, values and comments.
BLANKS = " \t"

# F6, F3: "<field>:<optionalspace><value><optionalspace>", the field in any case, the value up to a comment.
# There are patterns for the two fields of the standard only (F7); group 1 is the value.
_VALUE = r"[ \t]*([^#\n]*[^# \t\n]|)"
USER_AGENT = re.compile(rf"\n[ \t]*user-agent[ \t]*:{_VALUE}", re.IGNORECASE | re.ASCII)
DISALLOW = re.compile(rf"\n[ \t]*disallow[ \t]*:{_VALUE}", re.IGNORECASE | re.ASCII)

# RFC 9309, 2.2, and the typing errors that Google's open parser reads too: other letters after the name of a
# field, other spellings of it, a blank in place of the colon, and form feeds or vertical tabs around a value.
# A line that allows something must be as in the RFC. Group 1 is the value.
_BLANK = r"[ \t\v\f]*"
_ODD_BLANKS = " \t\v\f"
_BLANKS_BETWEEN = re.compile(r"[ \t]+")
_TYPED_VALUE = r"([^# \t\v\f\n]*(?:[ \t\v\f]+[^# \t\v\f\n]+)*)"
_UNTYPED = r"[^ \t\n:#]*[ \t]+(?=[^ \t\n:#]+(?:[ \t][ \t\v\f]*)?(?:[#\n]|\Z))"
ANY_DISALLOW = re.compile(
    rf"\n{_BLANK}di(?:sallow:|(?:ss?all?ow|asllow|sallaw)(?:[^:#\n]*:|{_UNTYPED})){_BLANK}{_TYPED_VALUE}",
    re.IGNORECASE | re.ASCII,
)
ALLOW = re.compile(rf"\n{_BLANK}allow{_BLANK}:{_BLANK}{_TYPED_VALUE}", re.IGNORECASE | re.ASCII)
# Group 1: the field as written, with its colon; without one, the whole line. Group 2: the value.
_ANY_USER_AGENT = re.compile(rf"\n({_BLANK}user[- ]?agent[^:#\n]*:?){_VALUE}", re.IGNORECASE | re.ASCII)
_USER_AGENT_FIELD = re.compile(r"[ \t]*user-agent[ \t]*:", re.IGNORECASE | re.ASCII)
# The usual ways to write the field, which need no further look.
_USUAL = frozenset({"User-agent:", "User-Agent:", "user-agent:"})

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
SURROGATE = re.compile("[\ud800-\udfff]")

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
    first = body[:4]
    if first.isascii() and b"\0" not in first:  # as in most files
        return "utf-8", False
    for mark, encoding in _MARKS.items():
        if body.startswith(mark):
            return encoding, True
    return _WITHOUT_MARK.get(tuple(map(bool, first)), "utf-8"), False


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
    return IncrementalNewlineDecoder(None, translate=True).decode(text, final=True)


@dataclass(frozen=True)
class Sections:
    """A file, split at its ``User-agent`` lines: `values` of these lines, and the text `below` each of them.

    `above` is the text above the first one. In each text, a line feed precedes each line.
    """

    above: str
    values: list[str]
    below: list[str]

    @cached_property
    def line_numbers(self) -> list[int]:
        """The numbers of the ``User-agent`` lines, and that behind the last line."""
        return list(accumulate(text.count("\n") + 1 for text in (self.above, *self.below)))


def sections_of(text: str) -> tuple[Sections, Sections]:
    """Split a text at the ``User-agent`` lines of the standard of 1994, and at those of RFC 9309.

    Both are the same object, unless a line has a typing error that only the reading of RFC 9309 reads.
    """
    # With a line feed at the end, a blank line ends the last record too.
    above, *parts = _ANY_USER_AGENT.split(f"\n{with_line_feeds(text)}\n")
    fields, values, below = parts[::3], parts[1::3], parts[2::3]
    same = Sections(above, values, below)
    if _USUAL.issuperset(fields) and "\f" not in text and "\v" not in text:
        return same, same
    pairs = zip(fields, values, strict=True)
    strict = (value if _USER_AGENT_FIELD.fullmatch(field) else None for field, value in pairs)
    return _with_values(same, strict), _with_values(same, map(_typed_value, fields, values))


def _typed_value(field: str, value: str) -> str | None:
    """Return the value of a line for RFC 9309; one without a colon has a value if it has two words."""
    if field.endswith(":"):
        return value.strip(_ODD_BLANKS)
    words = _BLANKS_BETWEEN.split(field.strip(_ODD_BLANKS))
    return words[1].strip(_ODD_BLANKS) if len(words) == 2 and words[0].lower() != "user" else None


def _with_values(sections: Sections, values: Iterable[str | None]) -> Sections:
    """Give the lines these values. One without a value ends nothing, like a comment (F7)."""
    texts, kept = [[sections.above]], []
    for value, below in zip(values, sections.below, strict=True):
        if value is None:
            texts[-1] += "\n#", below
        else:
            kept.append(value)
            texts.append([below])
    above, *others = map("".join, texts)
    return Sections(above, kept, others)


def has_rule(text: str) -> bool:
    """Return whether a text has a rule of RFC 9309."""
    return ANY_DISALLOW.search(text) is not None or ALLOW.search(text) is not None


def rules_below(text: str, line: int) -> Iterator[tuple[int, str, bool]]:
    """Yield the rules of RFC 9309 in a text that follows a line: line number, value, whether it allows."""
    found = [(match.start(), match[1], False) for match in ANY_DISALLOW.finditer(text)]
    found += [(match.start(), match[1], True) for match in ALLOW.finditer(text)]
    end = 0
    for start, value, allows in sorted(found):
        line += text.count("\n", end, start + 1)
        end = start + 1
        yield line, value, allows


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
