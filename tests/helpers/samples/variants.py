"""The bytes of a robots.txt in every form: line ends, encodings, byte order marks."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from itertools import chain, cycle

# In the mixed one, no LF follows a CR, because they would be a single line end.
LINE_ENDS = {"LF": ("\n",), "CR": ("\r",), "CRLF": ("\r\n",), "mixed": ("\r\n", "\n", "\r")}

ENCODINGS = {
    "utf-8": (b"", "utf-8"),
    "utf-8-bom": (codecs.BOM_UTF8, "utf-8"),
    "utf-16-le": (codecs.BOM_UTF16_LE, "utf-16-le"),
    "utf-16-be": (codecs.BOM_UTF16_BE, "utf-16-be"),
    "utf-16 without a mark": (b"", "utf-16-le"),
    "utf-32-le": (codecs.BOM_UTF32_LE, "utf-32-le"),
    "utf-32 without a mark": (b"", "utf-32-be"),
}


def with_line_ends(text: str, line_ends: str) -> str:
    """Replace the line ends LF of a text by the named line ends of `LINE_ENDS`."""
    ends = cycle(LINE_ENDS[line_ends])
    *lines, last = text.split("\n")
    return "".join(chain.from_iterable((line, next(ends)) for line in lines)) + last


def variants(text: str) -> Iterator[tuple[str, bytes]]:
    """Yield a name and the bytes of a text, whose lines end with LF, in each variant."""
    for ends in LINE_ENDS:
        for encoding, (mark, codec) in ENCODINGS.items():
            # Without a mark, only ASCII characters at the start show the encoding.
            if mark or codec == "utf-8" or (len(text) > 1 and text[:2].isascii() and "\0" not in text[:2]):
                yield f"{ends} {encoding}", mark + with_line_ends(text, ends).encode(codec)
