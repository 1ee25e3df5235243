"""Read statements about the use of pages: a text in, a `Statement` out, with its value or what is wrong.

The words for uses are those of `NOROBOTS_PURPOSES`, and what each vocabulary calls the same uses. The docs
have these tables too, with the versions of the drafts.

Any text is accepted, and none raises an exception. A statement of more than 1,000 characters is not read; it
is taken as a no to every use, because it could be one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

SEARCH, AI_INPUT, AI_TRAIN = "search", "ai-input", "ai-train"
PURPOSES = (SEARCH, AI_INPUT, AI_TRAIN)

# The kinds of statements, with the names of their fields.
CONTENT_USAGE, CONTENT_SIGNAL, LICENSE = "content-usage", "content-signal", "license"
TDM_RESERVATION, TDM_POLICY = "tdm-reservation", "tdm-policy"
NOAI, NOIMAGEAI = "noai", "noimageai"

# What the words of each kind are about.
WORDS: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        CONTENT_SIGNAL: {purpose: (purpose,) for purpose in PURPOSES},
        CONTENT_USAGE: {
            "search": (SEARCH,),
            "ai-use": (AI_INPUT,),
            "train-ai": (AI_TRAIN,),
            # Words of earlier drafts
            "train-genai": (AI_TRAIN,),
            "ai": (AI_INPUT, AI_TRAIN),
            "bots": PURPOSES,
        },
    }
)

# Kinds whose value says by itself, when it is true, that a page must not be used for this.
REFUSALS: Mapping[str, str] = MappingProxyType(dict.fromkeys((TDM_RESERVATION, NOAI, NOIMAGEAI), AI_TRAIN))


def check_purpose(purpose: object) -> None:
    """Raise `ValueError` for a word that is not in `PURPOSES`, such as ``"train-ai"`` of Content-Usage."""
    if purpose not in PURPOSES:
        raise ValueError(f"unknown purpose {purpose!r}; choose from {', '.join(PURPOSES)}")


# The values of the word `use` of Content-Signal: how much of a page may be stored and shown.
USES = ("immediate", "reference", "full")

# The sources of statements.
ROBOTS_TXT, HEADER, META = "robots.txt", "header", "meta"

LONGEST = 1_000
TOO_LONG = f"has more than {LONGEST:,} characters: not read, and taken as a no to every use"
# The largest number of ``*`` in a path, so that a question is fast.
STARS = 20
TOO_MANY_STARS = f"has a path with more than {STARS} '*': not read, and taken as a no to every use"
TOO_MANY = "is one of too many: this one and the rest are not read, and taken as a no to every use"

NEEDS_LIBRARY = "needs http-sf: pip install 'scrapy-norobots[usage]'"

_BLANK = re.compile(r"[ \t]")

# contentsignals.org: words with "yes" or "no", with commas between them, and the word "use".
_SIGNAL = re.compile(rf"use=(?:{'|'.join(USES)})|(?!use=)[a-z][a-z0-9-]*=(?:yes|no)", re.IGNORECASE)
# The same words, however they are separated: what is clear in an invalid value applies too.
_CLEAR = re.compile(
    rf"(?<![\w-])([a-z][a-z0-9-]*)[ \t]*=[ \t]*(yes|no|{'|'.join(USES)})(?![\w-])", re.IGNORECASE
)

_PREFERENCES = MappingProxyType({"y": True, "n": False})
_RESERVATIONS = MappingProxyType({"1": True, "0": False})


@dataclass(frozen=True, slots=True)
class Statement:
    """What a site or a page states about its use.

    - `kind`: ``"content-usage"``, ``"content-signal"``, ``"license"``, ``"tdm-reservation"``,
      ``"tdm-policy"``, ``"noai"`` or ``"noimageai"``.
    - `source`: ``"robots.txt"``, ``"header"`` or ``"meta"``.
    - `text`: the line, the header with its name, or the tag, as written; at most 1,000 characters. It is not
      escaped.
    - `value`: a dictionary of words for the first two kinds: True for yes, False for no, None if unknown (the
      word ``use`` has a string). A URL for ``license`` and ``tdm-policy``. A boolean for the others, true if
      rights are reserved. None if it cannot be parsed.
    - `problem`: why the value, or a part of it, cannot be parsed; else empty.
    - `line`: the number of the line in robots.txt; None elsewhere.
    - `place`: where the line stands in robots.txt: ``"group"``, ``"after a blank line"`` or ``"outside any
      group"``; empty elsewhere, and for a license, which is about the whole site.
    - `path`: the path of a ``Content-Usage`` line, as written; else empty.
    """

    kind: str
    source: str
    text: str
    value: Any
    problem: str = ""
    line: int | None = None
    place: str = ""
    path: str = ""

    def says(self, purpose: str) -> bool | None:
        """Return whether pages may be used for a purpose, such as ``"ai-train"``; None if it is not said.

        Raises `ValueError` for an unknown purpose.
        """
        check_purpose(purpose)
        if self.problem in (TOO_LONG, TOO_MANY, TOO_MANY_STARS):
            return False
        if self.kind in REFUSALS:
            return False if self.value and REFUSALS[self.kind] == purpose else None
        if self.kind not in WORDS or self.value is None:
            return None
        words = WORDS[self.kind]
        said = {value for word, value in self.value.items() if purpose in words.get(word, ())}
        return False if False in said else True if True in said else None

    def facts(self) -> dict[str, Any]:
        names = ("kind", "source", "line", "place", "path", "text", "value", "problem")
        return {name: value for name in names if (value := getattr(self, name)) not in (None, "")}


def read(kind: str, source: str, text: str, value: str, **where: Any) -> Statement:
    """Return the statement of a kind in a `text`, of which `value` is what follows the name of the field."""
    if len(text) > LONGEST:
        return Statement(kind, source, text[:LONGEST], None, TOO_LONG, **where)
    parsed, problem = _READERS[kind](value)
    return Statement(kind, source, text, parsed, problem, **where)


def split_path(value: str) -> tuple[str, str]:
    """Split the value of a ``Content-Usage`` line into its path and the rest (draft-ietf-aipref-attach, 3.2).

    A path starts with ``/`` and ends at the first blank; without one, it is empty.
    """
    if not value.startswith("/"):
        return "", value
    path, *rest = _BLANK.split(value, maxsplit=1)
    return path, rest[0].strip() if rest else ""


def _usage(value: str) -> tuple[dict[str, bool | None] | None, str]:
    """Read a dictionary of RFC 9651 whose values are the tokens ``y`` and ``n`` (draft-ietf-aipref-vocab)."""
    try:
        from http_sf import Token, parse  # noqa: PLC0415  # an extra
    except ImportError:
        return None, NEEDS_LIBRARY
    try:
        members: Any = parse(value.encode("utf-8", "surrogatepass"), tltype="dictionary")
    except ValueError as exc:
        return None, f"not a dictionary of RFC 9651: {exc}"
    words = {
        key: _PREFERENCES.get(str(member[0])) if isinstance(member[0], Token) else None
        for key, member in members.items()
    }
    unknown = next((key for key, said in words.items() if said is None), "")
    if unknown:
        return words, f"{unknown!r} has another value than y or n, so it is unknown"
    return words, "" if words else "states no preference"


def _signal(value: str) -> tuple[dict[str, bool | str] | None, str]:
    words: dict[str, bool | str] = {}
    for word, said in _CLEAR.findall(value.lower()):
        if word == "use" and said in USES:
            words[word] = said
        elif word != "use" and said not in USES:
            words[word] = words.get(word, True) is True and said == "yes"  # of two values, no applies
    parts = [part.strip() for part in value.split(",")]
    wrong = next((part for part in parts if not _SIGNAL.fullmatch(part)), None)
    if wrong is None:
        return words, ""
    return words or None, f"{wrong!r} is not word=yes or word=no; commas separate several of them"


def _url(value: str) -> tuple[str | None, str]:
    try:
        parts = urlsplit(value)
        is_absolute = bool(parts.scheme and parts.hostname) and value.isprintable() and " " not in value
    except ValueError:
        is_absolute = False
    return (value, "") if is_absolute else (None, "not an absolute URL")


def _reservation(value: str) -> tuple[bool | None, str]:
    said = _RESERVATIONS.get(value)
    return said, "" if said is not None else "neither 0 nor 1"


_READERS: Mapping[str, Callable[[str], tuple[Any, str]]] = MappingProxyType(
    {
        CONTENT_USAGE: _usage,
        CONTENT_SIGNAL: _signal,
        LICENSE: _url,
        TDM_RESERVATION: _reservation,
        TDM_POLICY: _url,
        NOAI: lambda _: (True, ""),
        NOIMAGEAI: lambda _: (True, ""),
    }
)


def stated(statements: Iterable[Statement]) -> set[str]:
    """Return what statements say, in few different words: kinds, purposes that are refused, problems."""
    found = set()
    for statement in statements:
        found.add(statement.kind)
        found.update(
            f"no to {purpose}" for purpose in WORDS[CONTENT_SIGNAL] if statement.says(purpose) is False
        )
        if statement.problem:
            found.add("malformed")
    return found
